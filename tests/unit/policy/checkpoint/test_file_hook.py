"""What the file hook does when a shell runs it."""

import subprocess
import threading
import time
from pathlib import Path

from webhook.policy.checkpoint.hook_kinds import file_handler


def run(folder: Path, seconds: int = 2) -> subprocess.CompletedProcess[str]:
    command = file_handler(str(folder), seconds)["exec"]["command"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_hook_returns_at_once_where_nobody_listens(tmp_path: Path) -> None:
    start = time.monotonic()
    assert run(tmp_path, 60).returncode == 0
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_the_hook_returns_at_once_where_there_is_no_folder(tmp_path: Path) -> None:
    assert run(tmp_path / "absent", 60).returncode == 0


def test_the_hook_asks_and_waits_until_the_program_has_saved(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    saved = tmp_path / "checkpoint"

    def train() -> None:
        while not (tmp_path / "request").exists():
            time.sleep(0.05)
        time.sleep(1.2)
        saved.write_text("step 7")
        (tmp_path / "done").touch()

    program = threading.Thread(target=train, daemon=True)
    program.start()
    done = run(tmp_path, 20)
    program.join(10)
    assert (done.returncode, done.stderr, saved.read_text()) == (0, "", "step 7")


def test_the_hook_fails_when_time_is_out(tmp_path: Path) -> None:
    """The kubelet reports it: event FailedPreStopHook."""
    (tmp_path / "listening").touch()
    done = run(tmp_path, 1)
    assert (done.returncode, done.stderr) == (1, "no checkpoint within 1 s\n")
    assert (tmp_path / "request").exists()


def test_the_answer_to_an_earlier_request_is_no_answer(tmp_path: Path) -> None:
    """A container restarted in place finds the folder of its former life."""
    for name in ("listening", "done"):
        (tmp_path / name).touch()
    assert run(tmp_path, 1).returncode == 1


def test_an_answered_request_does_not_meet_the_next_life_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    answer = threading.Timer(0.5, (tmp_path / "done").touch)
    answer.start()
    assert run(tmp_path, 20).returncode == 0
    assert not (tmp_path / "request").exists()


def test_the_hook_fails_at_once_where_it_cannot_ask(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    (tmp_path / "request").symlink_to(tmp_path / "absent" / "request")
    start = time.monotonic()
    assert run(tmp_path, 20).returncode == 1
    assert time.monotonic() - start < 5
