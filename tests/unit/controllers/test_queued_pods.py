"""The events about a queued pod and its open gate go to each pod, and once to its workload."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from tests.unit.controllers.stored_events import StoredEvents, until
from tests.unit.controllers.test_queue_statuses import a_gated_pod, waits
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.queued_pods import MOST, MOST_OPENED, QueuedPods, QueueStatuses
from webhook.kube.errors import ApiError, Conflict
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.queue import Queued
from webhook.objects.pods import OwnerReference
from webhook.policy.quota.queue_status import QueuedWorkload, QueueStatus

Tree = dict[str, Any]

LINE = QueueStatus((QueuedWorkload("lab", "Pod/a", "uid-a", "gpu-training", 1, Decimal(1), ""),))


class Pods(StoredEvents):
    """An API server that has these pods, each of a ReplicaSet of a Deployment, and keeps events about them."""

    def __init__(self) -> None:
        super().__init__()
        self.patches: list[tuple[str, Tree]] = []

    async def patch(self, path: str, body: Tree, *, strategic: bool = False) -> Tree:
        if not strategic:
            return await super().patch(path, body)
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        self.patches.append((path, body))
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
        name = path.split("/")[-2]
        return {"metadata": {"name": name, "namespace": "lab", "uid": f"uid-{name}", "ownerReferences": [owner]}}


class Story:
    def __init__(self) -> None:
        self.pods, self.events = Pods(), StoredEvents()
        self.writer = EventWriter(self.events, interval=0.01, pause=0.001)  # type: ignore[arg-type]
        self.queued = QueuedPods(self.pods, self.writer, self.outermost, pause=0.0)  # type: ignore[arg-type]
        self.lines = QueueStatuses(lambda _: "ReplicaSet/web-1", lambda _: None, self.queued.show, interval=0.0)

    async def outermost(self, *_: object) -> OwnerReference | None:
        return OwnerReference("apps/v1", "Deployment", "web", "deployment", controller=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Story"]:
        tasks = [asyncio.create_task(each.run()) for each in (self.queued, self.writer)]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def tell(self, line: Sequence[Queued]) -> None:
        self.lines.tell("alpha", line)
        await asyncio.sleep(0.03)

    def open(self, pod: GatedPod, seconds: float | None = 750.0, *, waited: bool = True) -> None:
        if waited:
            self.queued.show("beta", LINE, [(1, waits(pod))])
            self.queued.show("beta", QueueStatus(), [])
        self.queued.opened(pod.uid, pod.holding, seconds)


def a_gang(*names: str) -> Queued:
    """One that waits, of pods of these names."""
    one = waits(a_gated_pod(names[0]), short=True, gang="train", pods=len(names))
    return replace(one, unit=replace(one.unit, pods=tuple(map(a_gated_pod, names))))


async def test_each_pod_that_waits_alone_is_reported_and_its_deployment_once() -> None:
    async with Story().running() as story:
        line = [waits(a_gated_pod(name, controller="rs"), short=True) for name in ("a", "b")]
        await story.tell(line)
        await story.tell(line)
        sentence = "waits for 1 GPU: tenant alpha uses 6 of 6 of gpu-training; position 1 of 1 when it came."
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        assert story.pods.patches == [
            (
                f"/api/v1/namespaces/lab/pods/{name}/status",
                {
                    "metadata": {"uid": f"uid-{name}", "resourceVersion": "7"},
                    "status": {"conditions": [{**condition, "message": f"{sentence} See TenantQuota/alpha."}]},
                },
            )
            for name in ("a", "b")
        ]
        await until(lambda: bool(story.events.events))
        assert story.events.about("web") == [("Queued", 1, f"{sentence} See TenantQuota/alpha.")]
        for name in ("a", "b"):
            assert story.pods.about(name) == [("Queued", 1, f"{sentence} See TenantQuota/alpha.")]


async def test_of_a_gang_the_first_pod_gets_the_condition_and_each_an_event() -> None:
    async with Story().running() as story:
        await story.tell([a_gang("a", "b", "c")])
        ((path, _),) = story.pods.patches
        assert path.endswith("/pods/a/status")
        assert [len(story.pods.about(name)) for name in ("a", "b", "c")] == [1, 1, 1]


async def test_pods_of_one_place_wait_for_the_row_that_its_first_pod_lacks() -> None:
    async with Story().running() as story:
        first, second = waits(a_gated_pod("p"), short=True), waits(a_gated_pod("p2"))
        story.queued.show("alpha", LINE, [(1, first), (1, second)])
        await until(lambda: bool(story.pods.about("p2")))
        ((_, _, sentence),) = story.pods.about("p2")
        assert sentence.startswith("waits for 1 GPU: tenant alpha uses ")


async def test_pods_that_the_leader_before_reported_are_not_reported_again() -> None:
    async with Story().running() as story:
        await story.tell([waits(a_gated_pod("a", is_reported=True))])
        assert not story.pods.patches
        assert not story.pods.requests


async def test_an_event_of_the_leader_before_stays_as_it_is() -> None:
    story = Story()
    async with story.running():
        await story.tell([a_gang("a", "b")])
    next_leader = Story()
    next_leader.pods = next_leader.queued._client = story.pods  # type: ignore[assignment]
    async with next_leader.running():
        await next_leader.tell([a_gang("a", "b")])
        await next_leader.tell([a_gang("a", "b")])
    assert [count for _, count, _ in story.pods.about("b")] == [1]
    assert sum(each.startswith("POST") for each in story.pods.requests) == 4, "each leader tries each pod once"


async def test_of_many_some_are_reported_at_a_time() -> None:
    async with Story().running() as story:
        line = [waits(a_gated_pod(f"p{number}")) for number in range(MOST + 5)]
        await story.tell(line)
        await until(lambda: len(story.pods.patches) == MOST)
        await story.tell(line)
        await until(lambda: len(story.pods.patches) == MOST + 5)


async def test_the_pods_of_another_tenant_do_not_wait_for_those_of_a_long_line() -> None:
    story = Story()
    story.lines.tell("alpha", [waits(a_gated_pod(f"p{number}")) for number in range(MOST)])
    story.lines.tell("beta", [waits(a_gated_pod("other"))])
    await asyncio.sleep(0.01)
    async with story.running():
        await until(lambda: any("/other/" in path for path, _ in story.pods.patches))
    assert "/other/" in story.pods.patches[1][0]


async def test_a_pod_that_has_changed_is_reported_with_the_next_status() -> None:
    async with Story().running() as story:
        story.pods.fault = Conflict("the object has been modified", 409)
        await story.tell([waits(a_gated_pod("a"))])
        assert not story.pods.patches
        story.pods.fault = None
        await story.tell([waits(a_gated_pod("a"))])
        assert len(story.pods.patches) == 1


async def test_it_goes_on_where_the_api_server_refuses() -> None:
    async with Story().running() as story:
        story.pods.fault = ApiError("forbidden")
        await story.tell([waits(a_gated_pod("a"))])
        story.pods.fault = None
        await story.tell([waits(a_gated_pod("b"))])
        assert [path.split("/")[-2] for path, _ in story.pods.patches] == ["b"]


async def test_a_pod_whose_gate_opens_says_so() -> None:
    async with Story().running() as story:
        story.open(a_gated_pod("a"))
        story.open(a_gated_pod("b"), None)
        await until(lambda: len(story.pods.events) == 2)
        sentence = "its gate is open now, and the scheduler looks for a node"
        assert story.pods.about("a") == [("Admitted", 1, f"was queued for 12 minutes; {sentence}")]
        assert story.pods.about("b") == [("Admitted", 1, f"was queued for some time; {sentence}")]
        assert {each["type"] for each in story.pods.events.values()} == {"Normal"}


async def test_a_pod_that_had_room_when_it_came_gets_no_event() -> None:
    """Every pod of a row that holds is gated for a moment."""
    async with Story().running() as story:
        story.open(a_gated_pod("a"), 0.2, waited=False)
        story.open(a_gated_pod("reported-by-another-leader", is_reported=True), waited=False)
        await until(lambda: bool(story.pods.events))
        await asyncio.sleep(0.01)
        assert story.pods.about("a") == []


async def test_a_pod_that_runs_before_its_wait_was_reported_gets_that_event_alone() -> None:
    story = Story()
    story.lines.tell("alpha", [a_gang("a", "b")])
    await asyncio.sleep(0.01)
    for name in ("a", "b"):
        story.open(a_gated_pod(name))
    async with story.running():
        await until(lambda: len(story.pods.events) == 2)
        await asyncio.sleep(0.01)
    assert not story.pods.patches
    assert {reason for name in ("a", "b") for reason, _, _ in story.pods.about(name)} == {"Admitted"}


async def test_a_quota_that_lets_thousands_in_at_once_leaves_a_bounded_number_to_tell() -> None:
    story = Story()
    for number in range(MOST_OPENED + 500):
        story.open(a_gated_pod(f"p{number}"))
    async with story.running():
        await until(lambda: len(story.pods.requests) == MOST_OPENED)
        await asyncio.sleep(0.01)
    assert len(story.pods.requests) == MOST_OPENED


async def test_a_quota_that_lets_thousands_in_at_once_silences_nobody_else() -> None:
    story, other = Story(), a_gated_pod("other")
    story.open(replace(other, holding=replace(other.holding, namespace="elsewhere")))
    for number in range(MOST_OPENED + 500):
        story.open(a_gated_pod(f"p{number}"))
    story.lines.tell("gamma", [waits(a_gated_pod("waits"))])
    await asyncio.sleep(0.01)
    async with story.running():
        await until(lambda: bool(story.pods.patches))
        assert len(story.pods.events) < MOST_OPENED // 2, "it did not wait for them"
    assert story.pods.about("other")
