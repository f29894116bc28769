"""The cost of an eviction: the work since the last reported save, or at most all since the start."""

from decimal import Decimal

import pytest

from webhook.policy.checkpoint.work_lost import ContainerEnd, LastSave, Outcome, Work, saved_last, work_since

STARTED, EVICTED = 1_000.0, 10_000.0
EIGHT = Decimal(8)
PROGRESS = 'gpu-tiers: progress {"last_saved_step": %d, "last_saved_at": %.1f}\n'


def test_without_a_save_that_is_reported_it_is_at_most_all_since_the_start() -> None:
    work = work_since(EIGHT, EVICTED, None, STARTED)
    assert work == Work(72_000.0, exact=False)
    assert str(work) == "at most 20.0 GPU-hours"


def test_since_a_save_it_is_known() -> None:
    work = work_since(EIGHT, EVICTED, LastSave(1240, EVICTED - 3), STARTED)
    assert work == Work(24.0, exact=True)
    assert str(work) == "24 GPU-seconds"


def test_of_a_pod_that_goes_on_from_a_save_before_its_start_its_own_work_counts() -> None:
    assert work_since(EIGHT, EVICTED, LastSave(1240, STARTED - 500), STARTED) == Work(72_000.0, exact=True)


def test_a_pod_that_has_not_begun_has_nothing_that_is_known() -> None:
    assert work_since(EIGHT, EVICTED, None, None) is None
    assert work_since(EIGHT, EVICTED, None, EVICTED + 1) is None, "one machine's clock is ahead: 0 would be a lie"


def test_a_clock_that_is_ahead_makes_no_negative_loss() -> None:
    assert work_since(EIGHT, EVICTED, LastSave(None, EVICTED + 5), STARTED) == Work(0.0, exact=True)


@pytest.mark.parametrize(
    ("gpu_seconds", "said"),
    [
        (0, "0 GPU-seconds"),
        (0.9, "1 GPU-second"),
        (119, "119 GPU-seconds"),
        (840, "14 GPU-minutes"),
        (4_320_000, "1,200.0 GPU-hours"),
    ],
)
def test_it_is_said_in_the_unit_that_a_person_would_choose(gpu_seconds: float, said: str) -> None:
    assert str(Work(gpu_seconds, exact=True)) == said


def test_the_hook_tells_how_long_the_save_took_from_when_it_was_asked_for() -> None:
    saved = saved_last([ContainerEnd("gpu-tiers: saved in 7 s\n")], Outcome("saved", 7), EVICTED)
    assert saved == LastSave(None, EVICTED + 7)
    assert saved_last([ContainerEnd()], Outcome("saved", 7), None) is None, "no time stands on the event"


def test_a_listener_tells_of_its_last_save_also_where_the_one_at_the_end_came_too_late() -> None:
    end = ContainerEnd(f"{PROGRESS % (1240, EVICTED - 600)}gpu-tiers: not saved in 120 s\n", 137, EVICTED + 130)
    assert saved_last([end], Outcome("not-saved"), EVICTED) == LastSave(1240, EVICTED - 600)


def test_of_several_containers_the_oldest_save_counts_for_the_checkpoint_is_whole_only_with_all() -> None:
    ends = [
        ContainerEnd(PROGRESS % (1240, EVICTED)),
        ContainerEnd(PROGRESS % (1200, EVICTED - 60)),
        ContainerEnd("bye"),
    ]
    assert saved_last(ends, Outcome("saved", 3), EVICTED) == LastSave(1200, EVICTED - 60)


def test_of_one_that_tells_nothing_no_save_is_known() -> None:
    assert saved_last([ContainerEnd("loss 0.31")], Outcome("no-hook"), EVICTED) is None
