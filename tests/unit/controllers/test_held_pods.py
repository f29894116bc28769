"""Who is told that a pod waits for its turn: the first pod of what waits as one, and its workload once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.controllers.events_kept import EventsKept, until
from tests.unit.controllers.test_held_lines import a_gated_pod, waits
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.held_lines import HeldLines
from webhook.controllers.held_pods import MOST, HeldPods
from webhook.kube.errors import ApiError, Conflict
from webhook.ledger.leader.line_entry import InLine
from webhook.objects.pods import OwnerReference

Tree = dict[str, Any]


class Pods:
    """An API server that has these pods, each of a ReplicaSet of a Deployment."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Tree]] = []
        self.fault: ApiError | None = None

    async def patch(self, path: str, body: Tree, *, strategic: bool) -> Tree:
        assert strategic
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        self.told.append((path, body))
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
        name = path.split("/")[-2]
        return {"metadata": {"name": name, "namespace": "lab", "uid": f"uid-{name}", "ownerReferences": [owner]}}


class Story:
    def __init__(self) -> None:
        self.pods, self.events = Pods(), EventsKept()
        self.writer = EventWriter(self.events, interval=0.01, pause=0.001)  # type: ignore[arg-type]
        self.held = HeldPods(self.pods, self.writer, self.outermost, pause=0.0)  # type: ignore[arg-type]
        self.lines = HeldLines(lambda _: "ReplicaSet/web-1", lambda _: None, self.held.show, interval=0.0)

    async def outermost(self, *_: object) -> OwnerReference | None:
        return OwnerReference("apps/v1", "Deployment", "web", "deployment", controller=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Story"]:
        tasks = [asyncio.create_task(each.run()) for each in (self.held, self.writer)]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def tell(self, line: Sequence[InLine]) -> None:
        self.lines.tell("alpha", line)
        await asyncio.sleep(0.02)


async def test_each_pod_that_waits_alone_is_told_and_its_deployment_once() -> None:
    async with Story().running() as story:
        line = [waits(a_gated_pod(name, controller="rs"), short=True) for name in ("a", "b")]
        await story.tell(line)
        await story.tell(line)
        told = "waits for 1 GPU: tenant alpha uses 6 of 6 of gpu-training; place 1 of 1 when it came."
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        assert story.pods.told == [
            (
                f"/api/v1/namespaces/lab/pods/{name}/status",
                {
                    "metadata": {"uid": f"uid-{name}", "resourceVersion": "7"},
                    "status": {"conditions": [{**condition, "message": f"{told} See TenantQuota/alpha."}]},
                },
            )
            for name in ("a", "b")
        ]
        await until(lambda: bool(story.events.events))
        assert story.events.about("web") == [("Held", 1, f"{told} See TenantQuota/alpha.")]


async def test_a_gang_is_told_on_its_first_pod() -> None:
    async with Story().running() as story:
        await story.tell([waits(a_gated_pod("a"), short=True, gang="train", pods=64)])
        ((path, _),) = story.pods.told
        assert path.endswith("/pods/a/status")


async def test_who_was_told_by_the_leader_before_is_not_told_again() -> None:
    async with Story().running() as story:
        await story.tell([waits(a_gated_pod("a", told=True))])
        assert not story.pods.told


async def test_of_many_some_are_told_at_a_time() -> None:
    async with Story().running() as story:
        line = [waits(a_gated_pod(f"p{number}")) for number in range(MOST + 5)]
        await story.tell(line)
        assert len(story.pods.told) == MOST
        await story.tell(line)
        assert len(story.pods.told) == MOST + 5


async def test_a_pod_that_has_changed_is_told_with_the_next_line() -> None:
    async with Story().running() as story:
        story.pods.fault = Conflict("the object has been modified", 409)
        await story.tell([waits(a_gated_pod("a"))])
        assert not story.pods.told
        story.pods.fault = None
        await story.tell([waits(a_gated_pod("a"))])
        assert len(story.pods.told) == 1
