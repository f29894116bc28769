"""The commands that leave a shell as the first process, compared with the shells of this machine."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from webhook.objects.pods import Container
from webhook.objects.view import view
from webhook.policy.checkpoint.programs import is_first_process, sleeps

STAYS: dict[str, list[str]] = {
    "a plain command": ["sh", "-c", "sleep 9"],
    "a list": ["sh", "-c", "true; sleep 9"],
    "a list on two lines": ["sh", "-c", "true\nsleep 9"],
    "a pipe": ["bash", "-c", "sleep 9 | cat"],
    "a redirection": ["bash", "-c", "sleep 9 > /dev/null"],
    "options before": ["bash", "-euo", "pipefail", "-c", "true && sleep 9 | cat"],
    "a word that only looks like exec": ["sh", "-c", "executable=1; sleep 9"],
    "an exec that only redirects": ["sh", "-c", "exec 2>&1; sleep 9"],
}
GOES: dict[str, list[str]] = {
    "exec": ["sh", "-c", "exec sleep 9"],
    "exec at the end": ["sh", "-c", "cd / && exec sleep 9"],
    "exec on a line of its own": ["sh", "-c", "true\nexec \\\nsleep 9"],
    "bash with one plain command": ["bash", "-c", "sleep 9"],
    "no shell": ["sleep", "9"],
}
UNKNOWN: dict[str, list[str]] = {
    "a script in a file": ["sh", "/run.sh"],
    "a script in a file, with -c for it": ["sh", "/run.sh", "-c", "x"],
    "a trap": ["sh", "-c", "trap 'kill %1' TERM; sleep 9 & wait"],
    "an init in front": ["tini", "--", "sh", "-c", "true; sleep 9"],
    "nothing after -c": ["sh", "-c"],
    "the image's own command": [],
}


def container(words: list[str]) -> Container:
    return view({"command": words[:1], "args": words[1:]}, Container)


@pytest.mark.parametrize("name", STAYS)
def test_a_shell_that_stays(name: str) -> None:
    assert is_first_process(container(STAYS[name]))


@pytest.mark.parametrize("name", [*GOES, *UNKNOWN])
def test_a_shell_that_goes_or_may(name: str) -> None:
    assert not is_first_process(container({**GOES, **UNKNOWN}[name]))


SHELLS = ("sh", "dash", "bash")


def name_of(process: int | str) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


def is_settled(process: int) -> bool:
    """Return whether the process has become another program, or is a shell with a child."""
    has_children = bool(Path(f"/proc/{process}/task/{process}/children").read_text())
    return has_children or name_of(process) not in (*SHELLS, name_of("self"))


@pytest.mark.skipif(not Path("/proc/thread-self/children").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("name", [*STAYS, *GOES])
def test_the_shells_of_this_machine_agree(name: str) -> None:
    words = {**STAYS, **GOES}[name]
    if shutil.which(words[0]) is None or (words[0] == "sh" and Path("/bin/sh").resolve().name != "dash"):
        pytest.skip(f"this {words[0]} is another")
    with subprocess.Popen(words, process_group=0) as program:
        while program.poll() is None and not is_settled(program.pid):
            time.sleep(0.002)
        stays = name_of(program.pid) in SHELLS
        subprocess.run(["kill", "-KILL", "--", f"-{program.pid}"], check=True)
    assert stays == (name in STAYS)


SLEEPS: list[tuple[dict[str, Any], int]] = [
    ({"sleep": {"seconds": 15}}, 15),
    ({"exec": {"command": ["sleep", "15"]}}, 15),
    ({"exec": {"command": ["/bin/sh", "-c", "sleep 15s"]}}, 15),
    ({"exec": {"command": ["/bin/sh", "-c", "sleep 15; save"]}}, 0),
    ({"exec": {"command": ["save"]}}, 0),
    ({"exec": {"command": [1]}}, 0),
    ({"exec": None, "sleep": []}, 0),
    ({}, 0),
]


@pytest.mark.parametrize(("handler", "seconds"), SLEEPS)
def test_how_long_a_handler_is_sure_to_sleep(handler: dict[str, Any], seconds: int) -> None:
    assert sleeps(handler) == seconds
