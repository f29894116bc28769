"""The queue is shown no more often than needed, and not at all while it is unknown."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal

from tests.unit.clock import Clock
from tests.unit.controllers.stored_events import until
from webhook.controllers.queued_pods import QueueStatuses
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.queue import Queued, QueuedUnit
from webhook.ledger.protocol import GangBooking, Gated, Holding
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.quota.queue_status import QueueStatus
from webhook.policy.values.tenants import QuotaRow, Tenant

ROW = QuotaRow(Decimal(6), "gpu-training")


def a_gated_pod(name: str, *, controller: str = "", is_reported: bool = False) -> GatedPod:
    charge = Charge(Decimal(1), "gpu-training")
    gated = Gated(1000, "2026-11-26T17:00:00Z", "7", is_reported)
    return GatedPod(f"uid-{name}", Holding("lab", charge, controller=controller, name=name, gated=gated))


def waits(pod: GatedPod, *, short: bool = False, gang: str = "", pods: int = 1) -> Queued:
    charge = Charge(Decimal(pods), "gpu-training")
    booking = GangBooking(f"uid-{gang}", "Job.batch", "lab", gang, Tenant("alpha"), (charge,)) if gang else None
    no_room = Shortfall(charge, ROW, {ROW: Decimal(6)}) if short else None
    return Queued(QueuedUnit((pod,) * pods, (-1000, "", 0), booking), no_room)


def _workload_of(uid: str) -> str:
    return "ReplicaSet/web" if uid == "uid-p" else ""


class Shown:
    """The lines of a leader, and what they tell."""

    def __init__(self, interval: float = 0.05) -> None:
        self.changed: list[str] = []
        self.shown: list[tuple[QueueStatus, list[int]]] = []
        self.clock = Clock()
        self.lines = QueueStatuses(_workload_of, self.changed.append, self._shown, interval, self.clock)

    def _shown(self, _: str, line: QueueStatus, waiting: Sequence[tuple[int, Queued]]) -> None:
        self.shown.append((line, [nth for nth, _ in waiting]))

    def status(self, before: dict[str, object] | None = None, *, has_queue: bool = True) -> dict[str, object]:
        return self.lines.status("alpha", before or {}, has_queue=has_queue)


async def test_a_line_is_shown_with_what_waits_in_it() -> None:
    statuses = Shown()
    first, second = waits(a_gated_pod("m"), short=True, gang="train", pods=4), waits(a_gated_pod("p"))
    statuses.lines.tell("alpha", [first, second, second])
    await until(lambda: bool(statuses.changed))
    ((line, numbers),) = statuses.shown
    assert [(each.workload, each.gpus, each.short) for each in line.places] == [
        ("Job/train", 4, "gpu-training"),
        ("ReplicaSet/web", 2, ""),
    ]
    assert numbers == [1, 2, 2]
    assert statuses.status()["queue"] == line.status()


async def test_of_many_changes_within_an_interval_the_last_is_shown() -> None:
    statuses = Shown(interval=1.0)  # long beside the changes, on a busy machine too
    statuses.lines.tell("alpha", [waits(a_gated_pod("p"))])
    await until(lambda: bool(statuses.changed))
    for number in range(100):
        statuses.lines.tell("alpha", [waits(a_gated_pod(f"p{each}")) for each in range(number + 1)])
        await asyncio.sleep(0)
    assert len(statuses.shown) == 1
    await until(lambda: len(statuses.shown) == 2)
    assert statuses.shown[-1][0].status()["pods"] == 100
    assert statuses.changed == ["alpha"] * 2


async def test_what_stays_the_same_changes_no_status() -> None:
    statuses = Shown(interval=0.0)
    for _ in range(3):
        statuses.lines.tell("alpha", [waits(a_gated_pod("p"))])
        await asyncio.sleep(0.005)
    assert len(statuses.shown) == 3
    assert statuses.changed == ["alpha"]


async def test_a_new_leader_leaves_a_line_as_it_is_until_it_knows_better() -> None:
    statuses, before = Shown(), {"queue": {"pods": 7}}
    assert statuses.status(before) == {}
    statuses.lines.tell("alpha", [])
    await until(lambda: bool(statuses.changed))
    assert statuses.status(before) == {"queue": QueueStatus().status()}
    statuses.lines.begin()
    assert statuses.status(before) == {}


async def test_a_tenant_that_never_queued_has_no_queue() -> None:
    statuses = Shown()
    statuses.lines.tell("alpha", [])
    await until(lambda: bool(statuses.changed))
    assert statuses.status(has_queue=False) == {}
    assert statuses.status(has_queue=True) == {"queue": QueueStatus().status()}


async def test_the_head_that_waits_with_room_is_timed() -> None:
    statuses = Shown()
    statuses.lines.tell("alpha", [waits(a_gated_pod("p"))])
    await until(lambda: bool(statuses.changed))
    statuses.clock.now += 200
    assert dict(statuses.lines.heads_with_room()) == {"alpha": 200.0}
    assert dict(statuses.lines.heads())["alpha"] > 0
    statuses.lines.tell("alpha", [waits(a_gated_pod("p"), short=True)])
    assert dict(statuses.lines.heads_with_room()) == {"alpha": 0.0}
