"""Writes events beside the reviews, bounded in number: each at most every ten seconds, and all at ten a second.

What happens again counts in one Event for each object, reason and related object. It is of core/v1, as the Job
controller's FailedCreate: in events.k8s.io/v1 the text can't be changed later, and a refusal's numbers would stay the
first ones.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

import msgspec

from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound, Unreachable
from webhook.ledger.protocol import Holding
from webhook.objects.pods import OwnerReference
from webhook.objects.view import Tree
from webhook.policy.quota.tenant_quotas import API_VERSION, TENANT_QUOTA

SOURCE = "gpu-tiers.dev/webhook"
LONGEST_MESSAGE = 1024
LONGEST_NAME = 200
CALM = ("NodesReserved", "PolicyTaken", "Preempted", "Queued", "Admitted")
"""Reasons of what went well, or will; all others warn."""


class Regarding(msgspec.Struct, frozen=True):
    """The object that an event is about; `namespace` is "" where it has none."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""

    @property
    def reference(self) -> Tree:
        """As an Event refers to it."""
        named = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return named | ({"namespace": self.namespace} if self.namespace else {})

    @classmethod
    def of(cls, found: OwnerReference, namespace: str) -> Self:
        """An object of a namespace, as a reference names it."""
        return cls(found.api_version, found.kind, found.name, found.uid, namespace)

    @classmethod
    def pod(cls, uid: str, holding: Holding) -> Self:
        return cls("v1", "Pod", holding.name, uid, holding.namespace)

    @classmethod
    def tenant_quota(cls, name: str, uid: str) -> Self:
        return cls(API_VERSION, TENANT_QUOTA.kind, name, uid)


class Stored(msgspec.Struct, frozen=True):
    """How an event was stored last."""

    version: str
    count: int


@dataclass(slots=True)
class EventSeries:
    """What is told of one object for one reason. `pending` times are not written yet, and are not before `due`."""

    regarding: Regarding
    reason: str
    message: str = ""
    related: Regarding | None = None
    pending: int = 0
    due: float = 0.0
    stored: Stored | None = None

    def add(self, message: str) -> None:
        """It happened once more; the latest message is the one that is shown."""
        self.message = message[:LONGEST_MESSAGE]
        self.pending += 1

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from other series."""
        return self.regarding.uid, self.reason, self.related.uid if self.related else ""

    @property
    def home(self) -> str:
        """The list that it is created in. kubectl looks in `default` for events about objects without a namespace."""
        return path("v1", "events", self._namespace)

    @property
    def place(self) -> str:
        """Where it lies: the same from every replica and after a restart, so that all count in one event."""
        return path("v1", "events", self._namespace, self._name)

    def created(self, new: int, now: str) -> Tree:
        """The event as it is written first, after so many times."""
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

    def raised(self, before: Stored, new: int, now: str) -> Tree:
        """The merge patch that counts so many times more; it conflicts if somebody has written since `before`."""
        said = {"message": self.message, "count": before.count + new, "lastTimestamp": now}
        return {"metadata": {"resourceVersion": before.version}, **said}

    @property
    def _namespace(self) -> str:
        return self.regarding.namespace or "default"

    @property
    def _name(self) -> str:
        told_apart = hashlib.sha256(" ".join(self.key).rstrip().encode()).hexdigest()[:16]
        return f"{self.regarding.name[:LONGEST_NAME].rstrip('-.')}.{told_apart}"


def stored(event: Tree) -> Stored:
    """What the API server answered."""
    return Stored(event["metadata"]["resourceVersion"], event.get("count") or 0)


log = logging.getLogger(__name__)

INTERVAL = 10.0
"""Seconds between two writes of one event at least; what comes between is counted."""
PAUSE = 0.1
"""Seconds between any two writes, of which one is under way at a time."""
LONGEST_WAIT = 60.0
"""Seconds for which somebody waits for a write: longer than it takes while the API server answers."""
MOST_SERIES = 1024
"""Events that are counted at a time; the one that was told of longest ago goes first."""


@dataclass(eq=False)
class EventWriter:
    """`add` what happened, which never waits; run `run` as a task and cancel it.

    An event may be lost, or be counted once too often where an answer was.
    """

    api: Client
    interval: float = INTERVAL
    pause: float = PAUSE
    _series: OrderedDict[tuple[str, str, str], EventSeries] = field(default_factory=OrderedDict)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _failing: bool = False
    _wrote: asyncio.Condition = field(default_factory=asyncio.Condition)

    def add(self, regarding: Regarding, reason: str, message: str, related: Regarding | None = None) -> None:
        """Tell of an object that it happened; `related` is the other object that it happened to or came from."""
        found = EventSeries(regarding, reason, related=related)
        series = self._series.setdefault(found.key, found)
        series.add(message)
        self._series.move_to_end(found.key)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)
        self._woken.set()

    async def written(self, regarding: Regarding, reason: str, related: Regarding | None = None) -> None:
        """Wait until all that was added of it is stored, or was refused; not for ever."""
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
        """Write the event that has been due longest, if one is: for a process that ends before it could `run`."""
        waiting = [each for each in self._series.values() if each.pending]
        if not waiting:
            self._woken.clear()
            return
        series = min(waiting, key=lambda each: each.due)
        if series.due <= time.monotonic():
            series.due = time.monotonic() + self.interval
            await self._write(series)

    async def _write(self, series: EventSeries) -> None:
        """Keep for later what could not be brought to the API server; give up what it refused."""
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
            try:
                return stored(await self.api.patch(series.place, series.raised(before, new, now)))
            except NotFound:  # events are kept for an hour
                pass
        return stored(await self.api.create(series.home, series.created(new, now)))
