"""Follows the scheduler's preemptions: the victim, its preemptor, and whether the victim saved.

The scheduler writes an event Preempted on the victim, with the uid of the preemptor, a pod or PodGroup, in the message
(pkg/scheduler/framework/preemption/executor.go in kubernetes). The leader marks that event when it begins to report the
preemption, and again when the report is written. The next leader takes over events without the second mark. So each
preemption is reported, and only once unless a leader ends between the report and the second mark.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from webhook.controllers.evicted_pods import (
    LATE,
    LOOK,
    RECENT,
    REPORTING,
    SETTLED,
    SETTLED_BY_NOW,
    EvictedPods,
    Preempted,
    Victim,
    is_settled,
    persistently,
    preempted,
    seconds_since,
)
from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, Conflict
from webhook.kube.reflector import Reflector, Source
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Refused
from webhook.report.latest import Preemption
from webhook.sentences.sentence import problem_text

log = logging.getLogger(__name__)

_PREEMPTED = Source(
    path("v1", "events"),
    {"fieldSelector": "reason=Preempted,involvedObject.kind=Pod", "timeoutSeconds": "120"},
    key="uid",
)
"""The watch of preemptions. It ends early, because Events have no bookmarks: the API server does not cache them, and a
silent watch would be taken for a broken one."""

Report = Callable[[Preemption, OwnerReference], Awaitable[None]]
"""Reports a preemption that has ended, with the victim's controller, or the victim itself. Returns once that is
stored."""


class PreemptionWatch:
    """Follows preemptions. Run `run` as a task.

    Every replica follows the victims, because they are soon gone. Only the leading one, which knows pods, reports:
    `known_for` returns the seconds for which it has known them, 0 on the others.
    """

    def __init__(self, client: Client, evicted: EvictedPods, known_for: Callable[[], float], report: Report) -> None:
        self._client = client
        self._evicted = evicted
        self._known_for = known_for
        self._report = report
        self._begun: dict[str, Victim] = {}
        self._victims: set[Victim] = set()
        self._unreported: dict[str, asyncio.Task[None]] = {}
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        async with self._tasks:
            self._tasks.create_task(Reflector(self._client, _PREEMPTED, preempted, self._changed, self._listed).run())

    def _changed(self, uid: str, event: Preempted | None) -> None:
        """Begin to follow a new event, each victim once. Stop when another replica has reported it."""
        if (event is None or event.settled) and (task := self._unreported.pop(uid, None)):
            task.cancel()
        if event is None:
            self._victims.discard(self._begun.pop(uid, Victim()))
        elif not event.settled and uid not in self._begun and event.victim not in self._victims:
            self._begun[uid] = event.victim
            self._victims.add(event.victim)
            if (seconds_since(event.time) or 0.0) < RECENT:
                self._unreported[uid] = self._tasks.create_task(self._followed(uid, event))

    def _listed(self, found: Mapping[str, Preempted]) -> None:
        for uid in self._begun.keys() - found.keys():
            self._changed(uid, None)
        for uid, event in found.items():
            self._changed(uid, event)

    async def _followed(self, uid: str, event: Preempted) -> None:
        since = seconds_since(event.time)
        led = since is not None and self._known_for() > since + LATE  # clocks of machines differ
        try:
            ended = await self._evicted.follow(event)
            while not self._known_for():  # noqa: ASYNC110 - nothing signals when that changes
                await asyncio.sleep(LOOK)
            await self._evicted.until_known(event)
            self._unreported.pop(uid, None)  # a mark from now on is our own
            preemption = self._evicted.preemption(event, ended, led=led)
            if preemption is not None and await self._claim(event):
                await self._report(preemption, ended.of)
            await self._mark(event, SETTLED_BY_NOW)
        except (ApiError, Refused) as error:
            log.warning("preemption not followed", {"pod": event.victim.name, "error": problem_text(error)})
        except Exception:
            log.exception("preemption not followed", {"pod": event.victim.name})

    async def _claim(self, event: Preempted) -> bool:
        """Mark the event as being reported by us. Return False if another process has finished its report.

        A process that has only begun does not lead any more. Without a mark an event may be reported twice.
        """
        try:
            await self._mark(event, REPORTING, event.version)
        except Conflict:
            where = path("v1", "events", event.victim.namespace, event.name)
            return not is_settled(await persistently(lambda: self._client.get(where)))
        return True

    async def _mark(self, event: Preempted, said: str, version: str = "") -> None:
        """Mark an event. Raises Conflict if somebody has written it since that version."""
        of_version = {"resourceVersion": version} if version else {}
        mark = {"metadata": {**of_version, "annotations": {SETTLED: said}}}
        try:
            await self._client.patch(path("v1", "events", event.victim.namespace, event.name), mark)
        except Conflict:
            raise
        except ApiError as error:
            log.warning("preemption not marked", {"pod": event.victim.name, "error": problem_text(error)})
