"""Keeps the lines of tenants as the leader tells them, for their status and the metrics: each changes once a second.

A line changes with each pod that comes or goes, and what a status says of it is written with the account: were it
always the newest, each of a thousand creates would cost a write more.
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
"""Seconds for which what is shown of a line stays at least."""
NOBODY = QueueStatus()

OnQueueShown = Callable[[str, QueueStatus, Sequence[tuple[int, Queued]]], None]
"""Is told of a tenant's line as it is shown, and of the place there, from 1, of each that waits."""


class QueueStatuses:
    """`workload_of` tells what made a pod that waits; `changed` is called with a tenant whose status says less or more.

    `shown` is told of each line that is looked at, at most once an interval.
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
        self._told = shown
        self._interval = interval
        self._clock = clock
        self._newest: dict[str, Sequence[Queued]] = {}
        self._shown: dict[str, QueueStatus] = {}
        self._status: dict[str, Status] = {}
        self._due: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._roomy: dict[str, tuple[str, float]] = {}

    def begin(self) -> None:
        """A new term: nothing is known of any line yet."""
        for timer in self._timers.values():
            timer.cancel()
        for each in (self._newest, self._shown, self._status, self._due, self._timers, self._roomy):
            each.clear()

    def tell(self, tenant: str, line: Sequence[Queued]) -> None:
        """This is the line now."""
        if not line and self._shown.get(tenant) is NOBODY:
            self._newest.pop(tenant, None)
            return
        self._newest[tenant] = line
        head = line[0] if line else None
        if head is None or head.short is not None:
            self._roomy.pop(tenant, None)
        elif self._roomy.get(tenant, ("", 0.0))[0] != head.waiting.first.uid:
            self._roomy[tenant] = head.waiting.first.uid, self._clock()
        if tenant not in self._timers:
            wait = max(self._due.get(tenant, 0.0) - self._clock(), 0.0)
            self._timers[tenant] = asyncio.get_running_loop().call_later(wait, self._show, tenant)

    def status(self, tenant: str, before: Status, *, has_queue: bool) -> Status:
        """What its status says of the line. Nothing while that is not known, and of tenants that never held."""
        shown = self._shown.get(tenant)
        if shown is None or not (shown.places or has_queue or "queue" in before):
            return {}
        return {"queue": self._status[tenant]}

    def lines(self) -> Iterable[tuple[str, QueueStatus]]:
        """Those in which anybody waits, by tenant."""
        return [(tenant, line) for tenant, line in self._shown.items() if line.places]

    def heads(self) -> Iterator[tuple[str, float]]:
        """For how many seconds the first of each line has waited."""
        now = datetime.now(UTC).isoformat()
        for tenant, line in self.lines():
            yield tenant, seconds_between(line.places[0].since, now) or 0.0

    def heads_with_room(self) -> Iterator[tuple[str, float]]:
        """For how many seconds the first of each line has waited though no row is short."""
        now = self._clock()
        for tenant, _ in self.lines():
            yield tenant, now - self._roomy[tenant][1] if tenant in self._roomy else 0.0

    def _show(self, tenant: str) -> None:
        del self._timers[tenant]
        self._due[tenant] = self._clock() + self._interval
        newest = self._newest.get(tenant, ())
        places = [self._place(each) for each in newest]
        line = QueueStatus.of(places) if newest else NOBODY
        before, self._shown[tenant] = self._shown.get(tenant), line
        if line != before:
            self._status[tenant] = line.status()
            self._changed(tenant)
        self._told(tenant, line, list(zip(_numbered(places), newest, strict=True)))

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
    """From 1; pods of one workload that follow one another have one number."""
    number, before = 0, None
    for each in places:
        number += each.whose != before
        before = each.whose
        yield number
