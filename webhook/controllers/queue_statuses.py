"""Collects the queues of tenants from the leader for status and metrics, and updates each at most once a second.

A queue changes with each pod, and its status is written with the account. Without a limit each of a thousand creates
would cost one more write.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from webhook.controllers.placements import seconds_between
from webhook.ledger.leader.queue import Queued
from webhook.policy.quota.charges import together
from webhook.policy.quota.queue_status import QueuedWorkload, QueueStatus
from webhook.policy.quota.tenant_status import Status

INTERVAL = 1.0
"""Least seconds between two updates of a queue."""
NOBODY = QueueStatus()

OnQueueShown = Callable[[str, QueueStatus, Sequence[tuple[int, Queued]]], None]
"""Gets a tenant's queue as it is shown, and each queued unit with its position from 1."""


class QueueStatuses:
    """The queues that are shown. `changed` is called with each tenant of which the queue's status has changed.

    `workload_of` returns the workload of a queued pod. `shown` is called at each update of a queue.
    """

    def __init__(
        self,
        workload_of: Callable[[str], str],
        changed: Callable[[str], None],
        shown: OnQueueShown = lambda *_: None,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workload_of = workload_of
        self._changed = changed
        self._on_shown = shown
        self._interval = interval
        self._clock = clock
        self._newest: dict[str, Sequence[Queued]] = {}
        self._shown: dict[str, QueueStatus] = {}
        self._status: dict[str, Status] = {}
        self._due: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._roomy: dict[str, tuple[str, float]] = {}

    def begin(self) -> None:
        """Begin a new term, in which no queue is known yet."""
        for timer in self._timers.values():
            timer.cancel()
        for each in (self._newest, self._shown, self._status, self._due, self._timers, self._roomy):
            each.clear()

    def tell(self, tenant: str, queue: Sequence[Queued]) -> None:
        """Note the queue of a tenant."""
        if not queue and self._shown.get(tenant) is NOBODY:
            self._newest.pop(tenant, None)
            return
        self._newest[tenant] = queue
        head = queue[0] if queue else None
        if head is None or head.short is not None:
            self._roomy.pop(tenant, None)
        elif self._roomy.get(tenant, ("", 0.0))[0] != head.waiting.first.uid:
            self._roomy[tenant] = head.waiting.first.uid, self._clock()
        if tenant not in self._timers:
            wait = max(self._due.get(tenant, 0.0) - self._clock(), 0.0)
            self._timers[tenant] = asyncio.get_running_loop().call_later(wait, self._show, tenant)

    def status(self, tenant: str, before: Status, *, has_queue: bool) -> Status:
        """Return the status field of the queue; {} while it is not known, and for tenants that never had one."""
        shown = self._shown.get(tenant)
        if shown is None or not (shown.places or has_queue or "queue" in before):
            return {}
        return {"queue": self._status[tenant]}

    def queues(self) -> Iterable[tuple[str, QueueStatus]]:
        """Return the queues that are not empty, by tenant."""
        return [(tenant, queue) for tenant, queue in self._shown.items() if queue.places]

    def heads(self) -> Iterator[tuple[str, float]]:
        """Yield for how many seconds the head of each queue has waited."""
        now = datetime.now(UTC).isoformat()
        for tenant, queue in self.queues():
            yield tenant, seconds_between(queue.places[0].since, now) or 0.0

    def heads_with_room(self) -> Iterator[tuple[str, float]]:
        """Yield for how many seconds the head of each queue has waited although no row is short."""
        now = self._clock()
        for tenant, _ in self.queues():
            yield tenant, now - self._roomy[tenant][1] if tenant in self._roomy else 0.0

    def _show(self, tenant: str) -> None:
        del self._timers[tenant]
        self._due[tenant] = self._clock() + self._interval
        newest = self._newest.get(tenant, ())
        places = [self._place(each) for each in newest]
        queue = QueueStatus.of(places) if newest else NOBODY
        before, self._shown[tenant] = self._shown.get(tenant), queue
        if queue != before:
            self._status[tenant] = queue.status()
            self._changed(tenant)
        self._on_shown(tenant, queue, list(zip(_numbered(places), newest, strict=True)))

    def _place(self, each: Queued) -> QueuedWorkload:
        waiting, first = each.waiting, each.waiting.first
        holding, gang = first.holding, waiting.gang
        made_by = self._workload_of(first.uid) or f"Pod/{holding.name}"
        return QueuedWorkload(
            holding.namespace,
            f"{gang.kind.partition('.')[0]}/{gang.name}" if gang else made_by,
            gang.uid if gang else holding.gang or holding.controller or first.uid,
            holding.charge.tier or "",
            len(waiting.pods),
            holding.charge.gpus if len(waiting.pods) == 1 and not gang else together(waiting.charges),
            holding.gated.since if holding.gated else "",
            each.short.row.label if each.short else "",
        )


def _numbered(places: Sequence[QueuedWorkload]) -> Iterator[int]:
    """Yield positions from 1. Consecutive pods of one workload share a position."""
    number, before = 0, None
    for each in places:
        number += each.same_position != before
        before = each.same_position
        yield number
