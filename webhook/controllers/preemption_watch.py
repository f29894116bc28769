"""Follows the scheduler's preemptions: who was evicted for whom, and whether that saved.

The scheduler writes an event Preempted on the victim, with the uid of the pod or PodGroup that takes its place in the
message (pkg/scheduler/framework/preemption/executor.go in kubernetes). Whoever leads marks that event when it begins
to tell of it, and again when that is written; whoever leads next takes up what lacks the second mark. So each is told
of, and once unless a leader ends between the word and the mark.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from webhook.controllers.evicted_pods import (
    LOOK,
    RECENT,
    SETTLED,
    SETTLED_BY_NOW,
    TOLD_NOW,
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
"""Of Events there are no bookmarks, for the API server has no watch cache of them. So it is asked to end the watch
before its silence is taken for death."""

Told = Callable[[Preemption, OwnerReference], Awaitable[None]]
"""Is handed a preemption that has come to its end, and what the victim is of: its controller, else itself. Returns once
its word is stored."""


class PreemptionWatch:
    """Run `run` as a task.

    Every replica follows the victims, which are soon gone; the one that is `leading`, and knows what pods hold, tells.
    """

    def __init__(self, client: Client, evicted: EvictedPods, leading: Callable[[], bool], told: Told) -> None:
        self._client = client
        self._evicted = evicted
        self._leading = leading
        self._told = told
        self._begun: dict[str, Victim] = {}
        self._victims: set[Victim] = set()
        self._untold: dict[str, asyncio.Task[None]] = {}
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        async with self._tasks:
            self._tasks.create_task(Reflector(self._client, _PREEMPTED, preempted, self._changed, self._listed).run())

    def _changed(self, uid: str, event: Preempted | None) -> None:
        """Begin to follow a new one, each victim once; leave off one that another replica has told of."""
        if (event is None or event.settled) and (task := self._untold.pop(uid, None)):
            task.cancel()
        if event is None:
            self._victims.discard(self._begun.pop(uid, Victim()))
        elif not event.settled and uid not in self._begun and event.victim not in self._victims:
            self._begun[uid] = event.victim
            self._victims.add(event.victim)
            if (seconds_since(event.time) or 0.0) < RECENT:
                self._untold[uid] = self._tasks.create_task(self._followed(uid, event))

    def _listed(self, found: Mapping[str, Preempted]) -> None:
        for uid in self._begun.keys() - found.keys():
            self._changed(uid, None)
        for uid, event in found.items():
            self._changed(uid, event)

    async def _followed(self, uid: str, event: Preempted) -> None:
        led = self._leading()
        try:
            ended = await self._evicted.follow(event)
            while not self._leading():  # noqa: ASYNC110 - nobody tells when that changes
                await asyncio.sleep(LOOK)
            await self._evicted.until_known(event)
            self._untold.pop(uid, None)  # the mark that is seen from now on is our own
            preemption = self._evicted.preemption(event, ended, led=led)
            if preemption is not None and await self._claim(event):
                await self._told(preemption, ended.of)
            await self._mark(event, SETTLED_BY_NOW)
        except (ApiError, Refused) as error:
            log.warning("preemption not followed", {"pod": event.victim.name, "error": problem_text(error)})
        except Exception:
            log.exception("preemption not followed", {"pod": event.victim.name})

    async def _claim(self, event: Preempted) -> bool:
        """Say that we tell of it; False where another process has. One that only has begun to does not lead any more.

        Without a mark it may be told of twice.
        """
        try:
            await self._mark(event, TOLD_NOW, event.version)
        except Conflict:
            where = path("v1", "events", event.victim.namespace, event.name)
            return not is_settled(await persistently(lambda: self._client.get(where)))
        return True

    async def _mark(self, event: Preempted, said: str, version: str = "") -> None:
        """Raises Conflict where somebody has written the event since that version."""
        of_version = {"resourceVersion": version} if version else {}
        mark = {"metadata": {**of_version, "annotations": {SETTLED: said}}}
        try:
            await self._client.patch(path("v1", "events", event.victim.namespace, event.name), mark)
        except Conflict:
            raise
        except ApiError as error:
            log.warning("preemption not marked", {"pod": event.victim.name, "error": problem_text(error)})
