"""Follows the scheduler's preemptions: the victim, its preemptor, whether the victim saved, and how much work it lost.

The scheduler writes an event Preempted on the victim, with the uid of the preemptor, a pod or PodGroup, in the message
(pkg/scheduler/framework/preemption/executor.go in kubernetes). Any user may write such events too, so only those are
read that the scheduler could have written.

The leader marks an event when it begins to report the preemption, and again when the report is written. The next leader
takes over events without the second mark. So each preemption is reported, and only once unless a leader ends between
the report and the second mark.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.cluster.pod_informer import Ended, SeenPod, end_of, has_work_to_lose, seen_pod
from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.kube.reflector import Reflector, Source
from webhook.ledger.protocol import Holding
from webhook.objects.pods import Container, OwnerReference, Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Refused
from webhook.objects.times import unix_seconds
from webhook.objects.view import View, read, view
from webhook.policy.checkpoint.hook_kinds import TERMINATION_LOG, kind_seen, tells
from webhook.policy.checkpoint.hook_plan import grace_of
from webhook.policy.checkpoint.listen import VOLUME
from webhook.policy.checkpoint.work_lost import KILLED, LastSave, Outcome, Work, outcome_of, saved_last, work_since
from webhook.policy.quota.demand import demand_of, gpu_holders
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.latest import NOT_KNOWN, PodShown, Preemption, preemption_of
from webhook.sentences.sentence import problem_text

log = logging.getLogger(__name__)

T = TypeVar("T")

READ_AT_ONCE = 10
"""Victims that are read at a time, right after their eviction, while they exist."""
RECENT = 600.0
"""Seconds for which a preemption is still followed if nobody led, longer than autoscalers let a pod save.

Requests that the API server does not answer are repeated for so long too."""
LATE = 10.0
"""Seconds since an eviction after which the victim may have ended before we looked."""
LOOK = 1.0
"""Seconds between two requests to the API server, and between two checks whether this process leads."""
BEHIND = 5
"""Most seconds for which the watch of pods may lag behind the watch of events."""
UNDER_WAY = 200
"""Victims whose end is watched at a time, each by its own watch. Others wait, and may be gone by then."""
LATE_EVENTS = (1, 2)
"""Seconds to wait for the event of a hook that was cut off, and then again."""
SETTLED = "gpu-tiers.dev/settled"
"""The annotation of an event that a leader reports, or that needs no report."""
REPORTING, SETTLED_BY_NOW = "telling", "true"
"""The values of the annotation: a leader has begun to report it, and no leader has to report it any more."""
_NAME, _UID = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"), re.compile(r"[0-9a-zA-Z-]{1,63}")
_SAID = re.compile(r"Preempted by (?:pod (?P<uid>\S{1,63})|.{1,600}) on node (?P<node>[a-z0-9.-]{1,253})")


class Victim(View, frozen=True):
    """The evicted pod, as the event names it."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Metadata(View, frozen=True):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = {}


class _Event(View, frozen=True):
    metadata: _Metadata = _Metadata()
    involved_object: Victim = Victim()
    event_time: str | None = None
    last_timestamp: str | None = None
    message: str = ""

    @property
    def is_settled(self) -> bool:
        return self.metadata.annotations.get(SETTLED) == SETTLED_BY_NOW


class Preempted(NamedTuple):
    """The content of an event. `by` is the uid of the preemptor, "" if that is no pod.

    `time` is when it happened, in RFC 3339.
    """

    name: str
    version: str
    settled: bool
    victim: Victim
    by: str
    node: str
    time: str


async def preempted(raw: msgspec.Raw) -> Preempted | None:
    """Return the content of an event; None if the scheduler would not write it."""
    found = read(raw, _Event)
    where, victim, said = found.metadata, found.involved_object, _SAID.fullmatch(found.message)
    named = _NAME.fullmatch(victim.name) and _UID.fullmatch(victim.uid) and victim.namespace == where.namespace
    if said is None or not named:
        return None
    by, node, time = said["uid"] or "", said["node"], found.event_time or found.last_timestamp or ""
    return Preempted(where.name, where.resource_version, found.is_settled, victim, by, node, time)


def _holders(pod: Pod, policy: TierPolicy) -> list[Container]:
    """Return the containers of an evicted pod that use GPUs; all of them if none does."""
    containers = pod.spec.containers
    return [containers[each] for each in gpu_holders(pod, (), policy)] or [*containers]


async def victim_outcome(client: Client, pod: Pod, end: Ended, policy: TierPolicy) -> Outcome:
    """Tell by termination messages and the kubelet's events whether an evicted pod saved. Raises ApiError."""
    holders, failed = _holders(pod, policy), False
    hooks = {each.name: each.lifecycle.pre_stop for each in holders if each.lifecycle and each.lifecycle.pre_stop}
    readable = {each.name for each in holders if each.termination_message_path == TERMINATION_LOG}
    telling = {name for name, hook in hooks.items() if tells(hook)} & readable
    where = path("v1", "events", pod.metadata.namespace)
    about = {"fieldSelector": f"reason=FailedPreStopHook,involvedObject.uid={pod.metadata.uid}"}
    # The kubelet reports a hook that it cut off once the container is dead, which may be later.
    killed = any(each.exit_code == KILLED for each in end.containers.values())
    for wait in (0, *(LATE_EVENTS if killed else ())) if hooks else ():
        await asyncio.sleep(wait)
        failed = any([page.items async for page in client.list_pages(where, about)])
        if failed:
            break
    outcome = outcome_of(end.containers, hooked=hooks, telling=telling, failed=failed, seen=end.seen)
    return replace(outcome, grace=grace_of(pod))


class Followed(msgspec.Struct, frozen=True):
    """The end of a victim, as far as it was seen. `of` is its controller, or itself. `gone`: it ended before we looked.

    `preemption` has no preemptor yet; None if nothing is known of the victim, or if it needs no report.
    """

    of: OwnerReference
    preemption: Preemption | None = None
    gone: bool = False


@dataclass(eq=False)
class EvictedPods:
    """Follows evicted pods to their end. `tenant_name` returns the tenant of a namespace, `policy` the active policy.

    `last_used` returns the GPUs that a pod uses or has used, by its uid; None for a pod without GPUs. `last_save`
    returns the last save that a pod has reported, by its uid.
    """

    client: Client
    tenant_name: Callable[[str], str | None]
    policy: Callable[[], TierPolicy]
    last_used: Callable[[str], Holding | None]
    last_save: Callable[[str], LastSave | None]
    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))
    _watching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UNDER_WAY))

    async def follow(self, event: Preempted) -> Followed:
        """Wait for the victim's end.

        Any user may write such an event in their own namespace, so an existing pod must have the condition of a
        preemption, which only users with the right to pods/status can write. A pod without a tier and without GPUs
        needs no report.
        """
        who, late = event.victim, (seconds_since(event.time) or 0.0) > LATE
        itself = OwnerReference(api_version="v1", kind="Pod", name=who.name, uid=who.uid)
        seen = await self._read(who)
        victim = self._shown(seen) if seen and seen.preempted else None
        if seen is None:  # what is known now may be forgotten when this process leads again
            return Followed(itself, self._preemption_of_gone(event, maybe=False), gone=True)
        if victim is None or not _concerns_us(victim):
            return Followed(itself)
        async with self._watching:
            end = await end_of(self.client, who.namespace, who.name, who.uid)
        seconds = None if late else seconds_since(event.time)  # it may have ended before we looked
        outcome = await persistently(lambda: victim_outcome(self.client, seen, end, self.policy()))
        lost = self._lost(event, seen, end, outcome)
        found = preemption_of(event.time, event.node, victim, None, outcome, seconds, lost)
        return Followed(seen.metadata.controller or itself, found)

    def _lost(self, event: Preempted, seen: SeenPod, end: Ended, outcome: Outcome) -> Work | None:
        """Return the work lost since the save in a termination message, or a reported save, or the pod's start."""
        policy, evicted_at = self.policy(), unix_seconds(event.time)
        if not has_work_to_lose(seen, policy):
            return None
        saved = saved_last(end.containers.values(), outcome, evicted_at) or self.last_save(event.victim.uid)
        ends = [each.finished_at for each in end.containers.values() if each.finished_at is not None]
        ended = max([*ends, *([evicted_at] if evicted_at else [])], default=None)  # clocks of machines differ
        holding = self.last_used(event.victim.uid)  # with its GPUs by claims
        gpus = holding.charge.gpus if holding else demand_of(seen, (), policy)
        return None if ended is None else work_since(gpus, ended, saved, seen.began)

    async def until_known(self, event: Preempted) -> None:
        """Wait until the preemptor is known, for BEHIND seconds at most. A preemptor without GPUs is never known."""
        for _ in range(BEHIND):
            if not event.by or self.last_used(event.by):
                return
            await asyncio.sleep(LOOK)

    def preemption(self, event: Preempted, ended: Followed, *, led: bool) -> Preemption | None:
        """Return the preemption to report; None if it needs no report.

        If the victim was gone before we looked, only its GPUs are known. If this process has not `led` since then, it
        may not know these either. Then the victim counts as ours if its preemptor uses GPUs.
        """
        preemptor = self._known(event.by)
        found = ended.preemption
        if found is None and ended.gone:
            found = self._preemption_of_gone(event, maybe=not led and preemptor is not None)
        return replace(found, preemptor=preemptor) if found else None

    def _preemption_of_gone(self, event: Preempted, *, maybe: bool) -> Preemption | None:
        """Return what is known of a victim. Its name must match, because an event may name the uid of another pod.

        `maybe`: it may have been ours although nothing is known of it.
        """
        who, found = event.victim, self._known(event.victim.uid)
        victim = found if found and (found.namespace, found.name) == (who.namespace, who.name) else None
        if victim is None and maybe:
            tenant = self.tenant_name(who.namespace) or ""
            victim = PodShown(who.namespace, who.name, who.uid, tenant=tenant, gpus=NOT_KNOWN)
        if victim is None or not _concerns_us(victim):
            return None
        holding, evicted_at, lost = self.last_used(who.uid), unix_seconds(event.time), None
        if holding is not None and evicted_at is not None:
            lost = work_since(holding.charge.gpus, evicted_at, self.last_save(who.uid), None)
        return preemption_of(event.time, event.node, victim, None, Outcome("unknown"), None, lost)

    async def _read(self, who: Victim) -> SeenPod | None:
        """Return the pod if it still exists."""

        async def ask() -> SeenPod | None:
            async with self._reading:
                try:
                    tree = await self.client.get(path("v1", "pods", who.namespace, who.name))
                except NotFound:
                    return None
                found = seen_pod(msgspec.json.encode(tree))
                return found if found.metadata.uid == who.uid else None

        return await persistently(ask)

    def _known(self, uid: str) -> PodShown | None:
        found = self.last_used(uid)
        if found is None:
            return None
        charge, tenant = found.charge, self.tenant_name(found.namespace) or ""
        tier, flavor = charge.tier or "", charge.flavor or ""
        return PodShown(found.namespace, found.name, uid, tier, tenant, written(charge.gpus), flavor=flavor)

    def _shown(self, pod: Pod) -> PodShown:
        metadata, policy = pod.metadata, self.policy()
        tier, holders = policy.tiers.of_class(pod.spec.priority_class_name), _holders(pod, policy)
        used = self.last_used(metadata.uid)
        handlers = [each.lifecycle.pre_stop for each in holders if each.lifecycle and each.lifecycle.pre_stop]
        return PodShown(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            tier=tier.name if tier else "",
            tenant=self.tenant_name(metadata.namespace) or "",
            gpus=written(demand_of(pod, (), policy)),
            flavor=(used.charge.flavor or "") if used else "",
            hook=kind_seen(handlers, listens=any(volume.name == VOLUME for volume in pod.spec.volumes)),
        )


async def persistently(ask: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request until it is answered, because leaders change when an API server restarts.

    Such a server does not answer at first, or does not know any rights yet. Raises NotFound, and ApiError after RECENT.
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


def seconds_since(time: str) -> float | None:
    """Return the seconds since a time, at least 0 because clocks differ; None if it is not a time."""
    began = unix_seconds(time)
    return None if began is None else max(round(datetime.now(UTC).timestamp() - began, 1), 0.0)


_OF_PODS = {"fieldSelector": "reason=Preempted,involvedObject.kind=Pod", "timeoutSeconds": "120"}
_PREEMPTED = Source(path("v1", "events"), _OF_PODS, key="uid")
"""The watch of preemptions. It ends early, because Events have no bookmarks: the API server does not cache them, and a
silent watch would be taken for a broken one."""


@dataclass(eq=False)
class PreemptionWatch:
    """Follows preemptions. Run `run` as a task.

    Every replica follows the victims, because they are soon gone. Only the leading one, which knows pods, reports:
    `known_for` returns the seconds for which it has known them, 0 on the others. `report` gets a preemption that has
    ended, with the victim's controller, or the victim itself, and returns once that is stored.
    """

    client: Client
    evicted: EvictedPods
    known_for: Callable[[], float]
    report: Callable[[Preemption, OwnerReference], Awaitable[None]]
    _begun: dict[str, Victim] = field(default_factory=dict)
    _victims: set[Victim] = field(default_factory=set)
    _unreported: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def run(self) -> None:
        async with self._tasks:
            self._tasks.create_task(Reflector(self.client, _PREEMPTED, preempted, self._changed, self._listed).run())

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
        led = since is not None and self.known_for() > since + LATE  # clocks of machines differ
        try:
            ended = await self.evicted.follow(event)
            while not self.known_for():  # noqa: ASYNC110 - nothing signals when that changes
                await asyncio.sleep(LOOK)
            await self.evicted.until_known(event)
            self._unreported.pop(uid, None)  # a mark from now on is our own
            preemption = self.evicted.preemption(event, ended, led=led)
            if preemption is not None and await self._claim(event):
                await self.report(preemption, ended.of)
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
            return not view(await persistently(lambda: self.client.get(where)), _Event).is_settled
        return True

    async def _mark(self, event: Preempted, said: str, version: str = "") -> None:
        """Mark an event. Raises Conflict if somebody has written it since that version. Other errors are logged."""
        of_version = {"resourceVersion": version} if version else {}
        mark = {"metadata": {**of_version, "annotations": {SETTLED: said}}}
        try:
            await self.client.patch(path("v1", "events", event.victim.namespace, event.name), mark)
        except Conflict:
            raise
        except ApiError as error:
            log.warning("preemption not marked", {"pod": event.victim.name, "error": problem_text(error)})
