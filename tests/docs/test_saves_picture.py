"""What the picture of a rack's saves says holds of what it draws."""

from pictures.saves import BOUND, PLACES, RUNS, WRITES, spans


def test_few_at_a_time_begin_early_and_none_loses_more_than_its_bound_and_one_save() -> None:
    found = spans(PLACES)
    assert len(found) == RUNS
    assert max(sum(each.begins <= one.begins < each.ends for each in found) for one in found) == PLACES
    assert max(each.ends for each in found) <= BOUND + PLACES * WRITES
    assert max(each.ends for each in spans(RUNS)) == BOUND + RUNS * WRITES
