"""Follows the scheduler's preemptions: who was evicted for whom, and whether that saved.

The scheduler writes an event Preempted on the victim, with the uid of the pod or PodGroup that takes its place in the
message (pkg/scheduler/framework/preemption/executor.go in kubernetes). Whoever leads marks that event when it begins
to tell of it, and again when that is written; whoever leads next takes up what lacks the second mark. So each is told
of, and once unless a leader ends between the word and the mark.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
import structlog

from webhook.cluster.ending_pod import Ended, end_of
from webhook.cluster.pod_informer import SeenPod, seen_pod
from webhook.cluster.work_of_pod import has_work_to_lose
from webhook.controllers.preempted_events import (
    SETTLED,
    SETTLED_BY_NOW,
    TOLD_NOW,
    Preempted,
    Victim,
    hook_of,
    is_settled,
    preempted,
    victim_outcome,
)
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.ledger.protocol import Holding
from webhook.objects.pods import OwnerReference, Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Refused
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.checkpoint.at_risk import LastSave, Work, work_since
from webhook.policy.checkpoint.outcome import Outcome, saved_last
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.readmodel.latest import NOT_KNOWN, PodShown, Preemption, preemption_of
from webhook.sentences.sentence import told

log = structlog.get_logger(__name__)

T = TypeVar("T")

READ_AT_ONCE = 10
"""Victims that are read at a time: at once after their eviction, as long as they are there."""
RECENT = 600.0
"""Seconds for which a preemption is told of, where nobody led: longer than autoscalers let a pod save."""
LATE = 10.0
"""Seconds after which a victim may have ended before we looked."""
LOOK = 1.0
"""Seconds between two looks at whether this process leads, or tries to read a victim."""
UNDER_WAY = 200
"""Victims whose end is waited for at a time; a watch each. Of those beyond it may be gone before it is their turn."""
_PREEMPTED = Source(
    path("v1", "events"),
    {"fieldSelector": "reason=Preempted,involvedObject.kind=Pod", "timeoutSeconds": "120"},
    key="uid",
)
"""Of Events there are no bookmarks, for the API server has no watch cache of them. So it is asked to end the watch
before its silence is taken for death."""
_NOBODY = Victim()
NOT_SEEN = Outcome("unknown")

Told = Callable[[Preemption, OwnerReference], Awaitable[None]]
"""Is handed a preemption that has come to its end, and what the victim is of: its controller, else itself. Returns once
its word is stored."""


@dataclass(frozen=True, slots=True)
class _Followed:
    """What became of a victim, as far as it could be seen. `of`: its controller, else itself; `gone`: before we looked.

    `victim` is None where it was not read, or not evicted by the scheduler.
    """

    of: OwnerReference
    victim: PodShown | None
    outcome: Outcome = NOT_SEEN
    seconds: float | None = None
    lost: Work | None = None
    gone: bool = False


class PreemptionWatch:
    """Run `run` as a task. `tenant_name` tells whose a namespace is, `policy` gives the one in force.

    Every replica follows the victims, which are soon gone; the one that is `leading`, and knows what pods hold, tells.
    `last_held` tells by uid what a pod holds or has held; of one that holds no GPUs nobody knows more.
    `last_save` tells by uid when a pod has saved last, where that was reported.
    """

    def __init__(
        self,
        client: Client,
        tenant_name: Callable[[str], str | None],
        policy: Callable[[], TierPolicy],
        last_held: Callable[[str], Holding | None],
        leading: Callable[[], bool],
        told: Told,
        last_save: Callable[[str], LastSave | None],
    ) -> None:
        self._client = client
        self._tenant_name = tenant_name
        self._policy = policy
        self._last_held = last_held
        self._told = told
        self._last_save = last_save
        self._leading = leading
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._turns = asyncio.Semaphore(UNDER_WAY)
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
            self._victims.discard(self._begun.pop(uid, _NOBODY))
        elif not event.settled and uid not in self._begun and event.victim not in self._victims:
            self._begun[uid] = event.victim
            self._victims.add(event.victim)
            if (_seconds_since(event.time) or 0.0) < RECENT:
                self._untold[uid] = self._tasks.create_task(self._followed(uid, event))

    def _listed(self, found: Mapping[str, Preempted]) -> None:
        for uid in self._begun.keys() - found.keys():
            self._changed(uid, None)
        for uid, event in found.items():
            self._changed(uid, event)

    async def _followed(self, uid: str, event: Preempted) -> None:
        led = self._leading()
        try:
            ended = await self._follow(event)
            while not self._leading():  # noqa: ASYNC110 - nobody tells when that changes
                await asyncio.sleep(LOOK)
            self._untold.pop(uid, None)  # the mark that is seen from now on is our own
            preemption = self._preemption(event, ended, led=led)
            if preemption is not None and await self._claim(event):
                await self._told(preemption, ended.of)
            await self._mark(event, SETTLED_BY_NOW)
        except (ApiError, Refused) as error:
            log.warning("preemption not followed", pod=event.victim.name, error=told(error))
        except Exception:
            log.exception("preemption not followed", pod=event.victim.name)

    async def _claim(self, event: Preempted) -> bool:
        """Say that we tell of it; False where another process has. One that only has begun to does not lead any more.

        Without a mark it may be told of twice.
        """
        try:
            await self._mark(event, TOLD_NOW, event.version)
        except Conflict:
            where = path("v1", "events", event.victim.namespace, event.name)
            return not is_settled(await _persistently(lambda: self._client.get(where)))
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
            log.warning("preemption not marked", pod=event.victim.name, error=told(error))

    async def _follow(self, event: Preempted) -> _Followed:
        """Wait for the victim's end.

        Anybody may write such an event in a namespace of theirs, so a pod that is there must say itself that the
        scheduler has evicted it, which nobody else can write. A pod without a tier and GPUs is nobody's concern.
        """
        who, late = event.victim, (_seconds_since(event.time) or 0.0) > LATE
        itself = OwnerReference(api_version="v1", kind="Pod", name=who.name, uid=who.uid)
        seen = await self._read(who)
        victim = self._shown(seen.pod) if seen and seen.preempted else None
        if seen is None or victim is None or not _concerns_us(victim):
            return _Followed(itself, victim, gone=seen is None)
        async with self._turns:
            end = await end_of(self._client, who.namespace, who.name, who.uid)
        seconds = None if late else _seconds_since(event.time)  # it may have ended before we looked
        outcome = await _persistently(lambda: victim_outcome(self._client, seen.pod, end, self._policy()))
        lost = self._lost(event, seen, end, outcome)
        return _Followed(seen.pod.metadata.controller or itself, victim, outcome, seconds, lost)

    def _lost(self, event: Preempted, seen: SeenPod, end: Ended, outcome: Outcome) -> Work | None:
        """By what its containers told at their end, else by what it reported, else since its start."""
        policy, evicted_at = self._policy(), _at(event.time)
        if not has_work_to_lose(seen.pod, policy):
            return None
        saved = saved_last(end.containers.values(), outcome, evicted_at) or self._last_save(event.victim.uid)
        ends = [each.finished_at for each in end.containers.values() if each.finished_at is not None]
        ended = max(ends, default=evicted_at)
        held = self._last_held(event.victim.uid)  # with what it holds by claims
        gpus = held.charge.gpus if held else demand_of(seen.pod, (), policy)
        return None if ended is None else work_since(gpus, ended, saved, seen.began)

    def _preemption(self, event: Preempted, ended: _Followed, *, led: bool) -> Preemption | None:
        """What is told. Of a victim that was gone before we looked no more is known than what it held.

        Where this process has not `led` since then, and so does not know even that, it is taken for ours if a pod that
        holds GPUs took its place.
        """
        who, victim, preemptor = event.victim, ended.victim, self._known(event.by)
        if ended.gone:
            # What is known of it, if it was of that name: an event may bear the uid of anybody's pod.
            found = self._known(who.uid)
            victim = found if found and (found.namespace, found.name) == (who.namespace, who.name) else None
            if victim is None and not led and preemptor is not None:
                tenant = self._tenant_name(who.namespace) or ""
                victim = PodShown(who.namespace, who.name, who.uid, tenant=tenant, gpus=NOT_KNOWN)
        if victim is None or not _concerns_us(victim):
            return None
        lost = self._lost_by_report(event) if ended.gone else ended.lost
        return preemption_of(event.time, event.node, victim, preemptor, ended.outcome, ended.seconds, lost)

    def _lost_by_report(self, event: Preempted) -> Work | None:
        held, saved = self._last_held(event.victim.uid), self._last_save(event.victim.uid)
        evicted_at = _at(event.time)
        return None if held is None or evicted_at is None else work_since(held.charge.gpus, evicted_at, saved, None)

    async def _read(self, who: Victim) -> SeenPod | None:
        """The pod, if it still exists."""

        async def ask() -> SeenPod | None:
            async with self._reading:
                return await self._pod(who)

        return await _persistently(ask)

    async def _pod(self, reference: Victim) -> SeenPod | None:
        try:
            tree = await self._client.get(path("v1", "pods", reference.namespace, reference.name))
        except NotFound:
            return None
        found = seen_pod(msgspec.json.encode(tree))
        return found if found.pod.metadata.uid == reference.uid else None

    def _known(self, uid: str) -> PodShown | None:
        found = self._last_held(uid)
        if found is None:
            return None
        tenant = self._tenant_name(found.namespace) or ""
        gpus = written(found.charge.gpus)
        return PodShown(found.namespace, found.name, uid, tier=found.charge.tier or "", tenant=tenant, gpus=gpus)

    def _shown(self, pod: Pod) -> PodShown:
        metadata = pod.metadata
        return PodShown(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            tier=metadata.labels.get(TIER_LABEL, ""),
            tenant=self._tenant_name(metadata.namespace) or "",
            gpus=written(demand_of(pod, (), self._policy())),
            hook=hook_of(pod, self._policy()),
        )


async def _persistently(ask: Callable[[], Awaitable[T]]) -> T:
    """What comes of a question: an API server that begins anew does not answer, or knows nobody's rights at first, and
    that is when leaders change. Raises NotFound, and ApiError where it is too late to tell.
    """
    until = time.monotonic() + RECENT
    while True:
        try:
            return await ask()
        except NotFound:
            raise
        except ApiError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(LOOK)


def _concerns_us(victim: PodShown) -> bool:
    return bool(victim.tier) or victim.gpus != "0"


def _seconds_since(time: str) -> float | None:
    """From then till now; None where that is no time. Another machine's clock may be ahead of ours."""
    began = _at(time)
    return None if began is None else max(round(datetime.now(UTC).timestamp() - began, 1), 0.0)


def _at(time: str) -> float | None:
    """In seconds since 1970; None where that is no time."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None
