"""The numbers by which other schedulers order what has the same priority: bounded, rewritten by whole steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.policy.checkpoint.work_lost import MOST, SAME_SAVE, boost, room_between, save_time

MINUTE, HOUR = 60.0, 3600.0
WORK = st.floats(0, 1e12)
VALUES = st.sets(st.integers(1, 1_000_000_000), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("what", "gpu_seconds", "boosted"),
    [
        ("8 GPUs that saved a second ago", 8, 0),
        ("a GPU that saved 9 minutes ago", 9 * MINUTE, 0),
        ("a GPU that saved 50 minutes ago", 50 * MINUTE, 3),
        ("8 GPUs that saved 50 minutes ago", 8 * 50 * MINUTE, 6),
        ("64 GPUs for a day", 64 * 24 * HOUR, 14),
        ("4,096 GPUs for a week", 4096 * 168 * HOUR, MOST),
    ],
)
def test_the_more_work_is_at_risk_the_higher_the_boost(what: str, gpu_seconds: float, boosted: int) -> None:
    assert boost(gpu_seconds, 0, MOST) == boosted, what


@given(WORK, VALUES, st.integers(-(2**31), 2**31 - 1))
def test_no_boost_reaches_the_next_tier_nor_lies_below_ones_own(work: float, values: set[int], written: int) -> None:
    boosted = boost(work, written, room_between(values))
    for value in values:
        assert value <= value + boosted
        assert all(value + boosted < above for above in values if above > value)


@given(WORK, WORK, st.integers(0, MOST))
def test_more_work_never_has_less_of_a_boost(one: float, other: float, room: int) -> None:
    less, more = sorted((one, other))
    assert boost(less, 0, room) <= boost(more, 0, room)


@given(WORK, st.integers(0, MOST), st.floats(0.51, 1.99))
def test_what_is_written_stays_while_the_work_has_not_doubled_or_halved(work: float, room: int, times: float) -> None:
    written = boost(work, 0, room)
    exactly = 5 * MINUTE * 2**written
    assert boost(exactly * times, written, room) == written


def test_tiers_without_room_between_them_have_no_boost() -> None:
    assert room_between((1000, 1001, 5)) == 0
    assert boost(1e9, 0, 0) == 0
    assert boost(1e9, 3, 0) == 0, "what was written under another policy goes"
    assert room_between((1000,)) == MOST, "above the highest tier nobody is"


def test_a_time_stays_until_a_save_comes_that_is_minutes_later() -> None:
    assert save_time(10_000.7, 0.0) == 10_000
    assert save_time(10_000.7 + SAME_SAVE - 1, 10_000.0) == 10_000
    assert save_time(10_000.7 + SAME_SAVE, 10_000.0) == 10_000 + SAME_SAVE
