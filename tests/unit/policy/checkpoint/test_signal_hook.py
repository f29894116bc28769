"""The signal hook as a shell runs it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.policy.checkpoint.conftest import Naps
from webhook.policy.checkpoint.hook_kinds import signal_handler

pytestmark = pytest.mark.usefixtures("termination_log")

LISTENER = """
import pathlib, signal, sys, time
folder, naps = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
def save(*_):
    while not naps.exists() or naps.read_text().count("\\n") < 2:
        time.sleep(0.005)
    (folder / "checkpoint").write_text("step 7")
    (folder / "done").touch()
signal.signal(signal.SIGUSR1, save)
(folder / "ready").touch()
time.sleep(60)
"""


def script(process: int, done: Path, seconds: int) -> list[str]:
    """The hook with another process than the first: that is the container's, and here the machine's."""
    command: list[str] = signal_handler("USR1", str(done), seconds)["exec"]["command"]
    assert command[2].count(" 1 ||") == 1
    return [*command[:2], command[2].replace(" 1 ||", f" {process} ||")]


def test_the_signal_hook_waits_until_the_program_has_saved(tmp_path: Path, naps: Naps) -> None:
    (tmp_path / "done").touch()  # of a former life
    with subprocess.Popen([sys.executable, "-c", LISTENER, str(tmp_path), str(naps.noted)]) as program:
        try:
            while not (tmp_path / "ready").exists():
                time.sleep(0.005)
            hook = script(program.pid, tmp_path / "done", 6000)
            done = subprocess.run(hook, capture_output=True, text=True, timeout=100, check=False)
            assert (done.returncode, done.stderr) == (0, "")
            assert (tmp_path / "checkpoint").read_text() == "step 7"
        finally:
            program.kill()


@pytest.mark.usefixtures("naps")
def test_the_signal_hook_fails_when_time_is_out(tmp_path: Path) -> None:
    deaf = ["/bin/sleep", "60"]
    with subprocess.Popen(deaf, preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)) as program:  # noqa: PLW1509
        try:
            hook = script(program.pid, tmp_path / "done", 1)
            done = subprocess.run(hook, capture_output=True, text=True, timeout=30, check=False)
            assert (done.returncode, done.stderr) == (1, "no checkpoint within 1 s\n")
        finally:
            program.kill()


def test_the_signal_hook_fails_at_once_where_nobody_is_there(tmp_path: Path, naps: Naps) -> None:
    with subprocess.Popen(["true"]) as program:
        program.wait()
    assert subprocess.run(script(program.pid, tmp_path / "done", 60), capture_output=True, check=False).returncode == 1
    assert naps.count == 0
