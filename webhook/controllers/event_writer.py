"""Writes events beside the reviews, bounded in number: each at most every ten seconds, and all at ten a second."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

import structlog

from webhook.controllers.event_series import EventSeries, Regarding, Stored, stored
from webhook.kube.errors import ApiError, Conflict, NotFound, Unreachable
from webhook.kube.wire import RFC_3339
from webhook.objects.view import Tree

log = structlog.get_logger(__name__)

INTERVAL = 10.0
"""Seconds between two writes of one event at least; what comes between is counted."""
PAUSE = 0.1
"""Seconds between any two writes, of which one is under way at a time."""
MOST_SERIES = 1024
"""Events that are counted at a time; the one that was told of longest ago goes first."""


class EventsApi(Protocol):
    """The two requests that are needed of `webhook.kube.client.Client`."""

    async def create(self, path: str, body: Tree, /) -> Tree:
        """Conflict where the name is taken."""
        ...

    async def patch(self, path: str, body: Tree, /) -> Tree:
        """Conflict where the object is at another resourceVersion, NotFound where it is gone."""
        ...


class EventWriter:
    """`add` what happened, which never waits; run `run` as a task and cancel it.

    An event may be lost, or be counted once too often where an answer was.
    """

    def __init__(
        self,
        api: EventsApi,
        *,
        interval: float = INTERVAL,
        pause: float = PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._interval = interval
        self._pause = pause
        self._clock = clock
        self._series: OrderedDict[tuple[str, str], EventSeries] = OrderedDict()
        self._woken = asyncio.Event()
        self._failing = False

    def add(self, regarding: Regarding, reason: str, message: str) -> None:
        """It happened once more."""
        key = (regarding.uid, reason)
        series = self._series.setdefault(key, EventSeries(regarding, reason))
        series.add(message)
        self._series.move_to_end(key)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)
        self._woken.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._woken.wait()
            try:
                await self.write_next()
            except Exception:
                log.exception("event writer broken")
            await asyncio.sleep(self._pause)

    async def write_next(self) -> None:
        """Write the event that has been due longest, if one is: for a process that ends before it could `run`."""
        waiting = [each for each in self._series.values() if each.pending]
        if not waiting:
            self._woken.clear()
            return
        series = min(waiting, key=lambda each: each.due)
        if series.due <= self._clock():
            series.due = self._clock() + self._interval
            await self._write(series)

    async def _write(self, series: EventSeries) -> None:
        """Keep for later what could not be brought to the API server; give up what it refused."""
        new = series.pending
        try:
            series.stored = await self._raised(series, new)
        except ApiError as error:
            if not self._failing:
                log.warning("event not written", regarding=series.regarding.name, error=str(error))
            self._failing = True
            if isinstance(error, Unreachable | Conflict):
                return
        else:
            self._failing = False
        series.pending -= new

    async def _raised(self, series: EventSeries, new: int) -> Stored:
        now = datetime.now(UTC).strftime(RFC_3339)
        try:
            return await self._put(series, series.stored, new, now)
        except Conflict:  # another replica has written it, or we have before a restart
            there = await self._api.patch(series.place, {"lastTimestamp": now})
            return await self._put(series, stored(there), new, now)

    async def _put(self, series: EventSeries, before: Stored | None, new: int, now: str) -> Stored:
        if before is not None:
            try:
                return stored(await self._api.patch(series.place, series.raised(before, new, now)))
            except NotFound:  # events are kept for an hour
                pass
        return stored(await self._api.create(series.home, series.created(new, now)))
