"""Rules 19 and 20 of the ledger, of gangs: with each its story holds, without it the story fails."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.ledger.cluster import NO, YES, Cluster, opened
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import PODS, WORKLOADS
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from tests.ledger.truth import Create, State
from webhook.ledger import slot_sums
from webhook.ledger.account import Entry
from webhook.ledger.leader import rewrite
from webhook.ledger.leader.expiry import Proof
from webhook.ledger.leader.moving import Moving
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.slot_sums import SlotSums
from webhook.policy.quota.charges import Charge

STORIES = Stories()


async def seen(cluster: Cluster, leader: Process) -> None:
    """The leader sees and writes all that has happened."""
    leader.client.view(PODS).catch_up()
    leader.client.view(WORKLOADS).catch_up()
    await cluster.time(1)


def _unknown_are_dropped(entries: Sequence[Entry], view: Any, *_: Any) -> Sequence[Entry]:
    return entries if view.workloads.get(entries[0].uid) is not None else ()


@STORIES.of("gangpend", replaced(rewrite, "_gang_seen", _unknown_are_dropped))
async def a_gang_keeps_its_place_until_its_workload_is_seen(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    await cluster.time(1)
    assert await cluster.ask("X", replica, gpus=2, workload=True) == NO
    await seen(cluster, leader)
    assert cluster.charge() == 2
    assert await cluster.ask("X", replica) == NO


@STORIES.of("gangname", replaced(slot_sums, "_gang_slot", lambda gang: gang.uid))
async def a_second_create_of_a_gang_shares_the_place_of_the_first(cluster: Cluster) -> None:
    """The answer to the first was lost on its way: its caller asks again, as it would of any API."""
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("lost", replica, gpus=2, workload=True, place="llm") == YES
    await cluster.never("lost")
    assert await cluster.ask("other", replica, gpus=2, workload=True) == NO
    assert await cluster.ask("again", replica, gpus=2, workload=True, place="llm") == YES
    assert cluster.charge() == 2
    await cluster.store("again")
    for pod in ("p0", "p1"):
        assert await cluster.ask(pod, replica, gang="again") == YES
        await cluster.store(pod)
    assert await cluster.ask("p2", replica, gang="again") == NO
    await seen(cluster, leader)
    await cluster.time(H + 10)
    assert cluster.charge() == 2


@STORIES.of("gangagain", replaced(SlotSums, "has_pods", lambda *_: False))
async def a_gang_that_is_made_again_needs_room_beside_the_pods_of_the_old_one(cluster: Cluster) -> None:
    """The leader has not seen the end of the first gang (`kubectl replace --force`), and its pods have their grace."""
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("old", replica, gpus=2, workload=True, place="llm") == YES
    await cluster.store("old")
    for pod in ("p0", "p1"):
        assert await cluster.ask(pod, replica, gang="old") == YES
        await cluster.store(pod)
    await seen(cluster, leader)
    await cluster.gone("old")
    assert await cluster.ask("new", replica, gpus=2, workload=True, place="llm") == NO
    await cluster.gone("p0")
    await cluster.gone("p1")
    await seen(cluster, leader)
    assert await cluster.ask("new", replica, gpus=2, workload=True, place="llm") == YES
    assert cluster.charge() == 2


@STORIES.of("gangfull", replaced(SlotSums, "_outer", lambda *_: ""))
async def the_pods_of_a_gang_draw_on_its_charge(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    for pod in ("w0", "w1"):
        assert await cluster.ask(pod, replica, gang="W") == YES
        await cluster.store(pod)
    await seen(cluster, leader)
    assert cluster.charge() == 2
    assert await cluster.ask("w2", replica, gang="W") == NO


@STORIES.of("excess", replaced(slot_sums._Slot, "value", property(lambda slot: slot.own)))
async def what_exceeds_the_gang_is_charged_to_the_pod(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 3)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    for pod in ("w0", "w1", "w2"):
        assert await cluster.ask(pod, replica, gang="W") == YES
        await cluster.store(pod)
    await seen(cluster, leader)
    assert cluster.charge() == 3
    assert await cluster.ask("C", replica) == NO


@STORIES.of("gangend", replaced(WorkloadView, "release", lambda *_: None))
async def what_a_gang_declared_goes_with_it_and_its_pods_stay(cluster: Cluster) -> None:
    """Deleted with its pods left behind."""
    leader, replica = await opened(cluster, 3)
    assert await cluster.ask("W", replica, gpus=3, workload=True) == YES
    await cluster.store("W")
    assert await cluster.ask("w0", replica, gang="W") == YES
    await cluster.store("w0")
    await seen(cluster, leader)
    await cluster.gone("W")
    await seen(cluster, leader)
    assert cluster.charge() == 1
    assert await cluster.ask("C", replica, gpus=2) == YES


def _old_generations_too(entries: Sequence[Entry], view: Any, *_: Any) -> Sequence[Entry]:
    found = view.workloads.get(entries[0].uid)
    return entries if found is None else (replace(entries[0], state="Used", wants=found.charges, attempt=0),)


@STORIES.of("scale", replaced(rewrite, "_gang_seen", _old_generations_too))
async def a_gang_that_grows_has_both_until_the_change_is_seen(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 4)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    await seen(cluster, leader)
    assert await cluster.ask_to_scale("W", 4, replica) == YES
    await cluster.ask("C", replica)
    await cluster.time(1)
    assert cluster.charge() == 4
    await cluster.scale("W", 4)
    assert await cluster.ask("C", replica) == NO
    await seen(cluster, leader)
    assert cluster.charge() == 4
    assert await cluster.ask_to_scale("W", 5, replica) == NO
    await cluster.scale("W", 1)
    await seen(cluster, leader)
    assert cluster.charge() == 1


async def _unproved(*_: object) -> bool:
    return True


@STORIES.of("proof", replaced(Proof, "is_nothing", _unproved))
async def an_aged_reservation_goes_only_where_its_workload_is_proved_not_to_exist(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    await cluster.time(H + 10)
    assert cluster.charge() == 2
    assert await cluster.ask("C", replica) == NO
    await seen(cluster, leader)
    await cluster.gone("W")
    assert await cluster.ask("X", replica, gpus=2, workload=True) == NO
    await seen(cluster, leader)
    assert await cluster.ask("X", replica, gpus=2, workload=True) == YES
    await cluster.never("X")
    await cluster.time(H + 10)
    assert cluster.charge() == 0


@STORIES.of("carry", replaced(Moving, "_carried", lambda *_: _nothing()))
async def a_gang_moves_with_its_namespace(cluster: Cluster) -> None:
    _, replica = await opened(cluster, 2)
    cluster.tenant("beta", 2)
    await cluster.time(1)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert (cluster.charge("alpha"), cluster.charge("beta")) == (0, 2)
    await cluster.store("W")
    assert await cluster.ask("C", replica) == NO


async def _nothing() -> tuple[()]:
    return ()


@STORIES.of("adopt", replaced(rewrite, "_covers", lambda *_: True))
async def a_workload_that_nobody_booked_becomes_a_gang_once_its_pods_hold_all_of_it(cluster: Cluster) -> None:
    """Applied while nobody was asked: to charge it at once could overdraw the quota."""
    leader, replica = await opened(cluster, 3)
    cluster.api.make(WORKLOADS, {"metadata": {"name": "W", "namespace": "n", "uid": "W"}, "spec": {"gpus": 3}})
    assert await cluster.ask("C", replica) == YES
    await cluster.store("C")
    await seen(cluster, leader)
    assert cluster.charge() == 1
    await cluster.gone("C")
    await seen(cluster, leader)
    for pod in ("w0", "w1", "w2"):
        assert await cluster.ask(pod, replica, gang="W") == YES
        await cluster.store(pod)
    await seen(cluster, leader)
    account = cluster.account()
    assert account is not None
    assert [uid for _, uid in account.gangs] == ["W"]
    await cluster.gone("w1")
    await seen(cluster, leader)
    assert await cluster.ask("D", replica) == NO, "its place is kept while its pods are made again"


@STORIES.of("unbooked", replaced(rewrite, "_is_within", lambda *_: True))
async def what_nobody_booked_counts_once_the_pods_hold_it(cluster: Cluster) -> None:
    """The workload was scaled while the webhook was away."""
    leader, replica = await opened(cluster, 4)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    cluster.api.change(WORKLOADS, ("n", "W"), spec={"gpus": 8})
    await seen(cluster, leader)
    assert cluster.charge() == 2
    assert [await cluster.ask(pod, replica, gang="W") for pod in ("a", "b", "c", "d", "e")] == [YES] * 4 + [NO]


async def _no_end_is_read(self: Proof, gang: Entry) -> bool:
    return await self._workloads.find(gang.kind, gang.namespace, gang.name) is None


@STORIES.of("ended", replaced(Proof, "_came_to_nothing", _no_end_is_read))
async def a_workload_that_ended_while_nobody_watched_holds_nothing(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 2)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    await leader.kill()
    cluster.api.change(WORKLOADS, ("n", "W"), status={"ended": True})
    cluster.truth.become("W", State.ENDED)
    successor = await cluster.process("heir")
    successor.lead()
    await cluster.time(H + 10)
    assert cluster.charge() == 0


@STORIES.of("held", replaced(PodView, "used_without_claims", lambda *_: ()))
async def another_leader_finds_the_pods_of_a_gang(cluster: Cluster) -> None:
    """The new leader remembers no reservation: the pods say of which gang they are."""
    leader, replica = await opened(cluster, 4)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    await cluster.store("W")
    for pod in ("w0", "w1", "w2"):
        assert await cluster.ask(pod, replica, gang="W") == YES
        await cluster.store(pod)
    await leader.kill()
    successor = await cluster.process("heir")
    successor.lead()
    await cluster.time(1)
    assert cluster.charge() == 3


async def joined(cluster: Cluster, replica: Process, name: str, group: str, size: int) -> str:
    """A pod of a group without a workload asks to be admitted."""
    tenant, charge = cluster.tenant_of("n"), Charge(Decimal(1), None)
    whole = GangBooking(group, "PodGroup", "n", group, tenant, (Charge(Decimal(size), None),), of_pods=True)
    pod = Booking(name, "n", tenant, (charge,), name=name, gang=group, group=whole)
    return YES if isinstance(await replica.book(pod), Booked) else NO


@STORIES.of("group", replaced(rewrite, "_largest", lambda _: ()))
async def a_group_without_a_workload_is_admitted_whole_with_its_first_pod(cluster: Cluster) -> None:
    """The group has its slot while one of its pods exists, and loses it with the last."""
    leader, replica = await opened(cluster, 4)
    assert await joined(cluster, replica, "g0", "g", 3) == YES
    assert await joined(cluster, replica, "h0", "h", 2) == NO
    cluster.truth.add(Create("g0", "n", gang="g", state=State.RESERVED))
    await cluster.store("g0")
    await seen(cluster, leader)
    await cluster.time(H + 10)
    assert cluster.charge() == 3
    assert [await joined(cluster, replica, pod, "g", 3) for pod in ("g1", "g2")] == [YES, YES]
    assert await cluster.ask("C", replica, gpus=2) == NO
    await cluster.gone("g0")
    await seen(cluster, leader)
    await cluster.time(2 * H + 10)
    assert cluster.charge() == 0


def _of_any_namespace(self: SlotSums, standing: Sequence[Entry]) -> str:
    return next((slot for (_, uid), slot in self._gangs.items() if uid == standing[0].of), "")


@STORIES.of("namespace", replaced(SlotSums, "_outer", _of_any_namespace))
async def a_pod_of_another_namespace_draws_on_nothing(cluster: Cluster) -> None:
    """Anybody may write a uid: a pod of one namespace holds no part of a gang in another."""
    leader, replica = await opened(cluster, 3)
    cluster.namespace("m", "alpha")
    await cluster.time(1)
    assert await cluster.ask("W", replica, gpus=2, workload=True) == YES
    assert await cluster.ask("forged", replica, namespace="m", gpus=2, gang="W") == NO
    await cluster.store("W")
    await cluster.ask("one", replica, namespace="m", gang="W")
    await cluster.store("one")
    await seen(cluster, leader)
    assert cluster.charge() == 3


@STORIES.tests()
def test_its_story_holds(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)
