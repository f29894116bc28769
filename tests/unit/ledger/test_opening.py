"""The gate of a queued pod is opened at the version of the pod that was seen."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from webhook.kube.errors import Conflict
from webhook.ledger.leader.opening import Opening
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.terms import Leading
from webhook.ledger.protocol import Gated, Holding
from webhook.policy.quota.charges import Charge


@dataclass
class ChangingPod:
    """A world in which another controller has changed the pod before each try but the last."""

    newest: str
    tries: list[str] = field(default_factory=list)

    def opens_all_gates(self, _: str) -> bool:
        return True

    def tell_queue(self, *_: object) -> None: ...

    async def open_gate(self, _: str, holding: Holding) -> None:
        assert holding.gated is not None
        self.tries.append(holding.gated.version)
        if holding.gated.version != self.newest:
            raise Conflict("PATCH", "/api/v1/namespaces/n/pods/a", 409, b"")


def gated(version: str) -> Holding:
    return Holding("n", Charge(Decimal(1)), name="a", gated=Gated(0, "2026-11-01T00:00:00Z", version))


async def test_a_pod_that_has_changed_is_asked_again_as_soon_as_the_change_is_seen_and_not_before() -> None:
    view, world = PodView(lambda _: None, lambda: 0.0, lambda: 0.0), ChangingPod(newest="2")
    nothing: Any = SimpleNamespace(versions=SimpleNamespace(names=tuple, newest=lambda _: None))
    opening = Opening(Leading(nothing, nothing, view, world, 15.0, lambda: 0.0))  # type: ignore[arg-type]
    running = asyncio.create_task(opening.run())
    view.observe("a", gated("1"))
    for _ in range(3):
        await opening.round()
        await asyncio.sleep(0.01)
    assert world.tries == ["1"], "the API server would refuse it again"
    view.observe("a", gated("2"))
    for _ in range(3):
        await opening.round()
        await asyncio.sleep(0.01)
    assert world.tries == ["1", "2"], "the watch shows an open gate later"
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_gate_that_somebody_keeps_shut_for_a_day_stops_no_leader() -> None:
    now = 0.0
    view, world = PodView(lambda _: None, lambda: now, lambda: now), ChangingPod(newest="never")
    nothing: Any = SimpleNamespace(versions=SimpleNamespace(names=tuple, newest=lambda _: None))
    opening = Opening(Leading(nothing, nothing, view, world, 15.0, lambda: now))  # type: ignore[arg-type]
    running = asyncio.create_task(opening.run())
    view.observe("a", gated("1"))
    for _ in range(1500):
        now += 60
        await opening.round()
        for _ in range(6):  # the task wakes, opens, and ends its round
            await asyncio.sleep(0)
    assert len(world.tries) > 1100, "a power of two of so many tries is no float"
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
