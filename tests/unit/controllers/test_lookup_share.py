"""The time for which one namespace's look-ups may hold up the watch of all pods."""

from tests.unit.clock import Clock
from webhook.controllers.observed_pods import BURST_SECONDS, SHARE, LookupShare


def test_a_namespace_that_looks_up_all_the_time_gets_its_share_and_others_theirs() -> None:
    clock = Clock()
    share, spent = LookupShare(clock), 0.0
    for _ in range(1000):
        if share.is_left("theirs"):
            with share.spending("theirs"):
                clock.now += 0.05
            spent += 0.05
        else:
            clock.now += 0.05
    assert spent <= BURST_SECONDS + 50 * SHARE + 0.1
    assert spent >= 50 * SHARE
    assert share.is_left("ours")


def test_what_is_quick_is_always_looked_up() -> None:
    clock = Clock()
    share = LookupShare(clock)
    for _ in range(1000):
        assert share.is_left("ours")
        with share.spending("ours"):
            clock.now += 0.003
        clock.now += 0.03
