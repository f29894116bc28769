"""Follows the pods that count, and reduces each at once to a value of the caller.

A pod counts until it has succeeded or failed, is gone, or has been in deletion for twice its grace period. The in-tree
quota does the same (QuotaV1Pod in pkg/quota/v1/evaluator/core/pods.go): a pod stuck in deletion uses nothing.
The policy may count a pod only until it is deleted: charge_of in webhook/policy/quota/charges.py. `end_of` follows one
pod until its containers have ended, for an hour at most.

Owners are not read to find out whether a pod has work to lose, because mutate has noted its type on the pod.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from webhook.kube.client import Client, listed_objects, metadata_of, path
from webhook.kube.errors import NotFound
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Pod, PodSpec, Quantity
from webhook.objects.refusal import Refused
from webhook.objects.view import View, read
from webhook.policy.assignment.assigned_by import read_assigned_by
from webhook.policy.checkpoint.hook_kinds import tells
from webhook.policy.checkpoint.work_lost import ContainerEnd
from webhook.policy.classification.classify import classify
from webhook.policy.preemption.pod_state import PREEMPTED
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

ENDED = ("Succeeded", "Failed")
_UNENDED = {"fieldSelector": ",".join(f"status.phase!={phase}" for phase in ENDED)}
RUNNING = Source(path("v1", "pods"), _UNENDED, key="uid")
"""The pods that have not ended. The watch shows a pod that succeeds or fails as a deletion."""
LONGEST_MESSAGE = 500
"""Characters of the scheduler's message, because a user who may write a pod's status may write megabytes."""
LATE = 2.0
"""The multiple of a deletion's grace period within which the kubelet must end the pod."""


class _Period(View, frozen=True):
    started_at: datetime | None = None


class _Terminated(_Period, frozen=True):
    finished_at: datetime | None = None
    message: str = ""
    exit_code: int = 0


class _ContainerState(View, frozen=True):
    running: _Period | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(View, frozen=True):
    """The state of a container."""

    name: str = ""
    state: _ContainerState = _ContainerState()


class _MadeClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class _Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Metadata(Metadata, frozen=True):
    deletion_grace_period_seconds: int | None = None
    resource_version: str = ""


class _Spec(PodSpec, frozen=True):
    overhead: dict[str, Quantity] = msgspec.field(default_factory=dict)


class _Status(View, frozen=True):
    phase: str = "Pending"
    conditions: tuple[_Condition, ...] = ()
    resource_claim_statuses: tuple[_MadeClaim, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class SeenPod(Pod, frozen=True):
    """An existing pod, also with fields that decisions about new pods don't read."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def ends_in(self) -> float | None:
        """The seconds for which the pod counts after its deletion is seen; None if it is not being deleted.

        A kubelet has the grace period to end the pod, and may be late by as much again. The caller measures with its
        own clock and ignores the time in deletionTimestamp, because clocks may differ by minutes.
        """
        grace = self.metadata.deletion_grace_period_seconds
        return None if self.metadata.deletion_timestamp is None or grace is None else LATE * grace

    @property
    def made(self) -> Mapping[str, str]:
        """The names of the ResourceClaims that were created for the pod from templates, by the pod's entry."""
        statuses = self.status.resource_claim_statuses
        return {each.name: each.resource_claim_name for each in statuses if each.resource_claim_name}

    @property
    def preempted(self) -> bool:
        """True if the scheduler or gpu-tiers has evicted the pod for another pod, and it is being deleted.

        Both write the condition DisruptionTarget, then delete the pod (KEP-3329). The Eviction API, which a drain uses,
        writes another reason.
        """
        targeted = (each for each in self.status.conditions if (each.type, each.status) == ("DisruptionTarget", "True"))
        return self.metadata.deletion_timestamp is not None and any(each.reason in _BY_PRIORITY for each in targeted)

    @property
    def unscheduled(self) -> str:
        """The message of the condition PodScheduled=False, which is cut; "" without this condition.

        The scheduler says there why the pod has no node, or the API server that gates block the pod.
        """
        looked = (each for each in self.status.conditions if (each.type, each.status) == ("PodScheduled", "False"))
        return next((each.message for each in looked), "")[:LONGEST_MESSAGE]

    @property
    def began(self) -> float | None:
        """The earliest start of its containers' current runs, in seconds since 1970; None before."""
        periods = [each.state.running or each.state.terminated for each in self.status.container_statuses]
        times = [each.started_at for each in periods if each and each.started_at]
        return min(times).timestamp() if times else None

    @property
    def ended(self) -> float | None:
        """When the last of its containers ended, in seconds since 1970; None before."""
        ends = [each.state.terminated for each in self.status.container_statuses]
        times = [each.finished_at for each in ends if each and each.finished_at]
        return max(times).timestamp() if times and all(ends) else None

    @property
    def bound(self) -> str:
        """When it got its node, in RFC 3339; "" before. The API server writes it (assignPod in registry/core/pod)."""
        bound = (each for each in self.status.conditions if (each.type, each.status) == ("PodScheduled", "True"))
        return next((each.last_transition_time or "" for each in bound), "")

    def ends_within(self, grace: float) -> bool:
        """Tell whether it is being deleted with a grace period of at most `grace` seconds."""
        return self.ends_in is not None and self.ends_in <= LATE * grace


_BY_PRIORITY = ("PreemptionByScheduler", PREEMPTED)


def seen_pod(raw: msgspec.Raw | bytes) -> SeenPod:
    """Read a pod from its JSON. Raises Refused."""
    return read(raw, SeenPod)


def has_work_to_lose(pod: Pod, policy: TierPolicy) -> bool:
    """Tell whether a pod has work to lose: a training pod, and any pod with a hook of ours that waits for a save.

    It is a training pod if its annotation `assigned-by` has that type. Without a type there, its own fields decide.
    """
    written = read_assigned_by(pod.metadata.annotations)
    if written and written.workload_type:
        trains = written.workload_type == WorkloadType.TRAINING
    else:
        trains = type_shown(pod, policy) is WorkloadType.TRAINING
    hooks = (each.lifecycle.pre_stop for each in pod.spec.containers if each.lifecycle and each.lifecycle.pre_stop)
    return trains or any(map(tells, hooks))


def type_shown(pod: Pod, policy: TierPolicy) -> WorkloadType | None:
    """Return a pod's type by its controller's kind, or else by the pod's own fields; None if unknown."""
    owner = pod.metadata.controller
    row = policy.kinds.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
    if row is not None and row.type is not None:
        return row.type
    evidence = classify(pod, (), policy.kinds)
    return evidence.type if evidence else None


class PodInformer(Reflectors, Generic[T]):
    """Follows all pods that have not ended.

    `project` reduces a pod to a value, None if it does not count; it may look up objects. `on_change` gets a pod's uid
    with its new value, None once the pod has ended, is gone or does not count. `on_relist` gets all values by uid, at
    the start, after `relist`, and whenever the watch could not go on.
    """

    def __init__(
        self,
        client: Client,
        project: Callable[[SeenPod], Awaitable[T | None]],
        on_change: Callable[[str, T | None], None],
        on_relist: Callable[[Mapping[str, T]], None],
    ) -> None:
        self._client = client
        self._project = project
        self._reflector = Reflector(client, RUNNING, self._projected, on_change, on_relist)
        super().__init__(self._reflector)

    def relist(self) -> None:
        """Read and project all pods again, because the policy has changed."""
        self._reflector.relist()

    async def find(self, namespace: str, name: str) -> tuple[str, T | None] | None:
        """Return the uid and value of the pod of that name by a quorum read; None if it has ended or does not exist."""
        try:
            tree = await self._client.get(path("v1", "pods", namespace, name))
        except NotFound:
            return None
        raw = msgspec.Raw(msgspec.json.encode(tree))
        if (tree.get("status") or {}).get("phase") in ENDED:
            return None
        return metadata_of(raw).uid, await self._projected(raw)

    async def list_in(self, namespace: str) -> dict[str, T]:
        """Return the values of the pods of one namespace by a quorum read, by uid.

        No list of all pods runs meanwhile, because it would be older than this list but passed on after it.
        """
        found: dict[str, T] = {}
        async with self._reflector.listing.of_a_part():
            async for raw in listed_objects(self._client.list_pages(path("v1", "pods", namespace), RUNNING.params)):
                value = await self._projected(raw)
                if value is not None:
                    found[metadata_of(raw).uid] = value
        return found

    async def _projected(self, raw: msgspec.Raw) -> T | None:
        try:
            return await self._project(seen_pod(raw))
        except Refused as refused:
            log.warning("pod not counted", {"reason": sentence(refused.refusal)})
            return None


LONGEST = 3600.0
"""Seconds to wait for the end of a pod. Grace periods are rarely longer."""


class _AnyPod(View, frozen=True):
    status: _Status = _Status()


class Ended(msgspec.Struct, frozen=True):
    """The ends of a pod's containers by name. `seen`: all of its containers were seen to have ended."""

    containers: Mapping[str, ContainerEnd]
    seen: bool


async def end_of(client: Client, namespace: str, name: str, uid: str) -> Ended:
    """Wait until the containers of a pod have ended, it is gone, or LONGEST is over. Return the ends that were seen."""
    last, reached = Ended({}, seen=False), asyncio.Event()

    async def project(raw: msgspec.Raw) -> Ended:
        statuses = read(raw, _AnyPod).status.container_statuses
        ends: dict[str, ContainerEnd] = {}
        for each in statuses:
            if end := each.state.terminated:
                finished_at = end.finished_at.timestamp() if end.finished_at else None
                ends[each.name] = ContainerEnd(end.message, end.exit_code, finished_at)
        return Ended(ends, seen=bool(statuses) and len(ends) == len(statuses))

    def changed(key: str, found: Ended | None) -> None:
        nonlocal last
        if key == uid:
            last = found or last
            if found is None or found.seen:
                reached.set()

    source = Source(path("v1", "pods", namespace), {"fieldSelector": f"metadata.name={name}"}, key="uid")
    reflector = Reflector(client, source, project, changed, lambda found: changed(uid, found.get(uid)))
    following = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(LONGEST):
            await reached.wait()
    except TimeoutError:
        pass
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return last
