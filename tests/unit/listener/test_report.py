"""The listener's reports cost the training nothing, whatever is at the other end; their answers may wish for a save."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from listener import report
from listener.progress import Progress
from listener.report import Reporter, Wish, Wishes
from tests.builders.leader import Leader


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
    reporter = Reporter(progress.line, print, Wishes())
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

    def send(body: bytes, _: object) -> None:
        sent.append(json.loads(body)["step"])
        if len(sent) == 4:
            reporter.stop()
        raise OSError("no such host")

    monkeypatch.setattr(report, "send", send)
    monkeypatch.setattr(report, "REPORT_SECONDS", 0.001)
    reporter = Reporter(lambda: {"step": len(sent)}, said.append, Wishes())
    reporter.run()
    assert sent == [0, 1, 2, 3]
    assert said == ["not reported: OSError('no such host'); it tries again each 0 s"]


def test_without_an_address_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "REPORT", "")
    before = threading.enumerate()
    Reporter(dict, print, Wishes()).start()
    assert not [each for each in set(threading.enumerate()) - set(before) if each.name == "gpu-tiers-report"]


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leader]:
    """A leader that this process reports to, in a hundredth of the usual times."""
    with Leader(tmp_path / "leader", soonest=0.05).serving() as serving:
        pod = serving.pod()
        monkeypatch.setattr(report, "REPORT", pod["GPU_TIERS_REPORT"])
        monkeypatch.setattr(report, "REPORT_CA", pod["GPU_TIERS_REPORT_CA"])
        monkeypatch.setattr(report, "TOKEN", pod["GPU_TIERS_REPORT_TOKEN"])
        monkeypatch.setattr(report, "REPORT_SECONDS", 0.3)
        monkeypatch.setattr(report, "SOONEST_SECONDS", 0.05)
        yield serving


@pytest.fixture
def training(leader: Leader) -> Iterator[Reporter]:
    """A training at step 40, which saved at step 20."""
    reporter = Reporter(lambda: {"step": 40, "last_saved_step": 20}, print, Wishes())
    reporter.start()
    yield reporter
    reporter.stop()
    assert leader.refused == 0, "it keeps the time between two reports"


def due(wishes: Wishes, step: int = 40, seconds: float = 10) -> Wish:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if wish := wishes.due(step):
            return wish
        time.sleep(0.005)
    raise AssertionError("no wish is due")


def test_a_wish_is_heard_and_its_outcome_is_in_the_reports_that_follow(leader: Leader, training: Reporter) -> None:
    leader.wish("a", 30)
    wish = due(training.wishes)
    assert (wish.id, wish.step) == ("a", 30)
    training.wishes.begin("a")
    time.sleep(0.1)
    training.wishes.finish("a", "saved", step=40)
    told = leader.outcome("a")
    assert told == {"id": "a", "outcome": "saved", "step": 40, "seconds": pytest.approx(0.1, abs=0.5)}
    count = len(leader.reports["pod"])
    while len(leader.reports["pod"]) < count + 3:
        time.sleep(0.01)
    assert all(line["save"] == told for _, line in leader.reports["pod"][count:])
    assert training.wishes.waiting is None, "the same wish again changes nothing"
    leader.wish("b", 30)
    assert due(training.wishes).id == "b"


def test_an_outcome_is_told_at_once(leader: Leader, training: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SOONEST_SECONDS", 0.05)
    leader.answers["pod"] = {"report_in": 60, "save": {"id": "a", "step": 30, "in": 0}}
    due(training.wishes)
    begun = time.monotonic()
    training.wishes.finish("a", "failed", why="x" * 300)
    assert leader.outcome("a") == {"id": "a", "outcome": "failed", "seconds": 0.0, "why": "x" * 200}
    assert time.monotonic() - begun < 10


def test_what_was_saved_before_is_told_without_a_save(leader: Leader, training: Reporter) -> None:
    leader.wish("a", 20)
    assert leader.outcome("a") == {"id": "a", "outcome": "saved", "step": 20, "seconds": 0.0}
    assert training.wishes.due(40) is None


def test_a_wish_is_due_at_its_time_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    wishes = Wishes()
    wishes.hear(Wish("a", 30, 105.0), None)
    assert wishes.due(30) is None
    now[0] = 105.0
    assert wishes.due(29) is None
    assert wishes.due(30) == Wish("a", 30, 105.0)


def test_a_new_wish_replaces_one_that_waits_and_follows_one_that_has_begun() -> None:
    wishes = Wishes()
    wishes.hear(Wish("a", 30, 0.0), None)
    wishes.hear(Wish("b", 30, 0.0), 10)
    assert wishes.due(30) == Wish("b", 30, 0.0)
    wishes.begin("b")
    wishes.hear(Wish("c", 50, 0.0), 10)
    wishes.hear(Wish("b", 30, 0.0), 10)
    wishes.finish("b", "saved", step=31)
    assert wishes.due(50) == Wish("c", 50, 0.0)
    wishes.saved(49)
    assert wishes.outcome is not None
    assert wishes.outcome["id"] == "b"
    wishes.saved(50)
    assert (wishes.outcome["id"], wishes.waiting) == ("c", None)


def test_who_can_t_save_says_why_at_the_wish_and_after_the_end(leader: Leader, training: Reporter) -> None:
    training.wishes.give_up("output is on tmpfs")
    leader.wish("a", 30)
    assert leader.outcome("a") == {"id": "a", "outcome": "unable", "seconds": 0.0, "why": "output is on tmpfs"}
    training.wishes.why_not = ""
    leader.wish("b", 30, within=1000)
    while training.wishes.waiting is None:
        time.sleep(0.01)
    training.wishes.give_up("stopped listening")
    training.stop()
    assert leader.outcome("b")["why"] == "stopped listening"


@pytest.mark.parametrize(
    "answer",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 4000,
        b'{"save": 1}',
        b'{"save": {"step": 3}}',
        b'{"save": {"id": "x", "step": "many"}}',
        b'{"save": {"id": "x", "step": 1e999}}',
        b'{"save": {"id": "x", "step": 1, "in": null}}',
        b'{"save": {"id": "x", "step": 1, "in": NaN}}',
        b'{"report_in": "soon", "save": {"id": "x", "step": 1}}',
        b'{"save": {"id": "x", "step": 1}, "more": "' + b"x" * 4096 + b'"}',
    ],
    ids=lambda text: text[:20].decode(errors="replace"),
)
def test_an_answer_that_makes_no_sense_is_none(answer: bytes, leader: Leader, training: Reporter) -> None:
    leader.answers["pod"] = answer
    while len(leader.reports["pod"]) < 3:
        time.sleep(0.01)
    assert training.wishes.due(40) is None
    assert not training.failed


def test_the_next_report_comes_when_the_first_replica_wants_it_within_bounds() -> None:
    reporter = Reporter(dict, print, Wishes())
    for seconds in (40.0, 12.5, 3600, 0):
        reporter.hear(json.dumps({"report_in": seconds}).encode())
    reporter.hear(b"")
    assert reporter.asked == [40.0, 12.5, 60.0, 5.0]


def test_a_wish_that_is_heard_again_while_it_ends_is_not_saved_for_twice() -> None:
    wishes = Wishes()
    for name in map(str, range(200)):
        wish = Wish(name, 30, 0.0)
        wishes.hear(wish, None)
        assert wishes.due(40) == wish
        wishes.begin(name)
        again = threading.Thread(target=wishes.hear, args=(wish, None))
        again.start()
        wishes.finish(name, "saved", step=40)
        again.join()
        assert wishes.due(40) is None
