"""The rules of Hold: with each its story holds, without it the story fails (docs/decisions/hold.md)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from tests.ledger.cluster import YES, Cluster
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import PODS
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from webhook.kube.errors import ApiError
from webhook.ledger import draft
from webhook.ledger.account import Account
from webhook.ledger.draft import Draft
from webhook.ledger.leader import opening, queue, vacant_slots, workload_view
from webhook.ledger.leader.expiry import Proof
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.vacant_slots import VacantSlots
from webhook.ledger.leader.workload_view import WorkloadView

STORIES = Stories()


async def holding(cluster: Cluster, quota: int, **more: Any) -> Process:
    """A tenant that holds, with one namespace, and its leader."""
    cluster.tenant("alpha", quota)
    cluster.exceeding("alpha", "Hold", **more)
    cluster.namespace("n", "alpha")
    leader = await cluster.process("leader")
    leader.lead(first=True)
    await cluster.time(1)
    return leader


async def next_leader(cluster: Cluster, *paused: str) -> Process:
    """Another process gets the Lease; requests of it that begin so wait."""
    successor = await cluster.process("heir")
    successor.client.hold(*paused)
    successor.lead()
    await cluster.time(1)
    return successor


@STORIES.of("promise", replaced(Process, "opens_all_gates", lambda *_: True))
async def a_gate_is_opened_only_of_what_is_booked(cluster: Cluster) -> None:
    await holding(cluster, 2)
    for name in "ABC":
        await cluster.gated(name)
    await cluster.time(1)
    assert cluster.open() == ["A", "B"]
    assert cluster.charge() == 2
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["B", "C"]


async def _is_nothing(*_: object) -> bool:
    return True


@STORIES.of("gated-stays", replaced(Proof, "_is_no_pod", _is_nothing))
async def what_is_booked_for_a_gated_pod_stays_however_old_it_is(cluster: Cluster) -> None:
    """A leader has stopped between booking and opening, and its request is still on its way."""
    slow = await holding(cluster, 1)
    slow.client.hold("PATCH")
    await cluster.gated("A")
    await cluster.time(1)
    slow.pause()
    await cluster.gated("B", priority=1000)
    await next_leader(cluster, "PATCH /api/v1/namespaces/n/pods/A")
    await cluster.time(3 * H)
    slow.client.release()
    await cluster.time(1)
    assert cluster.open() == ["A"]
    assert cluster.charge() == 1


async def _at_whatever_version(self: Process, _: str, pod: Any) -> None:
    where = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    await self.client.patch(where, {"metadata": {}, "spec": {"schedulingGates": None}})


@STORIES.of("version", replaced(Process, "open_gate", _at_whatever_version))
async def a_pod_that_has_changed_is_looked_at_again(cluster: Cluster) -> None:
    """The pod asks for more by now; in a cluster it would have got a node selector, and so count on another row."""
    leader = await holding(cluster, 1)
    leader.client.hold("PATCH")
    await cluster.gated("A")
    await cluster.time(1)
    stored = cluster.api.history(PODS).objects["n", "A"]
    cluster.truth.creates["A"] = replace(cluster.truth.creates["A"], gpus=2)
    cluster.api.change(PODS, ("n", "A"), metadata={**stored["metadata"], "labels": {"gpus": "2"}})
    await cluster.balance()
    leader.client.release()
    await cluster.time(1)
    assert cluster.open() == []
    assert leader.line["alpha"] == ["A"]


@STORIES.of("strict", replaced(queue._Queue, "_reserve", lambda *_: None))
async def nobody_passes_the_first_of_a_strict_line(cluster: Cluster) -> None:
    await holding(cluster, 2)
    await cluster.gated("A")
    await cluster.time(1)
    await cluster.gated("B", gpus=2)
    await cluster.gated("C")
    await cluster.time(1)
    assert cluster.open() == ["A"]
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["B"]


@STORIES.of("reserve", replaced(queue._Queue, "_until", lambda *_: 0))
async def it_keeps_what_is_free_for_so_long_and_no_longer(cluster: Cluster) -> None:
    await holding(cluster, 2, reserveSeconds=60)
    await cluster.gated("A")
    await cluster.time(1)
    await cluster.gated("B", gpus=2)
    await cluster.gated("C")
    await cluster.time(50)
    assert cluster.open() == ["A"]
    await cluster.time(20)
    assert cluster.open() == ["A", "C"]


def _in_any_slot(self: Draft, _: object, entry: Any) -> list[Any]:
    left = [each.uid for each in self._entries.values() if each.state == "Vacant" and each.maker == entry.maker]
    return [*(structs.replace(entry, slot=uid) for uid in left), entry]


@STORIES.of("one heir", replaced(Draft, "_tries", _in_any_slot))
async def a_slot_is_taken_once_also_while_the_gate_of_its_replacement_is_still_shut(cluster: Cluster) -> None:
    leader = await holding(cluster, 3)
    await cluster.gated("A", controller="rs")
    await cluster.gated("B")
    await cluster.time(1)
    await cluster.gated("C", gpus=3, priority=1000)
    leader.client.hold("PATCH")
    await cluster.deleted("A")
    await cluster.gated("A2", controller="rs")
    await cluster.time(1)
    await cluster.gated("A3", controller="rs")
    await cluster.time(1)
    leader.client.release()
    await cluster.time(1)
    assert cluster.open() == ["B", "A2"]


@STORIES.of("lapsed", replaced(VacantSlots, "put", lambda *_: None))
async def gpus_reserved_for_another_are_not_taken_by_a_pod_that_lost_its_own_to_the_queue(cluster: Cluster) -> None:
    await holding(cluster, 2)
    await cluster.gated("A", controller="mine")
    await cluster.gated("B", controller="yours")
    await cluster.time(1)
    await cluster.gated("C")
    await cluster.gone("A")
    await cluster.time(1)
    await cluster.gated("A2", controller="mine")
    await cluster.preempt("B")
    await cluster.gone("B")
    await cluster.time(1)
    assert cluster.open() == ["C"]
    await cluster.gated("B2", controller="yours")
    await cluster.time(1)
    assert cluster.open() == ["C", "B2"]


@STORIES.of("in vain", replaced(queue, "shortfall", lambda *_: None))
async def a_workload_that_can_never_fit_is_not_the_head_whose_time_ends(cluster: Cluster) -> None:
    """The head would otherwise reserve nothing any more as soon as its time had ended."""
    await holding(cluster, 2, reserveSeconds=60)
    await cluster.gated("A")
    await cluster.gated("large", gpus=3)
    await cluster.time(100)
    await cluster.gated("B", gpus=2)
    await cluster.gated("C")
    await cluster.time(50)
    assert cluster.open() == ["A"]
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["B"]


@STORIES.of("rests", replaced(opening, "LONGEST_PAUSE", 0.0))
async def gates_that_cannot_be_opened_hold_up_nobody_elses(cluster: Cluster) -> None:
    """They are of a higher tier, and each try takes a while."""
    leader = await holding(cluster, 100)
    open_gate = leader.open_gate

    async def refused(uid: str, pod: Any) -> None:
        if not uid.startswith("X"):
            return await open_gate(uid, pod)
        await asyncio.sleep(0.1)
        raise ApiError("refused")

    leader.open_gate = refused  # type: ignore[method-assign]
    for number in range(60):
        await cluster.gated(f"X{number}", priority=1000)
    await cluster.time(2 * H)
    for name in "ABCDEFGH":
        await cluster.gated(name)
        await cluster.time(0.2)
    await cluster.time(1)
    assert cluster.open() == [*"ABCDEFGH"]


@STORIES.of("never", replaced(queue, "shortfall", lambda *_: None))
async def one_that_can_never_fit_any_more_blocks_nobody(cluster: Cluster) -> None:
    await holding(cluster, 2)
    await cluster.gated("A")
    await cluster.time(1)
    await cluster.gated("B", gpus=2)
    cluster.lower("alpha", 1)
    await cluster.gated("C")
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["C"]


@STORIES.of("tier", replaced(queue, "_sort_key", lambda pod, _: (0, "", pod.seen)))
async def a_higher_tier_goes_first_and_then_the_older(cluster: Cluster) -> None:
    leader = await holding(cluster, 1)
    await cluster.gated("A")
    await cluster.time(1)
    for name, priority in (("B", 100), ("C", 100), ("D", 1000)):
        await cluster.time(2)
        await cluster.gated(name, priority=priority)
    await cluster.time(1)
    assert leader.line["alpha"] == ["D", "B", "C"]


@STORIES.of("heir", replaced(draft, "_is_replaceable", lambda _: False))
async def a_pod_that_is_made_again_takes_the_position_of_its_predecessor(cluster: Cluster) -> None:
    await holding(cluster, 1)
    await cluster.gated("A", controller="rs")
    await cluster.time(1)
    await cluster.gated("B", priority=1000)
    await cluster.time(1)
    await cluster.gated("C", controller="rs")
    await cluster.deleted("A")
    await cluster.time(1)
    assert cluster.open() == ["C"]
    await cluster.gated("D", controller="rs")
    await cluster.deleted("C")
    await cluster.time(1)
    assert cluster.open() == ["D"]


@STORIES.of("keep", replaced(VacantSlots, "put", lambda *_: None))
async def the_position_of_a_deleted_pod_is_reserved_until_its_controller_makes_the_next(cluster: Cluster) -> None:
    """A StatefulSet, and a Deployment that recreates, make it only when the old one is gone."""
    await holding(cluster, 1)
    await cluster.gated("A", controller="rs")
    await cluster.time(1)
    await cluster.gated("B", priority=1000)
    await cluster.preempt("A")
    await cluster.gone("A")
    await cluster.time(2)
    assert cluster.open() == []
    await cluster.gated("C", controller="rs")
    await cluster.time(1)
    assert cluster.open() == ["C"]
    # No controller makes another one, so it is not reserved for long.
    await cluster.preempt("C")
    await cluster.gone("C")
    await cluster.time(vacant_slots.PREEMPTED_SECONDS + 1)
    assert cluster.open() == ["B"]


@STORIES.of("lowered", lambda monkeypatch: monkeypatch.setattr(draft, "any", lambda _: False, raising=False))
async def an_ended_pod_is_not_replaced_beyond_a_quota_that_was_lowered(cluster: Cluster) -> None:
    await holding(cluster, 2)
    await cluster.gated("A", controller="rs")
    await cluster.gated("B", controller="rs")
    await cluster.time(1)
    cluster.lower("alpha", 1)
    await cluster.time(1)
    await cluster.gated("A2", controller="rs")
    await cluster.deleted("A")
    await cluster.time(10)
    assert cluster.open() == ["B"]


@STORIES.of("evicted", replaced(vacant_slots, "PREEMPTED_SECONDS", 5))
async def an_evicted_job_keeps_its_place_while_its_controller_waits(cluster: Cluster) -> None:
    """The Job controller makes the next pod 10 s after the end of the last one."""
    await holding(cluster, 1)
    await cluster.gated("A", controller="job")
    await cluster.time(1)
    await cluster.gated("B", priority=1000)
    await cluster.preempt("A")
    await cluster.gone("A")
    await cluster.time(10)
    await cluster.gated("A2", controller="job")
    await cluster.time(1)
    assert cluster.open() == ["A2"]


@STORIES.of("no queue", replaced(VacantSlots, "forget_all", lambda *_: None))
async def a_position_is_not_reserved_next_to_a_pod_that_came_while_nobody_queued(cluster: Cluster) -> None:
    """Both would count, until the time of the place is over."""
    leader = await holding(cluster, 3)
    await cluster.gated("A", controller="job")
    await cluster.time(1)
    await cluster.preempt("A")
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.charge() == 1
    cluster.exceeding("alpha", "Deny")
    await cluster.time(1)
    assert await cluster.ask("A2", leader, controller="job") == YES
    await cluster.store("A2")
    await cluster.time(1)
    cluster.exceeding("alpha", "Hold")
    await cluster.time(1)
    assert cluster.charge() == 1


@STORIES.of("no larger", replaced(Draft, "adds_nothing", lambda *_: True))
async def nobody_takes_a_place_that_is_smaller(cluster: Cluster) -> None:
    """The pod would add to the row, so it waits for room there."""
    await holding(cluster, 3)
    await cluster.gated("A", controller="rs")
    await cluster.gated("B", gpus=2)
    await cluster.time(1)
    await cluster.gated("C", gpus=3, priority=1000)
    await cluster.gated("D", gpus=2, controller="rs")
    await cluster.deleted("A")
    await cluster.deleted("B")
    await cluster.time(6)
    assert cluster.open() == ["C"]


@STORIES.of("no more", replaced(Draft, "adds_nothing", lambda *_: True))
async def a_gang_lets_no_more_pass_than_it_asks_for(cluster: Cluster) -> None:
    await holding(cluster, 3)
    await cluster.declared("G", gpus=2)
    await cluster.gated("A", gang="G")
    await cluster.gated("B", gang="G")
    await cluster.time(1)
    await cluster.gated("C", gpus=3, priority=1000)
    await cluster.gated("D", gang="G")
    await cluster.time(1)
    assert cluster.open() == ["A", "B"]


@STORIES.of("beyond the least", replaced(VacantSlots, "put", lambda *_: None))
async def a_pod_beyond_the_least_of_its_gang_takes_the_place_of_its_predecessor(cluster: Cluster) -> None:
    """A RayCluster runs with more workers than it can't do without, and one of them is preempted."""
    await holding(cluster, 3)
    await cluster.declared("G", gpus=2)
    for name in "ABC":
        await cluster.gated(name, gang="G")
    await cluster.time(1)
    await cluster.gated("D", priority=1000)
    await cluster.preempt("C")
    await cluster.gone("C")
    await cluster.time(10)
    assert cluster.open() == ["A", "B"]
    await cluster.gated("C2", gang="G")
    await cluster.time(1)
    assert cluster.open() == ["A", "B", "C2"]
    await cluster.gated("A2", gang="G")
    await cluster.gated("more", gang="G")
    await cluster.deleted("A")
    await cluster.time(1)
    assert cluster.open() == ["B", "C2", "A2"]


@STORIES.of("whole", replaced(queue, "queued_with", lambda *_: None))
async def a_gang_is_booked_whole_before_any_of_its_pods_goes(cluster: Cluster) -> None:
    await holding(cluster, 3)
    await cluster.gated("A", gpus=2)
    await cluster.time(1)
    await cluster.declared("G", gpus=2)
    await cluster.gated("B", gang="G")
    await cluster.gated("C", gang="G")
    await cluster.time(1)
    assert cluster.open() == ["A"]
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["B", "C"]
    assert cluster.charge() == 2


@STORIES.of("grows from one", replaced(queue, "book_with_its_pods", lambda copy, _, gang: copy.book(gang)))
async def a_job_of_one_pod_that_grows_needs_no_room_for_that_pod_again(cluster: Cluster) -> None:
    """The pod has counted alone so far. The Job would otherwise wait for five of four GPUs, and block the queue."""
    await holding(cluster, 4)
    await cluster.gated("A", controller="G")
    await cluster.time(1)
    await cluster.declared("G", gpus=4)
    for name in "BCD":
        await cluster.gated(name, gang="G")
    await cluster.time(2)
    await cluster.gated("E")
    await cluster.time(1)
    assert cluster.open() == ["A", "B", "C", "D"]
    assert cluster.charge() == 4
    await next_leader(cluster)
    await cluster.gone("B")
    await cluster.gated("B2", gang="G")
    await cluster.time(1)
    assert cluster.open() == ["A", "C", "D", "B2"]


def _of_its_gang(pod: GatedPod, _: PodView) -> tuple[str, str] | None:
    return (pod.holding.namespace, pod.holding.gang) if pod.holding.gang else None


@STORIES.of("orphan", replaced(queue, "queued_with", _of_its_gang))
async def a_pod_that_outlives_its_workload_waits_by_itself(cluster: Cluster) -> None:
    await holding(cluster, 1)
    await cluster.gated("A", gang="G", controller="")
    await cluster.time(1)
    assert cluster.open() == ["A"]


def _of_its_mark(pod: GatedPod, _: PodView) -> tuple[str, str]:
    return pod.holding.namespace, pod.holding.gang


@STORIES.of("left alone", replaced(queue, "queued_with", _of_its_mark))
async def a_pod_waits_by_itself_whose_job_outlives_the_gang_that_made_it(cluster: Cluster) -> None:
    """A JobSet was deleted without its Jobs. The pod's mark names it for ever."""
    await holding(cluster, 1)
    await cluster.declared("job", gpus=1)
    await cluster.gated("A", gang="jobset", controller="job")
    await cluster.time(1)
    assert cluster.open() == ["A"]


@STORIES.of("gone", replaced(WorkloadView, "is_gone", lambda *_: False))
async def pods_wait_by_themselves_a_minute_after_their_workload_was_deleted_without_them(cluster: Cluster) -> None:
    """The garbage collector may take a minute to delete them. The next leader begins to count again."""
    await holding(cluster, 1)
    await cluster.gated("A", gang="lws", controller="sts")
    await cluster.gated("B", gang="lws", controller="sts")
    await cluster.time(50)
    assert cluster.open() == []
    await cluster.time(15)
    assert cluster.open() == ["A"]
    await next_leader(cluster)
    await cluster.gone("A")
    await cluster.time(65)
    assert cluster.open() == ["B"]


@STORIES.of("groups", replaced(workload_view, "_workload", str))
async def each_further_group_of_a_workload_is_booked_whole(cluster: Cluster) -> None:
    """The leaders of all groups of a LeaderWorkerSet are created first."""
    await holding(cluster, 5)
    await cluster.declared("G", gpus=2)
    for name, group in {"A": "G", "B": "G/1", "C": "G/2", "A1": "G", "B1": "G/1", "C1": "G/2"}.items():
        await cluster.gated(name, gang=group, controller="sts")
    await cluster.time(2)
    assert cluster.open() == ["A", "B", "A1", "B1"]
    assert cluster.charge() == 4
    await cluster.gone("B")
    await cluster.gone("B1")
    await cluster.time(2)
    assert cluster.open() == ["A", "C", "A1", "C1"]


def _by_its_own_age(pod: GatedPod, _: object) -> tuple[int, str, int]:
    return -pod.priority, pod.gated.since, pod.seen


@STORIES.of("age", replaced(queue, "_sort_key", _by_its_own_age))
async def a_gang_is_as_old_as_its_workload(cluster: Cluster) -> None:
    """Its pod has crashed, and its controller waits before it makes the next: it does not begin at the end again."""
    await holding(cluster, 2)
    await cluster.gated("A", gpus=2)
    await cluster.time(1)
    await cluster.declared("G", gpus=2)
    await cluster.time(5)
    await cluster.gated("B", gpus=2)
    await cluster.time(5)
    await cluster.gated("new", gang="G")
    await cluster.gated("newer", gang="G")
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["new", "newer"]


def _reserved_alone(account: Account, view: PodView) -> list[GatedPod]:
    return [each for each in queue.admitted_pods(account, view) if each.asks_for_gpus]


@STORIES.of("members", replaced(opening, "admitted_pods", _reserved_alone))
async def members_without_gpus_go_with_their_gang(cluster: Cluster) -> None:
    """The worker may be made only when the driver runs, so that the driver alone gets the gang admitted."""
    await holding(cluster, 3)
    await cluster.gated("A", gpus=3)
    await cluster.time(1)
    await cluster.declared("G", gpus=2)
    await cluster.gated("driver", gpus=0, gang="G")
    await cluster.time(1)
    assert cluster.open() == ["A"]
    await cluster.gone("A")
    await cluster.time(1)
    assert cluster.open() == ["driver"]
    assert cluster.charge() == 2
    await cluster.gated("worker", gpus=2, gang="G")
    await cluster.gated("lone", gpus=0)
    await cluster.time(1)
    assert cluster.open() == ["driver", "worker", "lone"]
    assert cluster.charge() == 2


@STORIES.of("finish", replaced(opening, "admitted_pods", lambda *_: iter(())))
async def the_next_leader_opens_what_one_has_booked(cluster: Cluster) -> None:
    dying = await holding(cluster, 1)
    dying.client.hold("PATCH")
    await cluster.gated("A")
    await cluster.time(1)
    await dying.kill()
    await next_leader(cluster)
    assert cluster.open() == ["A"]


@STORIES.of("missed", replaced(PodView, "inherit", lambda *_: None))
async def slots_of_pods_that_ended_while_nobody_led_stay_reserved(cluster: Cluster) -> None:
    dying = await holding(cluster, 2)
    await cluster.gated("A", controller="G")
    await cluster.gated("B", controller="G")
    await cluster.time(1)
    await cluster.gated("C", priority=1000)
    await cluster.time(1)
    await dying.kill()
    await cluster.deleted("A")
    await cluster.gated("A2", controller="G")
    await next_leader(cluster)
    assert cluster.open() == ["B", "A2"]
    await cluster.gone("B")
    await cluster.time(10)
    assert cluster.open() == ["C", "A2"]


@STORIES.tests()
def test_with_the_rule(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)
