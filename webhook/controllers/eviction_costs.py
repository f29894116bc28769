"""Tells other schedulers what an eviction costs, by annotations that they read: Kueue on Workloads, Volcano on pods.

Only a leader writes. An annotation that somebody else has written, as managedFields say, is left alone.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from math import inf
from typing import Literal, NamedTuple

import msgspec

from webhook.cluster.pod_informer import RUNNING
from webhook.controllers.work_at_risk import PodAtRisk
from webhook.kube.client import FIELD_MANAGER, Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, Conflict, Failed, NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Informer, Reflectors, Source, Store
from webhook.kube.wire import RFC_3339
from webhook.objects.pods import ManagedFields, Metadata
from webhook.objects.refusal import Unreadable
from webhook.objects.view import View, at, mapped, read
from webhook.policy.checkpoint.work_lost import MOST, boost, room_between, save_time
from webhook.policy.values.tier_policy import TierPolicy

log = logging.getLogger(__name__)

UNTIL_HEARD = 60.0
"""Seconds after the start in which all trainings that report have done so: until then more work seems to be at risk."""
ROUND = 5.0
"""Seconds between two rounds."""
MOST_WRITES = 50
"""In a round: what is to go first, then the largest changes. The others wait for the next one."""


class _Metadata(Metadata, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class _Object(View, frozen=True):
    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class Annotated:
    """An object that may bear the annotation; `value` is "" where it has none. `ours`: nobody else has written it.

    `owners` are the uids of what owns it.
    """

    namespace: str
    name: str
    owners: tuple[str, ...]
    value: str
    ours: bool


class Wanted(NamedTuple):
    """The value that an annotation should have, "" for none, and by how much the one that it has is off."""

    value: str
    off: float


GONE = Wanted("", inf)
Found = Mapping[str, Annotated]
"""The objects that may bear an annotation, by uid."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One that is told, by an annotation of its own, on objects of `plural`: on those that one of `selections` finds.

    `wanted` are the values of the annotation by the uids of objects, at a time in seconds since 1970.
    """

    name: Literal["Kueue", "Volcano"]
    annotation: str
    group: str
    plural: str
    selections: Callable[[TierPolicy], list[dict[str, str]]]
    wanted: Callable[[Iterable[PodAtRisk], Found, TierPolicy, float], Mapping[str, Wanted]]


def boosts(pods: Iterable[PodAtRisk], found: Found, policy: TierPolicy, now: float) -> dict[str, Wanted]:
    """Of the Workloads that own these pods, or what made them. An evicted one has none: it would evict others by it."""
    owned = defaultdict[tuple[str, str], list[str]](list)
    for uid, workload in found.items():
        for owner in workload.owners:
            owned[workload.namespace, owner].append(uid)
    at_risk = defaultdict[str, float](float)
    for pod in pods:
        makers = ((pod.holding.namespace, uid) for uid in (pod.uid, pod.holding.controller, pod.holding.gang))
        for uid in next((owned[maker] for maker in makers if maker in owned), ()):
            at_risk[uid] += pod.gpus * max(0.0, now - pod.since)
    room = room_between(tier.value for tier in policy.tiers)
    wanted: dict[str, Wanted] = {}
    for uid, gpu_seconds in at_risk.items():
        value = found[uid].value
        written = int(value) if value.isdecimal() and len(value) <= len(str(MOST)) else 0
        if right := boost(gpu_seconds, written, room):
            wanted[uid] = Wanted(str(right), abs(right - written))
    return wanted


def save_times(pods: Iterable[PodAtRisk], found: Found, _: TierPolicy, now: float) -> dict[str, Wanted]:
    """Of pods that Volcano places; of one that has not saved, when it began: it would lose what came since."""
    wanted: dict[str, Wanted] = {}
    for pod in pods:
        if pod.uid in found:
            try:
                written = datetime.strptime(found[pod.uid].value, RFC_3339).replace(tzinfo=UTC).timestamp()
            except ValueError:
                written = 0.0
            saved = save_time(min(pod.since, now), written)
            wanted[pod.uid] = Wanted(datetime.fromtimestamp(saved, UTC).strftime(RFC_3339), abs(saved - written))
    return wanted


def _placed_by_volcano(policy: TierPolicy) -> list[dict[str, str]]:
    names = (name for name, system in policy.systems.items() if system == "Volcano")
    return [{"fieldSelector": f"{RUNNING.params['fieldSelector']},spec.schedulerName={name}"} for name in names]


SCHEDULERS = (
    Scheduler("Kueue", "kueue.x-k8s.io/priority-boost", "kueue.x-k8s.io", "workloads", lambda _: [{}], boosts),
    Scheduler("Volcano", "volcano.sh/last-checkpoint-time", "", "pods", _placed_by_volcano, save_times),
)
"""Kueue's is KEP-7990, behind its gate PriorityBoost. Volcano's is read by the plugin `checkpoint` of volcano#5999."""


class EvictionCosts:
    """Tells one scheduler. Run `run` as a task.

    `at_risk` are the pods with work to lose. `leading`: whether this replica writes, and knows all of them. `count`
    hears the outcome of each write.
    """

    def __init__(
        self,
        client: Client,
        scheduler: Scheduler,
        policy: Callable[[], TierPolicy],
        leading: Callable[[], bool],
        at_risk: Callable[[], Iterable[PodAtRisk]],
        count: Callable[[str], None],
    ) -> None:
        self._client = client
        self._scheduler = scheduler
        self._policy = policy
        self._leading = leading
        self._at_risk = at_risk
        self._count = count
        self._discovery = Discovery(client)
        self._version = "v1"
        self._sources: list[Source] = []
        self._found: list[Store[Annotated]] = []
        self._reflectors = Reflectors()
        self._problem = ""

    async def run(self) -> None:
        if self._policy().reports is not None:
            await asyncio.sleep(UNTIL_HEARD)
        while True:
            try:
                self._failed(await self._round())
            except (ApiError, Unreadable) as error:
                self._failed(str(error))
            except Exception:
                log.exception("eviction costs not told", {"scheduler": self._scheduler.name})
            await asyncio.sleep(ROUND)

    def _failed(self, problem: str) -> None:
        """Said once: without the right to write it stays so."""
        if problem and problem != self._problem:
            log.warning("eviction costs not told", {"scheduler": self._scheduler.name, "error": problem})
        self._problem = problem

    async def _round(self) -> str:
        """The first problem with a single object; "" without one."""
        policy = self._policy()
        telling = policy.eviction_cost.get(self._scheduler.name, "Off") if self._leading() else "Off"
        sources: list[Source] = []
        if telling != "Off":
            scheduler = self._scheduler
            if scheduler.group:
                self._version = await self._discovery.api_version(scheduler.group, scheduler.plural)
            place = path(self._version, scheduler.plural)
            sources = [Source(place, params, "uid", metadata_only=True) for params in scheduler.selections(policy)]
        await self._follow(sources)
        if not self._sources or not self._reflectors.synced:
            return ""
        found = {uid: each for store in self._found for uid, each in store.objects.items()}
        at_risk = (pod for pod in self._at_risk() if pod.holding.charge.tier and pod.holding.ends_in is None)
        wanted = self._scheduler.wanted(at_risk, found, policy, time.time()) if telling == "Write" else {}
        problems = [await self._write(uid, found[uid], value) for uid, value in writes_of_a_round(found, wanted)]
        return next(filter(None, problems), "")

    async def _follow(self, sources: list[Source]) -> None:
        if sources == self._sources:
            return
        await self._reflectors.stop()
        self._sources, self._found = sources, [Store(lambda: None) for _ in sources]
        informers = [
            Informer(self._client, source, self._annotated, store)
            for source, store in zip(sources, self._found, strict=True)
        ]
        self._reflectors = Reflectors(*(each.reflector for each in informers))
        self._reflectors.start()

    def _annotated(self, raw: msgspec.Raw) -> Annotated:
        metadata, annotation = read(raw, _Object).metadata, self._scheduler.annotation
        value = metadata.annotations.get(annotation, "")
        fields = (
            (each.manager, mapped(at(each.fields_v1, "f:metadata.f:annotations"))) for each in metadata.managed_fields
        )
        writers = {manager for manager, annotations in fields if f"f:{annotation}" in annotations}
        owners = tuple(each.uid for each in metadata.owner_references)
        return Annotated(metadata.namespace, metadata.name, owners, value, not value or writers == {FIELD_MANAGER})

    async def _write(self, uid: str, there: Annotated, value: str) -> str:
        """What is wrong with that object; "" where nothing is. One that was deleted, or made anew, needs no write."""
        body = {"metadata": {"uid": uid, "annotations": {self._scheduler.annotation: value or None}}}
        try:
            await self._client.patch(path(self._version, self._scheduler.plural, there.namespace, there.name), body)
        except (NotFound, Conflict):
            return ""
        except Failed as error:
            self._count("failed")
            return str(error)
        self._count("written")
        return ""


def writes_of_a_round(found: Found, wanted: Mapping[str, Wanted]) -> list[tuple[str, str]]:
    """The values that are written in a round, by the uids of their objects."""
    new = ((uid, each, wanted.get(uid, GONE)) for uid, each in found.items() if each.ours)
    off = ((wish.off, uid, wish.value) for uid, each, wish in new if wish.value != each.value)
    return [(uid, value) for _, uid, value in nlargest(MOST_WRITES, off)]
