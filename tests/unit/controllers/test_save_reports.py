"""The reports of trainings are stored, for a limited time."""

import pytest

from webhook.controllers import asked_saves
from webhook.controllers.asked_saves import REPORT_SECONDS, SKEW, SOONEST, Progress, SaveReports
from webhook.policy.checkpoint.work_lost import LastSave


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def saved(at: float | None, step: int | None = 40) -> Progress:
    return Progress(step=50, last_saved_step=step if at else None, last_saved_at=at)


def test_the_last_report_of_a_pod_counts_for_an_hour() -> None:
    clock = Clock()
    saves = SaveReports(clock)
    assert saves.report("a", saved(clock.now - 100)) == "heard"
    assert saves.last_save("a") == LastSave(40, clock.now - 100)
    assert saves.last_save("b") is None
    clock.now += SOONEST - 1
    assert saves.report("a", saved(clock.now)) == "too-soon"
    clock.now += 1
    assert saves.report("a", saved(clock.now, 90)) == "heard"
    assert saves.last_save("a") == LastSave(90, clock.now)
    clock.now += REPORT_SECONDS
    assert saves.last_save("a") is None
    assert len(saves) == 0


def test_a_pod_that_has_not_saved_yet_is_heard() -> None:
    saves = SaveReports(Clock())
    assert saves.report("a", saved(None)) == "heard"
    assert (saves.last_save("a"), len(saves)) == (None, 1)


def test_a_clock_that_is_a_little_ahead_gains_nothing_and_one_far_ahead_is_not_heard() -> None:
    clock = Clock()
    saves = SaveReports(clock)
    assert saves.report("a", saved(clock.now + SKEW)) == "heard"
    assert saves.last_save("a") == LastSave(40, clock.now)
    assert saves.report("b", saved(clock.now + SKEW + 1)) == "ahead"
    assert len(saves) == 1


def test_only_so_many_pods_are_stored_until_old_ones_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_saves, "MOST_REPORTING", 3)
    clock = Clock()
    saves = SaveReports(clock)
    for uid in "abc":
        assert saves.report(uid, saved(clock.now)) == "heard"
        clock.now += SOONEST
    assert saves.report("d", saved(clock.now)) == "no-room"
    assert saves.report("a", saved(clock.now)) == "heard", "one that is known is heard on"
    clock.now += REPORT_SECONDS - SOONEST
    assert saves.report("d", saved(clock.now)) == "heard"
    assert [each for each in "abcd" if saves.last_save(each)] == ["a", "d"]
