"""Adds up the work at risk: the work of training pods since their last save, by tenant and tier.

It also reports to other schedulers what an eviction costs, by annotations that they read: Kueue on Workloads, Volcano
on pods. Only a leader writes. An annotation that another manager has written, by managedFields, is never changed.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nlargest
from math import inf
from typing import Literal, NamedTuple

import msgspec

from webhook.cluster.pod_informer import RUNNING
from webhook.controllers.gpu_seconds import counted_once
from webhook.controllers.pods_on_nodes import PodWork, WorkingPod
from webhook.kube.client import FIELD_MANAGER, RFC_3339, Client, path
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, Conflict, Failed, NotFound
from webhook.kube.reflector import Reflectors, Source, Store, storing
from webhook.ledger.protocol import Holding
from webhook.objects.pods import ManagedFields, Metadata
from webhook.objects.refusal import Unreadable
from webhook.objects.view import View, at, mapped, read
from webhook.policy.checkpoint.work_lost import MOST, LastSave, boost, room_between, save_time
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.gpus_now import RisksOf

SUM_SECONDS = 10.0
"""Seconds for which a sum is reused, because a sum over tens of thousands of pods takes time from reviews."""


class PodAtRisk(NamedTuple):
    """A pod that would lose its work since `since`, in seconds since 1970. `exact`: since a reported save."""

    uid: str
    holding: Holding
    node: str
    work: PodWork
    gpus: float
    since: float
    exact: bool

    @property
    def tier(self) -> str:
        """The tier on which it counts; "" for none."""
        return self.holding.charge.tier or ""


@dataclass(eq=False)
class WorkAtRisk:
    """Adds up work at risk. `working` returns the pods with work to lose; none if this replica does not lead.

    `tenant_name` returns the tenant of a namespace, and `last_save` the last reported save of a pod, by its uid.
    """

    working: Callable[[], Iterable[WorkingPod]]
    tenant_name: Callable[[str], str | None]
    last_save: Callable[[str], LastSave | None]
    clock: Callable[[], float] = time.time
    _sums: RisksOf = field(default_factory=dict)
    _until: float = 0.0

    def gpu_seconds(self) -> RisksOf:
        now = self.clock()
        if now >= self._until:
            by_namespace = defaultdict[tuple[str, str, bool], float](float)
            for pod in self.pods():
                by_namespace[pod.holding.namespace, pod.tier, pod.exact] += pod.gpus * max(0.0, now - pod.since)
            found = defaultdict[tuple[str, str, bool], float](float)
            for (namespace, tier, exact), gpu_seconds in by_namespace.items():
                found[self.tenant_name(namespace) or "", tier, exact] += gpu_seconds
            self._sums, self._until = found, now + SUM_SECONDS
        return self._sums

    def samples(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield the same as samples of a metric."""
        for (tenant, tier, exact), gpu_seconds in self.gpu_seconds().items():
            yield (tenant, tier, str(exact).lower()), gpu_seconds

    def pods(self) -> Iterator[PodAtRisk]:
        """Yield the pods with work to lose. GPUs of a shared claim count for its first pod."""
        claims: set[tuple[str, str]] = set()
        for pod in self.working():
            saved = self.last_save(pod.uid)
            ((_, _, gpus),) = counted_once([("", pod.holding)], claims)
            since = pod.work.since if saved is None else max(saved.at, pod.work.since)
            yield PodAtRisk(*pod, float(gpus), since, saved is not None)


log = logging.getLogger(__name__)

UNTIL_HEARD = 60.0
"""Seconds after the start until all trainings have reported. Before that, work at risk seems larger than it is."""
ROUND = 5.0
"""Seconds between two rounds."""
MOST_WRITES = 50
"""Most writes in a round: first annotations to remove, then the largest changes. Others wait for the next round."""


class _Metadata(Metadata, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class _Object(View, frozen=True):
    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class AnnotatedObject:
    """An object that may have the annotation; `value` is "" if it has none. `ours`: nobody else has written it.

    `owners` are the uids of its owners.
    """

    namespace: str
    name: str
    owners: tuple[str, ...]
    value: str
    ours: bool


class Wanted(NamedTuple):
    """The value that an annotation should have, "" for none, and by how much its current value is off."""

    value: str
    off: float


GONE = Wanted("", inf)
Found = Mapping[str, AnnotatedObject]
"""The objects that may have an annotation, by uid."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that reads an annotation of its own, on objects of `plural` that one of `selections` finds.

    `wanted` returns the values of the annotation by the uids of objects, at a time in seconds since 1970.
    """

    name: Literal["Kueue", "Volcano"]
    annotation: str
    group: str
    plural: str
    selections: Callable[[TierPolicy], list[dict[str, str]]]
    wanted: Callable[[Iterable[PodAtRisk], Found, TierPolicy, float], Mapping[str, Wanted]]


def boosts(pods: Iterable[PodAtRisk], found: Found, policy: TierPolicy, now: float) -> dict[str, Wanted]:
    """Return boosts for the Workloads of these pods. An evicted Workload gets none, so it evicts no others."""
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
    """Return the save times of pods that Volcano places. A pod without a save would lose all work since it began."""
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
"""The boost of Kueue is KEP-7990, behind its gate PriorityBoost. Volcano's plugin `checkpoint` is volcano#5999."""


@dataclass(eq=False)
class EvictionCosts:
    """Writes the annotations for one scheduler. Run `run` as a task.

    `at_risk` returns the pods with work to lose. `leading`: whether this replica writes, and knows all of them. `count`
    gets the outcome of each write.
    """

    client: Client
    scheduler: Scheduler
    policy: Callable[[], TierPolicy]
    leading: Callable[[], bool]
    at_risk: Callable[[], Iterable[PodAtRisk]]
    count: Callable[[str], None]
    _version: str = "v1"
    _sources: list[Source] = field(default_factory=list)
    _found: list[Store[AnnotatedObject]] = field(default_factory=list)
    _reflectors: Reflectors = field(default_factory=Reflectors)
    _problem: str = ""

    def __post_init__(self) -> None:
        self._discovery = Discovery(self.client)

    async def run(self) -> None:
        if self.policy().reports is not None:
            await asyncio.sleep(UNTIL_HEARD)
        while True:
            problem = self._problem
            try:
                problem = await self._round()
            except (ApiError, Unreadable) as error:
                problem = str(error)
            except Exception:
                log.exception("eviction costs not told", {"scheduler": self.scheduler.name})
            if problem and problem != self._problem:  # logged once, because a missing right to write stays missing
                log.warning("eviction costs not told", {"scheduler": self.scheduler.name, "error": problem})
            self._problem = problem
            await asyncio.sleep(ROUND)

    async def _round(self) -> str:
        """Write the annotations of a round. Return the first problem with a single object; "" without one."""
        policy = self.policy()
        scheduler, sources = self.scheduler, list[Source]()
        telling = policy.eviction_cost.get(scheduler.name, "Off") if self.leading() else "Off"
        if telling != "Off":
            if scheduler.group:
                self._version = await self._discovery.api_version(scheduler.group, scheduler.plural)
            place = path(self._version, scheduler.plural)
            sources = [Source(place, params, "uid", metadata_only=True) for params in scheduler.selections(policy)]
        if sources != self._sources:
            await self._reflectors.stop()
            self._sources, self._found = sources, [Store(lambda: None) for _ in sources]
            pairs = zip(sources, self._found, strict=True)
            followed = (storing(self.client, source, self._annotated, store) for source, store in pairs)
            self._reflectors = Reflectors(*followed)
            self._reflectors.start()
        if not self._sources or not self._reflectors.synced:
            return ""
        found = {uid: each for store in self._found for uid, each in store.objects.items()}
        at_risk = (pod for pod in self.at_risk() if pod.holding.charge.tier and pod.holding.ends_in is None)
        wanted = scheduler.wanted(at_risk, found, policy, time.time()) if telling == "Write" else {}
        problems = [await self._write(uid, found[uid], value) for uid, value in writes_of_a_round(found, wanted)]
        return next(filter(None, problems), "")

    def _annotated(self, raw: msgspec.Raw) -> AnnotatedObject:
        metadata, annotation = read(raw, _Object).metadata, self.scheduler.annotation
        value = metadata.annotations.get(annotation, "")
        writers = {
            each.manager
            for each in metadata.managed_fields
            if f"f:{annotation}" in mapped(at(each.fields_v1, "f:metadata.f:annotations"))
        }
        owners, ours = tuple(each.uid for each in metadata.owner_references), not value or writers == {FIELD_MANAGER}
        return AnnotatedObject(metadata.namespace, metadata.name, owners, value, ours)

    async def _write(self, uid: str, there: AnnotatedObject, value: str) -> str:
        """Write an annotation. Return the problem, "" without one. An object that is gone or new needs no write."""
        body = {"metadata": {"uid": uid, "annotations": {self.scheduler.annotation: value or None}}}
        try:
            await self.client.patch(path(self._version, self.scheduler.plural, there.namespace, there.name), body)
        except (NotFound, Conflict):
            return ""
        except Failed as error:
            self.count("failed")
            return str(error)
        self.count("written")
        return ""


def writes_of_a_round(found: Found, wanted: Mapping[str, Wanted]) -> list[tuple[str, str]]:
    """Return the values that are written in a round, by the uids of their objects."""
    new = ((uid, each, wanted.get(uid, GONE)) for uid, each in found.items() if each.ours)
    off = ((wish.off, uid, wish.value) for uid, each, wish in new if wish.value != each.value)
    return [(uid, value) for _, uid, value in nlargest(MOST_WRITES, off)]
