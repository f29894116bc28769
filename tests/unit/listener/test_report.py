"""The listener's reports cost the training nothing, whatever is at the other end."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from listener import report
from listener.progress import Progress
from listener.report import Reporter


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A server that takes connections and never says a word; the event tells that one has come."""
    (tmp_path / "token").write_text("a token")
    called, over = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            connection, _ = server.accept()
            called.set()
            over.wait(30)
            connection.close()

        answering = threading.Thread(target=accept)
        answering.start()
        monkeypatch.setattr(report, "REPORT", f"https://localhost:{server.getsockname()[1]}/v1/progress")
        monkeypatch.setattr(report, "REPORT_CA", "")
        monkeypatch.setattr(report, "TOKEN", str(tmp_path / "token"))
        monkeypatch.setattr(report, "REPORT_SECONDS", 0.01)
        monkeypatch.setattr(report, "ANSWER_IN_SECONDS", 20)
        yield called
        over.set()
        answering.join()


def test_a_training_steps_on_while_a_server_says_nothing(silent: threading.Event) -> None:
    progress = Progress()
    reporter = Reporter(progress.line, print)
    reporter.start()
    assert silent.wait(20)
    for step in range(1, 1001):
        progress.step(step, 1000)
    sending = [each for each in threading.enumerate() if each.name == "gpu-tiers-report"]
    assert sending, "it still waits for an answer"
    assert all(each.daemon for each in sending), "the end of the program does not wait for it"
    reporter.stop()


def test_who_can_t_be_reached_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    said: list[str] = []

    def send(body: bytes) -> None:
        sent.append(json.loads(body)["step"])
        if len(sent) == 4:
            reporter.stop()
        raise OSError("no such host")

    monkeypatch.setattr(report, "send", send)
    monkeypatch.setattr(report, "REPORT_SECONDS", 0.001)
    reporter = Reporter(lambda: {"step": len(sent)}, said.append)
    reporter.run()
    assert sent == [0, 1, 2, 3]
    assert said == ["not reported: OSError('no such host'); it tries again each 0 s"]


def test_without_an_address_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "REPORT", "")
    before = threading.enumerate()
    Reporter(dict, print).start()
    assert not [each for each in set(threading.enumerate()) - set(before) if each.name == "gpu-tiers-report"]
