"""Reservations that ended in vain: then nobody is evicted for a gang any more, or for a namespace for a while."""

from math import inf

import msgspec
import pytest
from msgspec.structs import replace

from tests.builders.dra_cluster import NOW, DraCluster
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.failures import (
    FORGOTTEN,
    LONGEST_PAUSE,
    MOST_KNOWN,
    UNTIL_AGAIN,
    Failures,
    failures,
    failures_after,
    next_try,
    paused_until,
    with_failures,
)
from webhook.policy.preemption.node_state import FAILURES
from webhook.policy.preemption.reservation import End, Reservation, ReservationEnd

RESERVED = Reservation("high", "team-alpha/high", ("high",), "gpu-training", ("a",), NOW, NOW + 100)
SPACE = "team-alpha/"


def state(before: Failures | None = None) -> ClusterState:
    """The pod waits, and its namespace had such failures."""
    cluster = DraCluster()
    cluster.node("a")
    cluster.waiting("high")
    known = {SPACE: before} if before else {}
    cluster.nodes["a"]["metadata"]["annotations"] = {FAILURES: msgspec.json.encode(known).decode()}
    return cluster.state()


def test_after_two_evictions_in_vain_it_stops() -> None:
    assert next_try("high", {}) < NOW
    assert next_try("high", {"high": Failures(1, NOW)}) == NOW + UNTIL_AGAIN
    assert next_try("high", {"high": Failures(2, NOW)}) == inf


@pytest.mark.parametrize(
    ("times", "pause"), [(1, 0), (2, 60), (3, 120), (5, 480), (8, LONGEST_PAUSE), (50, LONGEST_PAUSE)]
)
def test_a_namespace_waits_twice_as_long_each_time_after_the_first(times: int, pause: float) -> None:
    assert paused_until("team-alpha", {SPACE: Failures(times, NOW)}) == NOW + pause
    assert paused_until("team-beta", {SPACE: Failures(times, NOW)}) < NOW, "other namespaces don't"


@pytest.mark.parametrize(
    ("end", "counted"),
    [
        (End(ReservationEnd.FAILED), {"high", SPACE}),
        (End(ReservationEnd.GONE), {SPACE}),
        (End(ReservationEnd.FAILED, Phrase("x"), lost=True), {"high"}),
        (End(ReservationEnd.EXPIRED), {"high"}),
        (End(ReservationEnd.STUCK), set()),
        (End(ReservationEnd.BOUND), set()),
        (End(ReservationEnd.TAKEN), set()),
        (End(ReservationEnd.NOT_NEEDED), set()),
    ],
)
def test_what_counts_for_whom(end: End, counted: set[str]) -> None:
    """A pod of a lower tier that tolerates everything is no fault of the namespace."""
    assert failures_after(RESERVED, end, state()) == dict.fromkeys(counted, Failures(1, NOW))


def test_a_pod_that_has_finished_is_no_failure() -> None:
    """It was bound, and gone, between two looks: nobody saw that the devices were free."""
    evicted = replace(RESERVED, victims={"low": NOW + 5})
    assert failures_after(evicted, End(ReservationEnd.GONE), state()) == {}


def test_a_pod_that_goes_away_while_its_victims_end_is_one() -> None:
    evicted, cluster = replace(RESERVED, victims={"low": NOW + 5}), DraCluster()
    cluster.node("a")
    cluster.running("low", "a")
    assert failures_after(evicted, End(ReservationEnd.GONE), cluster.state()) == {SPACE: Failures(1, NOW)}


def test_they_add_up_for_hours() -> None:
    gone = End(ReservationEnd.GONE)
    assert failures_after(RESERVED, gone, state(Failures(3, NOW - 120))) == {SPACE: Failures(4, NOW)}
    assert failures_after(RESERVED, gone, state(Failures(3, NOW - FORGOTTEN))) == {SPACE: Failures(1, NOW)}


def test_many_that_are_deleted_at_once_are_one_mistake() -> None:
    """The pause begins with the second. All others were begun before it."""
    gone = End(ReservationEnd.GONE)
    assert failures_after(RESERVED, gone, state(Failures(1, NOW))) == {SPACE: Failures(2, NOW)}
    assert failures_after(RESERVED, gone, state(Failures(2, NOW - 59))) == {}


def test_they_add_up_over_nodes() -> None:
    cluster = DraCluster()
    cluster.node("a")
    cluster.node("b")
    for node, times in (("a", Failures(1, NOW - 100)), ("b", Failures(2, NOW))):
        cluster.nodes[node]["metadata"]["annotations"] = {FAILURES: msgspec.json.encode({"high": times}).decode()}
    assert failures(cluster.state()) == {"high": Failures(2, NOW)}


def test_a_node_bears_the_newest() -> None:
    """Whoever makes preemptors all the time fills no annotation."""
    known: dict[str, Failures] = {}
    for each in range(2 * MOST_KNOWN):
        known = with_failures(known, {f"gang-{each}": Failures(1, float(each))})
    assert set(known) == {f"gang-{each}" for each in range(MOST_KNOWN, 2 * MOST_KNOWN)}
