"""The next step of a reservation, by what stands on its nodes and by the cluster as it is."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.builders.dra_cluster import NOW, DraCluster
from webhook.policy.preemption.node_state import RESERVATION
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import (
    MOST_NODES,
    End,
    Reservation,
    ReservationEnd,
    Step,
    may_reserve,
    next_step,
    reservations,
    reserve,
    with_victims,
)


@pytest.fixture
def cluster() -> DraCluster:
    found = DraCluster()
    found.node("a")
    found.running("low", "a", terminationGracePeriodSeconds=20)
    found.waiting("high")
    return found


def reserved(cluster: DraCluster, seconds_ago: float = 2.0, **changed: object) -> Reservation:
    plan = cluster.decide("high")
    assert isinstance(plan, EvictionPlan)
    made = replace(reserve(plan, NOW - seconds_ago, 600), **changed)
    cluster.reserve(made)
    return made


def step(cluster: DraCluster, reservation: Reservation) -> Step:
    return next_step(reservation, cluster.state(), 600, lambda gang, nodes: cluster.decide(gang, [*nodes]))


def test_it_lasts_until_the_last_victim_must_have_ended(cluster: DraCluster) -> None:
    made = reserved(cluster, 0)
    assert (made.nodes, made.tier, made.pods) == (("a",), "gpu-training", ("high",))
    assert 20 < made.until - NOW < 20 + 120
    cluster.pods["low"]["spec"]["terminationGracePeriodSeconds"] = 10**6
    assert reserved(cluster, 0).until - NOW < 600 + 120, "whoever writes the grace of a pod closes no node for days"


def test_it_is_written_and_read_again(cluster: DraCluster) -> None:
    made = reserved(cluster, victims={"low": NOW})
    assert msgspec.json.decode(msgspec.json.encode(made), type=Reservation) == made


def test_everything_is_judged_again_before_anybody_is_evicted(cluster: DraCluster) -> None:
    assert step(cluster, reserved(cluster, 0)) is None
    evict = step(cluster, reserved(cluster))
    assert isinstance(evict, EvictionPlan)
    assert [each.name for each in evict.victims] == ["low"]


def test_a_device_came_free_meanwhile(cluster: DraCluster) -> None:
    made = reserved(cluster)
    cluster.node("b")
    ended = step(cluster, made)
    assert isinstance(ended, End)
    assert ended.outcome is ReservationEnd.NOT_NEEDED


def test_a_leader_ended_before_all_nodes_were_reserved(cluster: DraCluster) -> None:
    cluster.node("b")
    cluster.running("equal", "b", "gpu-training")
    made = reserved(cluster)
    assert step(cluster, replace(made, nodes=("a", "b"))) == End(ReservationEnd.INCOMPLETE)
    cluster.nodes["a"]["spec"]["taints"] = []
    assert step(cluster, made) == End(ReservationEnd.INCOMPLETE), "break-glass: somebody took the taint off"


def test_what_another_leader_began_is_not_mixed_up(cluster: DraCluster) -> None:
    """Two leaders reserve different nodes for the same pod: the rest of one is no part of the other."""
    cluster.node("b")
    cluster.running("beside", "b")
    first = reserved(cluster)
    second = replace(first, nodes=("b",), since=first.since + 1)
    cluster.reserve(second)
    found = reservations(cluster.state())
    assert step(cluster, replace(first, since=first.since - 1)) == End(ReservationEnd.INCOMPLETE)
    assert {each.nodes for each in found} == {first.nodes, second.nodes}


def test_its_step_is_on_the_first_of_its_nodes(cluster: DraCluster) -> None:
    cluster.node("b")
    cluster.running("other", "b")
    made = replace(reserved(cluster), nodes=("b", "a"))
    cluster.reserve(made)
    cluster.nodes["b"]["metadata"]["annotations"][RESERVATION] = msgspec.json.encode(
        replace(made, freed_at=NOW)
    ).decode()
    assert reservations(cluster.state()) == (replace(made, freed_at=NOW),)
    del cluster.nodes["b"]
    assert reservations(cluster.state()) == (made,), "so that it is taken off the others"


def test_a_victim_that_saves_when_it_is_asked_does_so_first(cluster: DraCluster) -> None:
    """No longer than for its grace, and once: whoever goes in its place after that goes at once."""
    cluster.unsaved_since = {"low": NOW - 3600}
    made = reserved(cluster)
    keep = step(cluster, made)
    assert isinstance(keep, Reservation)
    asked = keep
    assert (asked.asked_at, asked.saving, asked.victims) == (NOW, {"low": NOW + 20}, {})
    assert asked.until == made.until + 20, "the steps after it have as long as before"
    cluster.reserve(asked)
    assert step(cluster, asked) is None
    cluster.unsaved_since = {"low": NOW + 0.1}
    assert isinstance(step(cluster, asked), EvictionPlan), "it has saved"
    cluster.unsaved_since = {}
    assert isinstance(step(cluster, asked), EvictionPlan), "it can't save, or is silent"
    cluster.unsaved_since = {"low": NOW - 3600}
    late = replace(asked, saving={"low": NOW})
    cluster.reserve(late)
    assert isinstance(step(cluster, late), EvictionPlan), "its grace is over"


def test_nobody_saves_first_for_longer_than_others_wait_for_its_end(cluster: DraCluster) -> None:
    cluster.pods["low"]["spec"]["terminationGracePeriodSeconds"] = 10**6
    cluster.unsaved_since = {"low": NOW - 3600}
    keep = step(cluster, reserved(cluster))
    assert isinstance(keep, Reservation)
    assert keep.saving == {"low": NOW + 600}


def test_nobody_saves_for_a_preemptor_that_needs_no_device_any_more(cluster: DraCluster) -> None:
    cluster.unsaved_since = {"low": NOW - 3600}
    made = reserved(cluster)
    cluster.node("b")
    end = step(cluster, made)
    assert isinstance(end, End)
    assert end.outcome == ReservationEnd.NOT_NEEDED


def test_a_victim_that_could_not_be_deleted_is_judged_again(cluster: DraCluster) -> None:
    """It has changed between, or the leader ended between two victims."""
    made = reserved(cluster, victims={"low": NOW + 80})
    evict = step(cluster, made)
    assert isinstance(evict, EvictionPlan)
    assert [each.name for each in evict.victims] == ["low"]
    cluster.node("b")
    assert step(cluster, made) == replace(made, victims={}), "a device is free: nobody has to go any more"


def test_its_pod_has_a_node(cluster: DraCluster) -> None:
    made = reserved(cluster)
    cluster.pods["high"]["spec"]["nodeName"] = "a"
    assert step(cluster, made) == End(ReservationEnd.BOUND)
    cluster.ending("high")
    assert step(cluster, made) == End(ReservationEnd.BOUND), "it had its devices, whatever comes after that"


@pytest.mark.parametrize("how", ["gone", "ending"])
def test_its_pod_is_gone(cluster: DraCluster, how: str) -> None:
    made = reserved(cluster)
    if how == "gone":
        del cluster.pods["high"]
    else:
        cluster.ending("high")
    assert step(cluster, made) == End(ReservationEnd.GONE)


def test_its_time_is_over(cluster: DraCluster) -> None:
    assert step(cluster, reserved(cluster, until=NOW)) == End(ReservationEnd.EXPIRED)


def test_the_victims_are_waited_for(cluster: DraCluster) -> None:
    made = reserved(cluster, victims={"low": NOW + 30})
    cluster.ending("low")
    assert step(cluster, made) is None
    del cluster.pods["low"]
    assert step(cluster, made) is None, "its claim still holds the device: a driver that hangs"
    del cluster.claims["team-alpha/low-gpu"]
    assert step(cluster, made) == replace(made, freed_at=NOW)


def test_a_victim_that_never_ends_is_no_failure_of_ours(cluster: DraCluster) -> None:
    made = reserved(cluster, victims={"low": NOW - 1})
    cluster.ending("low", -61)
    assert step(cluster, made) == End(ReservationEnd.STUCK)


def test_the_scheduler_has_its_time(cluster: DraCluster) -> None:
    """From when the device is free: a pod that was refused is not asked again for 10 s."""
    made = reserved(cluster, victims={"low": NOW}, freed_at=NOW - 12)
    del cluster.pods["low"], cluster.claims["team-alpha/low-gpu"]
    assert step(cluster, made) is None
    assert step(cluster, replace(made, freed_at=NOW - 40, pods=("high", *map(str, range(9))))) is None, "a PodGroup"
    ended = step(cluster, replace(made, freed_at=NOW - 40))
    assert isinstance(ended, End)
    assert ended.outcome is ReservationEnd.FAILED, "the device is free, and it does not fit for another reason"


@pytest.mark.parametrize(
    ("tier", "outcome"),
    [("gpu-training", ReservationEnd.TAKEN), ("gpu-batch", ReservationEnd.FAILED)],
)
def test_another_pod_has_the_device(cluster: DraCluster, tier: str, outcome: ReservationEnd) -> None:
    """One of its own tier may: nobody is preferred within a tier. One of a lower tier tolerates everything."""
    cluster.node("b", gpus=2)
    cluster.running("beside", "b", "gpu-training", gpus=2)
    made = with_victims(reserved(cluster), [cluster.state().pods["low"]], cluster.state())
    assert [each.device for each in made.devices] == ["gpu-0"]
    made = replace(made, freed_at=NOW)
    del cluster.pods["low"], cluster.claims["team-alpha/low-gpu"]
    assert step(cluster, made) is None
    cluster.used["a"] = 0
    cluster.running("other", "a", tier)
    ended = step(cluster, made)
    assert isinstance(ended, End)
    assert (ended.outcome, ended.lost) == (outcome, outcome is ReservationEnd.FAILED), "at once: waiting gains nothing"


def test_its_own_part_of_the_devices_is_no_reason_to_end(cluster: DraCluster) -> None:
    """One pod of a gang has its node."""
    made = with_victims(reserved(cluster), [cluster.state().pods["low"]], cluster.state())
    made = replace(made, freed_at=NOW, pods=("high", "other"))
    del cluster.pods["low"], cluster.claims["team-alpha/low-gpu"]
    cluster.used["a"] = 0
    cluster.running("other", "a", "gpu-training")
    assert step(cluster, made) is None


def test_nodes_are_bounded(cluster: DraCluster) -> None:
    made = reserved(cluster)
    there = (replace(made, nodes=("n",) * (MOST_NODES - 1)),)
    assert may_reserve(1, there)
    assert not may_reserve(2, there)
    assert may_reserve(MOST_NODES + 5, ()), "a large gang is reserved for alone"
