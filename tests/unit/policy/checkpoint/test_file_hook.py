"""The file hook as a shell runs it."""

import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.policy.checkpoint.conftest import Naps
from webhook.policy.checkpoint import hook_kinds
from webhook.policy.checkpoint.hook_kinds import file_handler

pytestmark = pytest.mark.usefixtures("naps", "termination_log")
LONG = 6000
"""Seconds of which each is a hundredth of one here."""


def run(folder: Path, seconds: int = 2) -> subprocess.CompletedProcess[str]:
    command = file_handler(str(folder), seconds)["exec"]["command"]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def run_with(folder: Path, program: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Run the hook beside a program that answers once it is asked."""

    def once_asked() -> None:
        while not (folder / "request").exists():
            time.sleep(0.005)
        program()
        (folder / "done").touch()

    thread = threading.Thread(target=once_asked, daemon=True)
    thread.start()
    done = run(folder, LONG)
    thread.join(10)
    return done


def test_the_hook_returns_at_once_where_nobody_listens(tmp_path: Path, naps: Naps, termination_log: Path) -> None:
    assert run(tmp_path, 60).returncode == 0
    assert termination_log.read_text() == "\ngpu-tiers: nothing listens\n"
    assert naps.count == 0
    assert list(tmp_path.iterdir()) == []


def test_the_hook_returns_at_once_where_there_is_no_folder(tmp_path: Path, naps: Naps) -> None:
    assert run(tmp_path / "absent", 60).returncode == 0
    assert naps.count == 0


def test_the_hook_asks_and_waits_until_the_program_has_saved(tmp_path: Path, naps: Naps, termination_log: Path) -> None:
    (tmp_path / "listening").touch()
    saved = tmp_path / "checkpoint"

    def save() -> None:
        while naps.count < 2:
            time.sleep(0.005)
        saved.write_text("step 7")

    done = run_with(tmp_path, save)
    assert (done.returncode, done.stderr, saved.read_text()) == (0, "", "step 7")
    assert re.fullmatch(r"\ngpu-tiers: saved in \d+ s\n", termination_log.read_text())


def test_the_hook_fails_when_time_is_out(tmp_path: Path, naps: Naps, termination_log: Path) -> None:
    """The kubelet reports it: event FailedPreStopHook."""
    (tmp_path / "listening").touch()
    done = run(tmp_path, 3)
    assert (done.returncode, done.stderr) == (1, "no checkpoint within 3 s\n")
    assert naps.noted.read_text() == "1\n" * 3
    assert termination_log.read_text() == "\ngpu-tiers: not saved in 3 s\n"
    assert (tmp_path / "request").exists()


def test_a_termination_message_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_kinds, "TERMINATION_LOG", str(tmp_path / "absent" / "termination-log"))
    (tmp_path / "listening").touch()
    done = run_with(tmp_path, lambda: None)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_answer_to_an_earlier_request_is_no_answer(tmp_path: Path) -> None:
    """A container restarted in place finds the folder of its former life."""
    for name in ("listening", "done"):
        (tmp_path / name).touch()
    assert run(tmp_path, 1).returncode == 1


def test_an_answered_request_does_not_meet_the_next_life_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    assert run_with(tmp_path, lambda: None).returncode == 0
    assert not (tmp_path / "request").exists()


def test_the_hook_fails_at_once_where_it_cannot_ask(tmp_path: Path, naps: Naps) -> None:
    (tmp_path / "listening").touch()
    (tmp_path / "request").symlink_to(tmp_path / "absent" / "request")
    assert run(tmp_path, 20).returncode == 1
    assert naps.count == 0
