"""Says on pods that are queued what they wait for, once on their workload, and on each when its gate opens.

The API server writes into the condition PodScheduled of such a pod that gates block it, and names no cause. The message
may be another; the reason stays, for autoscalers know it and buy no nodes. Only the first pod of what waits as one gets
one, and it is not kept up to date: TenantQuotas have the line as it is.

Each pod gets an Event when it waits and one when its gate opens, as the scheduler writes two for each pod. All writes
share one pace, so that 5,000 pods cost no more at a time than one does. A pod whose gate opens before it was told is
told of that alone, and one that never stood in a line, because there was room when it came, of nothing.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.controllers.event_writer import EventSeries, EventWriter, Regarding
from webhook.controllers.verdict_events import Outermost
from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.ledger.leader.queue import Queued
from webhook.ledger.protocol import Holding
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Phrase, Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import Shortfall, together
from webhook.policy.quota.queue_status import NoRoom, QueueStatus, why_queued
from webhook.report.waiting import long_time
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

REASON = "Queued"
OPENED = "Admitted"
MOST = 100
"""Pods of a tenant that are told at once, those whose turn comes first; the others when the line is looked at next."""
MOST_OPENED = 1000
"""Pods of a namespace whose gates were opened and that are told of it; of more the oldest go without."""
PAUSE = 0.05
"""Seconds between two pods that are told."""
MOST_KEPT = 50_000
"""Pods and workloads that waited, or were told, and are remembered."""


class ToTell(msgspec.Struct, frozen=True):
    """A pod, and what it is to be told by an event.

    `version`: it stands for all that wait with it, and gets the condition too, if it has this resourceVersion still.
    """

    pod: Regarding
    reason: str
    sentence: str
    version: str = ""


class _RoundRobin(Generic[T]):
    """What is to be told, by who asked for it: each gets its turn before anybody gets another."""

    def __init__(self) -> None:
        self._due: OrderedDict[str, deque[T]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._due)

    def put(self, key: str, due: deque[T]) -> None:
        """Replace what is due of this key."""
        if due:
            self._due[key] = due
        else:
            self._due.pop(key, None)

    def add(self, key: str, one: T, most: int) -> None:
        """Put it behind the others of this key; of more than `most` the oldest goes."""
        self._due.setdefault(key, deque(maxlen=most)).append(one)

    def take(self) -> T | None:
        """The next of the key that has waited longest for a turn."""
        if not self._due:
            return None
        key, due = self._due.popitem(last=False)
        one = due.popleft()
        self.put(key, due)
        return one


class QueuedPods:
    """`show` it each line, and `opened` each gate, which never waits; run `run` as a task and cancel it."""

    def __init__(self, client: Client, events: EventWriter, outermost: Outermost, pause: float = PAUSE) -> None:
        self._client = client
        self._events = events
        self._outermost = outermost
        self._pause = pause
        self._due = _RoundRobin[ToTell]()
        self._opened = _RoundRobin[ToTell]()
        self._woken = asyncio.Event()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._waited: OrderedDict[str, None] = OrderedDict()
        self._failing = False

    def show(self, tenant: str, line: QueueStatus, waiting: Sequence[tuple[int, Queued]]) -> None:
        """This is a tenant's line now, and the place of each that waits."""
        for _, each in waiting:
            for pod in each.waiting.pods:
                _keep(pod.uid, self._waited)
        found = deque(islice(self._untold(tenant, line, waiting), MOST))
        self._due.put(tenant, found)
        if found:
            self._woken.set()

    def opened(self, uid: str, holding: Holding, seconds: float | None) -> None:
        """The gate of this pod is open; it was queued for so long, if that is known."""
        waited = uid in self._waited or uid in self._told or (holding.gated is not None and holding.gated.told)
        _keep(uid, self._told)
        if not waited:
            return
        time = long_time(timedelta(seconds=seconds)) if seconds is not None else "some time"
        told = ToTell(Regarding.pod(uid, holding), OPENED, sentence(Phrase("gate-opened", waited=time)))
        self._opened.add(holding.namespace, told, MOST_OPENED)
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            if not (self._opened or self._due):
                self._woken.clear()
            if (opened := self._opened.take()) is not None:
                await self._in_turn(self._tell(opened))
            # Others wait behind a gate meanwhile, however many gates open.
            while (each := self._due.take()) is not None and each.pod.uid in self._told:
                pass  # it was told meanwhile
            if each is not None:
                await self._in_turn(self._tell(each))

    async def _in_turn(self, told: Coroutine[None, None, None]) -> None:
        try:
            await told
        except Exception:
            log.exception("held pod not told")
        await asyncio.sleep(self._pause)

    def _untold(self, tenant: str, line: QueueStatus, waiting: Iterable[tuple[int, Queued]]) -> Iterator[ToTell]:
        """The first pod of each that waits, and then the others.

        Of the pods of one place only the first is short of a row. The others wait for that row too.
        """
        of_gangs: list[tuple[int, Queued]] = []
        short: dict[int, Shortfall] = {}
        for nth, found in waiting:
            each = found if found.short else replace(found, short=short.get(nth))
            if each.short:
                short.setdefault(nth, each.short)
            first = each.waiting.first
            if not (first.uid in self._told or first.holding.gated is None or first.gated.told):
                about = Regarding.pod(first.uid, first.holding)
                yield ToTell(about, REASON, _told_at(tenant, line, nth, each), first.gated.version)
            if len(each.waiting.pods) > 1:
                of_gangs.append((nth, each))
        for nth, each in of_gangs:
            for pod in each.waiting.pods[1:]:
                if pod.uid not in self._told:
                    yield ToTell(Regarding.pod(pod.uid, pod.holding), REASON, _told_at(tenant, line, nth, each))

    async def _tell(self, each: ToTell) -> None:
        """What has changed meanwhile is looked at again with the next line."""
        pod, metadata = each.pod, None
        try:
            if each.version:
                gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                at = {"uid": pod.uid, "resourceVersion": each.version}
                where = f"{path('v1', 'pods', pod.namespace, pod.name)}/status"
                patch = {"metadata": at, "status": {"conditions": [{**gated, "message": each.sentence}]}}
                metadata = view(await self._client.patch(where, patch, strategic=True), Named).metadata
            # An event that is there was written by whoever led before.
            series = EventSeries(pod, each.reason, each.sentence)
            with suppress(Conflict):
                await self._client.create(series.home, series.created(1, datetime.now(UTC).strftime(RFC_3339)))
        except (Conflict, NotFound):
            return
        except ApiError as error:
            if not self._failing:
                log.warning("held pod not told", {"pod": pod.name, "error": str(error)})
            self._failing = True
            return
        self._failing = False
        _keep(pod.uid, self._told)
        if metadata is not None:
            await self._tell_workload(metadata, each.sentence)

    async def _tell_workload(self, pod: Metadata, told: str) -> None:
        if (controller := pod.controller) is None:
            return
        try:
            workload = await self._outermost(pod.namespace, controller) or controller
        except Unreadable:
            workload = controller
        if workload.uid not in self._told:
            _keep(workload.uid, self._told)
            self._events.add(Regarding.of(workload, pod.namespace), REASON, told)


def _keep(uid: str, kept: OrderedDict[str, None]) -> None:
    kept[uid] = None
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _told_at(tenant: str, line: QueueStatus, nth: int, each: Queued) -> str:
    """What it waits for, and its place: places change, so that it says of when that was."""
    short = NoRoom.of(each.short) if each.short else None
    why = why_queued(together(each.waiting.charges), tenant, short, line.before(nth), (nth, len(line.places)))
    return sentence(Phrase("queued-since-then", why=why, tenant=tenant))
