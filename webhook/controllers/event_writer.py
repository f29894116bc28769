"""Writes events in the background, each at most every ten seconds, and all together at most ten a second.

Repetitions count in one Event for each object, reason and related object. Events are of core/v1, like FailedCreate of
the Job controller. In events.k8s.io/v1 the text can't change later, so the numbers of a refusal would go stale.

Events about refusals, preemptions and changed requests are written on the outermost workload, where users look. A
refusal for quota is written on the TenantQuota too. Kubernetes' own controllers report a refused pod only on its
controller (FailedCreate), and a refused update nowhere. Warnings of an admitted object reach only its sender.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Self

import msgspec

from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound, Unreachable
from webhook.ledger.protocol import Holding
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.objects.view import Tree
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.quota.tenant_quotas import API_VERSION, TENANT_QUOTA
from webhook.report.latest import EVENT, Preemption

SOURCE = "gpu-tiers.dev/webhook"
LONGEST_MESSAGE = 1024
LONGEST_NAME = 200
CALM = ("NodesReserved", "PolicyTaken", "Preempted", "Queued", "Admitted", "Saved")
"""Reasons of type Normal. All others are of type Warning."""


class Regarding(msgspec.Struct, frozen=True):
    """The object of an event. `namespace` is "" if it has none."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""

    @property
    def reference(self) -> Tree:
        """The object as an Event refers to it."""
        named = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return named | ({"namespace": self.namespace} if self.namespace else {})

    @classmethod
    def of(cls, found: OwnerReference, namespace: str) -> Self:
        """Return the object in a namespace to which an owner reference refers."""
        return cls(found.api_version, found.kind, found.name, found.uid, namespace)

    @classmethod
    def pod(cls, uid: str, pod: Holding | PodState) -> Self:
        return cls("v1", "Pod", pod.name, uid, pod.namespace)

    @classmethod
    def tenant_quota(cls, name: str, uid: str) -> Self:
        return cls(API_VERSION, TENANT_QUOTA.kind, name, uid)


class Stored(msgspec.Struct, frozen=True):
    """The version and count of an event as it was stored last."""

    version: str
    count: int


@dataclass(slots=True)
class EventSeries:
    """The events of one object, reason and related object. `pending` are not written yet, and wait until `due`."""

    regarding: Regarding
    reason: str
    message: str = ""
    related: Regarding | None = None
    pending: int = 0
    due: float = 0.0
    stored: Stored | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.regarding.uid, self.reason, self.related.uid if self.related else ""

    @property
    def home(self) -> str:
        """The list in which it is created: `default` for objects without a namespace, because kubectl looks there."""
        return path("v1", "events", self._namespace)

    @property
    def place(self) -> str:
        """The path of the event, the same for every replica and after a restart, so that all count in one event."""
        return path("v1", "events", self._namespace, self._name)

    def created(self, new: int, now: str) -> Tree:
        """Return the event to create, with this count."""
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "involvedObject": self.regarding.reference,
            **({"related": self.related.reference} if self.related else {}),
            "type": "Normal" if self.reason in CALM else "Warning",
            "reason": self.reason,
            "message": self.message,
            "count": new,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": SOURCE},
            "reportingComponent": SOURCE,
        }

    @property
    def _namespace(self) -> str:
        return self.regarding.namespace or "default"

    @property
    def _name(self) -> str:
        digest = hashlib.sha256(" ".join(self.key).rstrip().encode()).hexdigest()[:16]
        return f"{self.regarding.name[:LONGEST_NAME].rstrip('-.')}.{digest}"


def stored(event: Tree) -> Stored:
    """Return the version and count in an answer of the API server."""
    return Stored(event["metadata"]["resourceVersion"], event.get("count") or 0)


log = logging.getLogger(__name__)

INTERVAL = 10.0
"""Least seconds between two writes of one event. Repetitions meanwhile are counted."""
PAUSE = 0.1
"""Seconds between any two writes. Only one is under way at a time."""
LONGEST_WAIT = 60.0
"""Most seconds to wait for a write, longer than it takes while the API server answers."""
MOST_SERIES = 1024
"""Most events that are counted at a time. The one that was added longest ago goes first."""


@dataclass(eq=False)
class EventWriter:
    """Writes events that `add` collects without waiting. Run `run` as a task and cancel it.

    An event may be lost. It may be counted twice if the answer to a write is lost.
    """

    api: Client
    interval: float = INTERVAL
    pause: float = PAUSE
    _series: OrderedDict[tuple[str, str, str], EventSeries] = field(default_factory=OrderedDict)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _failing: bool = False
    _wrote: asyncio.Condition = field(default_factory=asyncio.Condition)

    def add(self, regarding: Regarding, reason: str, message: str, related: Regarding | None = None) -> None:
        """Add an event on an object. `related` is another object that caused it or that it affects."""
        found = EventSeries(regarding, reason, related=related)
        series = self._series.setdefault(found.key, found)
        series.message = message[:LONGEST_MESSAGE]  # the latest is the one that is shown
        series.pending += 1
        self._series.move_to_end(found.key)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)
        self._woken.set()

    async def written(self, regarding: Regarding, reason: str, related: Regarding | None = None) -> None:
        """Wait until the added events of an object and reason are stored, refused or dropped, or until LONGEST_WAIT."""
        key = EventSeries(regarding, reason, related=related).key
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT), self._wrote:
                await self._wrote.wait_for(lambda: key not in self._series or not self._series[key].pending)

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            try:
                await self.write_next()
            except Exception:
                log.exception("event writer broken")
            async with self._wrote:
                self._wrote.notify_all()
            await asyncio.sleep(self.pause)

    async def write_next(self) -> None:
        """Write the event that has been due longest, if any. A process that ends before it could `run` calls it too."""
        # Events of one object keep their order: "nearly used" that waits for its interval comes before "used up".
        first = dict[Regarding, EventSeries]()
        for each in self._series.values():
            if each.pending:
                first.setdefault(each.regarding, each)
        if not first:
            self._woken.clear()
            return
        series = min(first.values(), key=lambda each: each.due)
        if series.due <= time.monotonic():
            series.due = time.monotonic() + self.interval
            await self._write(series)

    async def _write(self, series: EventSeries) -> None:
        """Write a series. Try again later if nothing answers, or after a second conflict; give up if it is refused."""
        new, now = series.pending, datetime.now(UTC).strftime(RFC_3339)
        try:
            try:
                series.stored = await self._put(series, series.stored, new, now)
            except Conflict:  # another replica has written it, or we have before a restart
                there = await self.api.patch(series.place, {"lastTimestamp": now})
                series.stored = await self._put(series, stored(there), new, now)
        except ApiError as error:
            if not self._failing:
                log.warning("event not written", {"regarding": series.regarding.name, "error": str(error)})
            self._failing = True
            if isinstance(error, Unreachable | Conflict):
                return
        else:
            self._failing = False
        series.pending -= new

    async def _put(self, series: EventSeries, before: Stored | None, new: int, now: str) -> Stored:
        if before is not None:
            # This conflicts if somebody has written since `before`.
            patch = {"message": series.message, "count": before.count + new, "lastTimestamp": now}
            with suppress(NotFound):  # events expire after an hour
                of_version = {"metadata": {"resourceVersion": before.version}, **patch}
                return stored(await self.api.patch(series.place, of_version))
        return stored(await self.api.create(series.home, series.created(new, now)))


MOST_WAITING = 1000
"""Most notices whose owners have not been looked up yet. Those beyond them are dropped."""


Outermost = Callable[[str, OwnerReference], Awaitable[OwnerReference | None]]
"""Finds the outermost owner above a controller in a namespace."""


async def workload_above(controller: OwnerReference, namespace: str, outermost: Outermost) -> OwnerReference:
    """Return the outermost owner above a controller; the controller itself if there is none, or it can't be read."""
    try:
        return await outermost(namespace, controller) or controller
    except Unreadable:
        return controller


EventReason = Literal["OverQuota", "Refused", "UpdateRefused", "Demoted", "GuessTooWeak"]


class Notice(msgspec.Struct, frozen=True):
    """A report of a verdict on an object of that kind.

    `existing` is the object, unless its create was refused, and `controller` its controller. `over_quota_of` names the
    tenant that has no room for it in its quota.
    """

    reason: EventReason
    kind: str
    namespace: str
    name: str
    sentence: str
    controller: OwnerReference | None = None
    existing: OwnerReference | None = None
    over_quota_of: str | None = None


class VerdictEvents(msgspec.Struct, frozen=True):
    """Writes notices as events. `tell` never waits; run `run` as a task and cancel it.

    `outermost` finds the outermost owner above a controller in a namespace, and `tenant_uid` a TenantQuota's UID.
    """

    writer: EventWriter
    outermost: Outermost
    tenant_uid: Callable[[str], str | None]
    notices: asyncio.Queue[Notice] = msgspec.field(default_factory=lambda: asyncio.Queue(MOST_WAITING))

    def tell(self, notice: Notice) -> None:
        with suppress(asyncio.QueueFull):
            self.notices.put_nowait(notice)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.writer.run())
            while True:
                notice = await self.notices.get()
                try:
                    await self._add(notice)
                except Exception:
                    log.exception("notice not told")

    async def _add(self, notice: Notice) -> None:
        # The outermost owner, or the object itself if it exists. An owner that can't be read gets no event.
        workload = notice.existing
        if notice.controller is not None:
            with suppress(Unreadable):
                workload = await self.outermost(notice.namespace, notice.controller) or notice.existing
        # the controller of a refused pod reports that itself
        is_reported = notice.kind == "Pod" and notice.existing is None and workload == notice.controller
        if workload and not is_reported:
            # a pod of it may be refused an update too
            of_another = notice.reason == "UpdateRefused" and workload != notice.existing
            message = f"{notice.kind}/{notice.name}: {notice.sentence}" if of_another else notice.sentence
            self.writer.add(Regarding.of(workload, notice.namespace), notice.reason, message)
        tenant = notice.over_quota_of
        uid = self.tenant_uid(tenant) if tenant else None
        if tenant and uid:
            named = workload or notice
            message = f"{named.kind}/{named.name} in {notice.namespace}: {notice.sentence}"
            self.writer.add(Regarding.tenant_quota(tenant, uid), "OverQuota", message)


class PreemptionRecorder(msgspec.Struct, frozen=True):
    """Records each preemption, and passes it to `count`.

    `outermost` finds the outermost owner above a pod's controller in a namespace.
    """

    latest: deque[Preemption]  # the latest first
    count: Callable[[Preemption], None]
    writer: EventWriter
    outermost: Outermost

    async def __call__(self, preemption: Preemption, of: OwnerReference) -> None:
        """Record a preemption, count it, and write an event on its workload. Return once that is written."""
        victim = preemption.victim
        self.latest.appendleft(preemption)
        log.info("preempted", {"outcome": preemption.saved, "message": preemption.sentence})
        self.count(preemption)
        about = Regarding.of(await workload_above(of, victim.namespace, self.outermost), victim.namespace)
        related = Regarding("v1", "Pod", victim.name, victim.uid, victim.namespace)
        self.writer.add(about, EVENT, preemption.sentence, related)
        await self.writer.written(about, EVENT, related)
