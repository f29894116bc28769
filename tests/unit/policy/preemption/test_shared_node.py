"""Pods of one tier that share a node which is reserved for one of them."""

import pytest
from msgspec.structs import replace

from tests.builders.claims import DEVICE_CLASS
from tests.builders.dra_cluster import NOW, DraCluster
from webhook.objects.refusal import Phrase
from webhook.objects.view import at
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import (
    End,
    Reservation,
    ReservationEnd,
    Step,
    asking,
    next_step,
    reservations,
    shared_with,
    waiting_gangs,
    with_victims,
)

LONGEST = 600


@pytest.fixture
def cluster() -> DraCluster:
    """A node with four devices, which pods of a low tier hold. It is reserved for `first`, for which low-0 ends."""
    found = DraCluster()
    found.node("a", gpus=4)
    for number in range(4):
        found.running(f"low-{number}", "a", terminationGracePeriodSeconds=100)
    found.waiting("first")
    found.ending("low-0")
    made = Reservation("first", "team-alpha/first", ("first",), "gpu-training", ("a",), NOW - 9, NOW + 200)
    found.reserve(with_victims(made, [found.state().pods["low-0"]], found.state()))
    return found


def there(cluster: DraCluster) -> Reservation:
    (found,) = reservations(cluster.state())
    return found


def why(cluster: DraCluster, gang: str) -> str:
    told = cluster.decide(gang)
    assert isinstance(told, Phrase), told
    return told.id


def joined(cluster: DraCluster, name: str, gpus: int = 1, tier: str = "gpu-training") -> Reservation:
    """One more pod waits, and its victims end."""
    cluster.waiting(name, tier, gpus)
    plan = cluster.decide(name)
    assert isinstance(plan, EvictionPlan), plan
    made = with_victims(shared_with(there(cluster), plan, NOW, LONGEST), plan.victims, cluster.state())
    for each in plan.victims:
        cluster.ending(each.name, 100)
    cluster.reserve(made)
    return made


def step(cluster: DraCluster) -> Step:
    return next_step(there(cluster), cluster.state(), 600, lambda gang, nodes: cluster.decide(gang, [*nodes]))


def bound(cluster: DraCluster, name: str, device: int) -> None:
    """The pod has its node and this device there; who held it is gone."""
    gone = next(key for key, each in cluster.claims.items() if holds(each) == device)
    cluster.pods.pop(gone.removeprefix("team-alpha/").removesuffix("-gpu"))
    del cluster.claims[gone]
    cluster.pods[name]["spec"]["nodeName"] = "a"
    cluster.pods[name]["status"].pop("conditions")
    results = [{"request": "gpu", "driver": DEVICE_CLASS, "pool": "a", "device": f"gpu-{device}"}]
    users = [{"resource": "pods", "name": name, "uid": name}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    cluster.claims[f"team-alpha/{name}-gpu"]["status"] = status


def holds(claim: dict[str, object]) -> int | None:
    results = at(claim, "status.allocation.devices.results")
    return int(str(results[0]["device"]).removeprefix("gpu-")) if isinstance(results, list) else None


def test_each_has_victims_of_its_own(cluster: DraCluster) -> None:
    joined(cluster, "second")
    made = joined(cluster, "third", gpus=2)
    assert set(made.victims) == {f"low-{each}" for each in range(4)}
    assert made.pods == ("first", "second", "third")
    assert len(made.devices) == 4
    assert made.until > NOW + 100, "the last of them must have ended by then"
    cluster.waiting("fourth")
    assert why(cluster, "fourth") == "preemption-nobody-lower", "nobody is left who could go"


def test_what_victims_leave_is_used_first(cluster: DraCluster) -> None:
    """Nobody goes for it, but it shares the node: when the first pod has its device, the other one is kept for it."""
    cluster.ending("low-1")
    before = there(cluster)
    made = joined(cluster, "second")
    assert made == replace(before, pods=("first", "second")), "nor does it last longer"
    assert why(cluster, "second") == "preemption-holders-ending"


def asked_for_second(cluster: DraCluster) -> Reservation:
    """One more pod waits. What goes for it reports, so it is asked to save first."""
    cluster.unsaved_since = {f"low-{each}": NOW - 3600 for each in range(4)}
    cluster.waiting("second")
    plan = cluster.decide("second")
    assert isinstance(plan, EvictionPlan), plan
    made = asking(shared_with(there(cluster), plan, NOW, LONGEST), plan.victims, cluster.state(), LONGEST)
    cluster.reserve(made)
    return made


def test_victims_of_each_save_first(cluster: DraCluster) -> None:
    made = asked_for_second(cluster)
    (victim,) = made.saving
    assert (made.saving[victim], made.pods, set(made.victims)) == (NOW + 100, ("first", "second"), {"low-0"})
    assert step(cluster) is None
    cluster.waiting("third")
    assert not isinstance(cluster.decide("third"), EvictionPlan), "one after the other"
    cluster.unsaved_since[victim] = NOW + 0.1
    evicts = step(cluster)
    assert isinstance(evicts, EvictionPlan)
    assert [each.uid for each in evicts.victims] == [victim]
    after = with_victims(made, evicts.victims, cluster.state())
    assert (set(after.victims), after.saving, after.asked_at) == ({"low-0", victim}, {}, None)


def test_a_victim_that_was_asked_stays_where_others_end_meanwhile(cluster: DraCluster) -> None:
    """The pods that ended before end all the same, and the reservation goes on."""
    made = asked_for_second(cluster)
    cluster.unsaved_since = dict.fromkeys(made.saving, NOW + 0.1)
    cluster.ending("low-3")
    assert step(cluster) == replace(made, saving={}, asked_at=None)


def test_nobody_is_evicted_there_for_a_pod_of_a_lower_tier(cluster: DraCluster) -> None:
    """It does not tolerate the taint."""
    cluster.waiting("lower", "gpu-serving")
    assert why(cluster, "lower") == "preemption-after-another"


def test_a_pod_of_a_higher_tier_has_the_taint_raised(cluster: DraCluster) -> None:
    """The devices of both are for it first: those of the other are kept until then."""
    cluster.pods["first"]["spec"].update(priorityClassName="gpu-serving", priority=800)
    cluster.reserve(replace(there(cluster), tier="gpu-serving"))
    made = joined(cluster, "higher")
    assert len(made.victims) == 2
    assert step(cluster) == replace(made, tier="gpu-training")


def test_gangs_do_not_join(cluster: DraCluster) -> None:
    cluster.waiting("one")
    cluster.waiting("two")
    cluster.group("gang", "one", "two", least=2)
    assert why(cluster, "team-alpha/gang") == "preemption-after-another"


@pytest.mark.parametrize("how", ["not known to end", "all free"])
def test_when_nobody_joins(cluster: DraCluster, how: str) -> None:
    """A victim whose end is not known yet would be chosen twice. Once all is free the scheduler is left alone."""
    if how == "all free":
        cluster.reserve(replace(there(cluster), freed_at=NOW - 1))
    else:
        del cluster.pods["low-0"]["metadata"]["deletionTimestamp"]
    cluster.waiting("second")
    assert why(cluster, "second") == "preemption-after-another"


def test_it_lasts_until_nobody_waits(cluster: DraCluster) -> None:
    """The device of either is the other's too: no lower pod may come before both have one."""
    joined(cluster, "second")
    bound(cluster, "second", 0)
    assert waiting_gangs(there(cluster), cluster.state()) == ("first",)
    assert step(cluster) is None, "the victim of the other one ends"
    cluster.pods.pop("low-1", None)
    cluster.pods.pop("low-3", None)
    for key in ("low-1", "low-3"):
        cluster.claims.pop(f"team-alpha/{key}-gpu", None)
    freed = step(cluster)
    assert isinstance(freed, Reservation)
    cluster.reserve(freed)
    assert step(cluster) is None, "the scheduler has its time"
    cluster.pods["first"]["spec"]["nodeName"] = "a"
    assert step(cluster) == End(ReservationEnd.BOUND)


def test_those_of_a_lower_tier_have_their_time_after_one_that_never_starts(cluster: DraCluster) -> None:
    """A pod of a higher tier that fits for no known reason would keep them off, and their victims had gone in vain."""
    cluster.ending("low-1")
    made = joined(cluster, "lower", tier="gpu-serving")
    for uid in ("low-0", "low-1"):
        del cluster.pods[uid], cluster.claims[f"team-alpha/{uid}-gpu"]
    cluster.reserve(replace(made, freed_at=NOW - 60))
    given_up = step(cluster)
    assert given_up == replace(made, pods=("lower",), freed_at=NOW)
    assert isinstance(given_up, Reservation)
    cluster.reserve(given_up)
    assert step(cluster) == replace(given_up, tier="gpu-serving")


@pytest.mark.parametrize("tier", ["gpu-training", "gpu-serving"])
@pytest.mark.parametrize(("how", "outcome"), [("bound", ReservationEnd.BOUND), ("gone", ReservationEnd.GONE)])
def test_what_its_pod_does_not_need_any_more_is_kept_for_those_that_wait(
    cluster: DraCluster, tier: str, how: str, outcome: ReservationEnd
) -> None:
    """It had the device of another reservation, whose pod has to get this one. Or somebody took it back."""
    if how == "bound":
        cluster.pods["first"]["spec"]["nodeName"] = "b"
    else:
        del cluster.pods["first"]
    assert step(cluster) == End(outcome), "nobody waits"
    cluster.waiting("never", "gpu-interactive", tolerations=[])
    assert step(cluster) == End(outcome), "nobody is evicted for that one"
    cluster.waiting("second", tier)
    end = step(cluster)
    assert isinstance(end, End)
    assert (end.outcome, end.passed_on) == (outcome, replace(there(cluster), pods=()))
    assert end.passed_on
    cluster.reserve(end.passed_on)
    assert step(cluster) is None

    plan = cluster.decide("second")
    assert isinstance(plan, EvictionPlan)
    assert not plan.victims
    made = shared_with(there(cluster), plan, NOW, LONGEST)
    assert (made.name, made.pods, [*made.victims]) == ("team-alpha/second", ("second",), ["low-0"])
    del cluster.pods["low-0"]
    assert step(cluster) == End(ReservationEnd.NOT_NEEDED), "it did not join, and all victims have ended"


def test_nobody_saves_for_those_that_have_gone_away(cluster: DraCluster) -> None:
    asked_for_second(cluster)
    del cluster.pods["first"], cluster.pods["second"]
    cluster.waiting("third")
    end = step(cluster)
    assert isinstance(end, End)
    assert end.passed_on
    assert (end.passed_on.pods, end.passed_on.saving, end.passed_on.asked_at) == ((), {}, None)


def test_the_taint_is_of_the_highest_tier_that_waits(cluster: DraCluster) -> None:
    """A pod of a lower tier takes what others leave: while they wait, it could take theirs."""
    cluster.ending("low-1")
    joined(cluster, "lower", tier="gpu-serving")
    assert step(cluster) is None
    bound(cluster, "first", 0)
    assert step(cluster) == replace(there(cluster), tier="gpu-serving")


def test_a_victim_that_could_not_be_deleted(cluster: DraCluster) -> None:
    """It is judged again, though the victim of the other one ends: two need a device."""
    made = joined(cluster, "second")
    (own,) = set(made.victims) - {"low-0"}
    del cluster.pods[own]["metadata"]["deletionTimestamp"]
    evict = step(cluster)
    assert isinstance(evict, EvictionPlan)
    assert [each.uid for each in evict.victims] == [own]


def taken(cluster: DraCluster, tier: str) -> Reservation:
    """Two pods share the node, all victims have ended, and a pod of another reservation has one of the devices."""
    made = replace(joined(cluster, "second"), freed_at=NOW)
    for uid in made.victims:
        del cluster.pods[uid], cluster.claims[f"team-alpha/{uid}-gpu"]
    cluster.used["a"] = 0
    cluster.running("other", "a", tier)
    cluster.reserve(made)
    return made


def test_one_of_them_looks_for_another_device_if_theirs_is_taken(cluster: DraCluster) -> None:
    made = taken(cluster, "gpu-training")
    rest = replace(made, pods=("first",))
    assert step(cluster) == rest, "the one that came last"
    cluster.pods["other"]["spec"]["nodeName"] = ""
    assert step(cluster) is None, "its claim is allocated, but it has no node so far"
    cluster.pods["other"]["spec"]["nodeName"] = "a"
    cluster.reserve(rest)
    assert step(cluster) == End(ReservationEnd.TAKEN)


def test_a_lower_pod_has_one_of_their_devices(cluster: DraCluster) -> None:
    """It tolerates everything. Both wait for the other device, and the failure counts for the one that gets none."""
    made = taken(cluster, "gpu-batch")
    assert step(cluster) is None
    cluster.reserve(replace(made, freed_at=NOW - 60))
    ended = step(cluster)
    assert isinstance(ended, End)
    assert (ended.outcome, ended.lost) == (ReservationEnd.FAILED, True)


def test_a_pod_that_is_gone_ends_it_for_itself_alone(cluster: DraCluster) -> None:
    joined(cluster, "second")
    del cluster.pods["first"]
    assert step(cluster) is None
    del cluster.pods["second"]
    assert step(cluster) == End(ReservationEnd.GONE)
