"""Reports the queues of tenants in their status, and on queued pods why they wait and when their gates open.

The queue itself is in webhook/ledger/leader/queue.py. It changes with each pod, and its status is written with the
account. So a queue is shown at most once a second, because otherwise each of a thousand creates would cost one more
write.

The API server writes into the condition PodScheduled of a gated pod that gates block it, without the cause. We replace
the message and leave the reason, because autoscalers know the reason and buy no nodes. Only the first pod of a queued
gang, or a pod that is queued by itself, gets the message. It is never updated, because the status of the TenantQuota
has the current queue.

Each pod gets an Event when it is queued and one when its gate opens, like the two Events of the scheduler. All writes
share one pace, so that 5,000 pods cost no more at a time than one does. A pod whose gate opens early gets only the
second Event. A pod that was never queued, because there was room at once, gets none.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice

import msgspec
from msgspec.structs import replace

from webhook.controllers.event_writer import EventSeries, EventWriter, Outermost, Regarding, workload_above
from webhook.controllers.placements import seconds_between
from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.ledger.leader.queue import Queued
from webhook.ledger.protocol import Holding
from webhook.objects.pods import Named
from webhook.objects.refusal import Phrase
from webhook.objects.view import view
from webhook.policy.quota.charges import Shortfall, together
from webhook.policy.quota.queue_status import NoRoom, QueuedWorkload, QueueStatus, blocked_by, why_queued
from webhook.policy.quota.tenant_status import Status
from webhook.report.waiting import long_time
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Least seconds between two updates of a queue."""
NOBODY = QueueStatus()


@dataclass(eq=False)
class QueueStatuses:
    """The queues that are shown. `changed` is called with a tenant when the status of its queue has changed.

    `workload_of` returns the workload of a queued pod as kind/name. `shown` gets a tenant's queue at each update, and
    each QueuedUnit (a gang or a pod) with its position from 1.
    """

    workload_of: Callable[[str], str]
    changed: Callable[[str], None]
    shown: Callable[[str, QueueStatus, Sequence[tuple[int, Queued]]], None] = lambda *_: None
    interval: float = INTERVAL
    clock: Callable[[], float] = time.monotonic
    _newest: dict[str, Sequence[Queued]] = field(default_factory=dict)
    _shown: dict[str, QueueStatus] = field(default_factory=dict)
    _status: dict[str, Status] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    _roomy: dict[str, tuple[str, float]] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin a new term, in which no queue is known yet."""
        for timer in self._timers.values():
            timer.cancel()
        for each in (self._newest, self._shown, self._status, self._due, self._timers, self._roomy):
            each.clear()

    def tell(self, tenant: str, queue: Sequence[Queued]) -> None:
        """Note the queue of a tenant, to show it within `interval` seconds."""
        if not queue and self._shown.get(tenant) is NOBODY:
            self._newest.pop(tenant, None)
            return
        self._newest[tenant] = queue
        head = queue[0] if queue else None
        if head is None or head.short is not None:
            self._roomy.pop(tenant, None)
        elif self._roomy.get(tenant, ("", 0.0))[0] != head.unit.first.uid:
            self._roomy[tenant] = head.unit.first.uid, self.clock()
        if tenant not in self._timers:
            wait = max(self._due.get(tenant, 0.0) - self.clock(), 0.0)
            self._timers[tenant] = asyncio.get_running_loop().call_later(wait, self._show, tenant)

    def status(self, tenant: str, before: Status, *, has_queue: bool) -> Status:
        """Return the status field of the queue; {} while it is not known, and for tenants that never had a queue."""
        shown = self._shown.get(tenant)
        if shown is None or not (shown.places or has_queue or "queue" in before):
            return {}
        return {"queue": self._status[tenant]}

    def queues(self) -> Iterable[tuple[str, QueueStatus]]:
        """Return the queues that are not empty, by tenant."""
        return [(tenant, queue) for tenant, queue in self._shown.items() if queue.places]

    def heads(self) -> Iterator[tuple[str, float]]:
        """Yield each tenant with a queue, and for how many seconds its head has waited."""
        now = datetime.now(UTC).isoformat()
        for tenant, queue in self.queues():
            yield tenant, seconds_between(queue.places[0].since, now) or 0.0

    def heads_with_room(self) -> Iterator[tuple[str, float]]:
        """Yield the same, for how many seconds the head has waited although no row is short; 0 if a row is short."""
        now = self.clock()
        for tenant, _ in self.queues():
            yield tenant, now - self._roomy[tenant][1] if tenant in self._roomy else 0.0

    def _show(self, tenant: str) -> None:
        del self._timers[tenant]
        self._due[tenant] = self.clock() + self.interval
        newest = self._newest.get(tenant, ())
        # 1. Consecutive pods of one workload share a position.
        places = [self._place(each) for each in newest]
        groups = groupby(zip(places, newest, strict=True), key=lambda pair: pair[0].same_position)
        numbered = [(nth, each) for nth, (_, alike) in enumerate(groups, 1) for _, each in alike]

        # 2. A unit that waits behind another one names the position of that one.
        nth_of = {each.unit.uid: nth for nth, each in numbered}
        placed = zip(places, newest, strict=True)
        places = [replace(place, behind=nth_of.get(each.behind, 0)) for place, each in placed]
        queue = QueueStatus.of(places) if newest else NOBODY
        before, self._shown[tenant] = self._shown.get(tenant), queue
        if queue != before:
            self._status[tenant] = queue.status()
            self.changed(tenant)
        self.shown(tenant, queue, numbered)

    def _place(self, each: Queued) -> QueuedWorkload:
        unit, first = each.unit, each.unit.first
        holding, gang = first.holding, unit.gang
        made_by = self.workload_of(first.uid) or f"Pod/{holding.name}"
        return QueuedWorkload(
            holding.namespace,
            f"{gang.kind.partition('.')[0]}/{gang.name}" if gang else made_by,
            gang.uid if gang else holding.gang or holding.controller or first.uid,
            holding.charge.tier or "",
            len(unit.pods),
            holding.charge.gpus if len(unit.pods) == 1 and not gang else together(unit.charges),
            holding.gated.since if holding.gated else "",
            each.short.row.label if each.short else "",
        )


REASON = "Queued"
OPENED = "Admitted"
MOST = 100
"""Pods of a tenant that get an Event after one update, from the head of the queue. Others follow at the next update."""
MOST_OPENED = 1000
"""Most pods of a namespace that wait for the Event of their open gate. The oldest beyond it get none."""
PAUSE = 0.05
"""Seconds between two Events."""
MOST_REMEMBERED = 50_000
"""Pods and workloads that are remembered because they were queued or got an Event."""


class PodEvent(msgspec.Struct, frozen=True):
    """An Event on a pod that is to be written.

    `version` is set if the pod gets the condition too. If the pod has another resourceVersion by then, it gets neither.
    """

    pod: Regarding
    reason: str
    sentence: str
    version: str = ""


Due = OrderedDict[str, deque[PodEvent]]
"""Events by tenant or namespace. `_take` takes one of each key before it takes a second one of any key."""


def _take(due: Due) -> PodEvent | None:
    """Take the first event of the key that has waited longest."""
    if not due:
        return None
    key, events = due.popitem(last=False)
    first = events.popleft()
    if events:
        due[key] = events
    return first


class QueuedPods:
    """Writes the Events of queued pods. `show` and `opened` never wait; run `run` as a task and cancel it."""

    def __init__(self, client: Client, events: EventWriter, outermost: Outermost, pause: float = PAUSE) -> None:
        self._client = client
        self._events = events
        self._outermost = outermost
        self._pause = pause
        self._due: Due = OrderedDict()
        self._opened: Due = OrderedDict()
        self._woken = asyncio.Event()
        self._reported: OrderedDict[str, None] = OrderedDict()
        self._waited: OrderedDict[str, None] = OrderedDict()
        self._failing = False

    def show(self, tenant: str, queue: QueueStatus, waiting: Sequence[tuple[int, Queued]]) -> None:
        """Note a tenant's queue, and each QueuedUnit with its position."""
        for _, each in waiting:
            for pod in each.unit.pods:
                _remember(pod.uid, self._waited)
        if found := deque(islice(self._unreported(tenant, queue, waiting), MOST)):
            self._due[tenant] = found
            self._woken.set()
        else:
            self._due.pop(tenant, None)

    def opened(self, uid: str, holding: Holding, seconds: float | None) -> None:
        """Note a pod whose gate is open, after so many `seconds`; None if not known."""
        waited = uid in self._waited or uid in self._reported or (holding.gated is not None and holding.gated.reported)
        _remember(uid, self._reported)
        if not waited:
            return
        time = long_time(timedelta(seconds=seconds)) if seconds is not None else "some time"
        event = PodEvent(Regarding.pod(uid, holding), OPENED, sentence(Phrase("gate-opened", waited=time)))
        self._opened.setdefault(holding.namespace, deque(maxlen=MOST_OPENED)).append(event)
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            if not (self._opened or self._due):
                self._woken.clear()
            if (opened := _take(self._opened)) is not None:
                await self._paced(self._tell(opened))
            # Queued pods get their Events meanwhile, however many gates open.
            while (each := _take(self._due)) is not None and each.pod.uid in self._reported:
                pass  # it has its Event by now
            if each is not None:
                await self._paced(self._tell(each))

    async def _paced(self, report: Coroutine[None, None, None]) -> None:
        try:
            await report
        except Exception:
            log.exception("queued pod not reported")
        await asyncio.sleep(self._pause)

    def _unreported(self, tenant: str, queue: QueueStatus, waiting: Iterable[tuple[int, Queued]]) -> Iterator[PodEvent]:
        """Yield Events for the first pod of each unit, and then for the others.

        If several units share a position, only the first has the short row, and the others wait for that row too.
        """
        of_gangs: list[tuple[int, Queued]] = []
        short: dict[int, Shortfall] = {}
        for nth, found in waiting:
            each = found if found.short else replace(found, short=short.get(nth))
            if each.short:
                short.setdefault(nth, each.short)
            first = each.unit.first
            if not (first.uid in self._reported or first.holding.gated is None or first.gated.reported):
                about = Regarding.pod(first.uid, first.holding)
                yield PodEvent(about, REASON, _why_queued(tenant, queue, nth, each), first.gated.version)
            if len(each.unit.pods) > 1:
                of_gangs.append((nth, each))
        for nth, each in of_gangs:
            for pod in each.unit.pods[1:]:
                if pod.uid not in self._reported:
                    yield PodEvent(Regarding.pod(pod.uid, pod.holding), REASON, _why_queued(tenant, queue, nth, each))

    async def _tell(self, each: PodEvent) -> None:
        """Write an Event, unless the pod has changed meanwhile; then the next update reports it."""
        pod, metadata = each.pod, None
        try:
            if each.version:
                gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                at = {"uid": pod.uid, "resourceVersion": each.version}
                where = f"{path('v1', 'pods', pod.namespace, pod.name)}/status"
                patch = {"metadata": at, "status": {"conditions": [{**gated, "message": each.sentence}]}}
                metadata = view(await self._client.patch(where, patch, strategic=True), Named).metadata
            # An existing event was written by an earlier leader.
            series = EventSeries(pod, each.reason, each.sentence)
            with suppress(Conflict):
                await self._client.create(series.home, series.created(1, datetime.now(UTC).strftime(RFC_3339)))
        except (Conflict, NotFound):
            return
        except ApiError as error:
            if not self._failing:
                log.warning("queued pod not reported", {"pod": pod.name, "error": str(error)})
            self._failing = True
            return
        self._failing = False
        _remember(pod.uid, self._reported)
        if metadata is not None and metadata.controller is not None:
            workload = await workload_above(metadata.controller, metadata.namespace, self._outermost)
            if workload.uid not in self._reported:
                _remember(workload.uid, self._reported)
                self._events.add(Regarding.of(workload, metadata.namespace), REASON, each.sentence)


def _remember(uid: str, remembered: OrderedDict[str, None]) -> None:
    remembered[uid] = None
    if len(remembered) > MOST_REMEMBERED:
        remembered.popitem(last=False)


def _why_queued(tenant: str, queue: QueueStatus, nth: int, each: Queued) -> str:
    """Return why a unit waits, and its position, with the time, because positions change."""
    short = NoRoom.of(each.short) if each.short else None
    places, gpus = queue.places, together(each.unit.charges)
    why = why_queued(gpus, tenant, short, blocked_by(places, nth), (nth, len(places)))
    return sentence(Phrase("queued-since-then", why=why, tenant=tenant))
