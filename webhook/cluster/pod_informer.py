"""Follows the pods that count; each is reduced at once to what the caller keeps of it.

A pod counts until it has succeeded or failed, is gone, or has overrun its deletion by its grace period once more. The
in-tree quota does the same (QuotaV1Pod in pkg/quota/v1/evaluator/core/pods.go): a pod stuck in deletion holds nothing.
The policy may let a pod count only until it is deleted: charge_of in webhook/policy/quota/charges.py.

Whether a pod has work to lose is told without its owners: mutate has read them and left its finding on the pod.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.kube.wire import listed_objects, metadata_of
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Pod, PodSpec
from webhook.objects.refusal import Refused
from webhook.objects.view import View, read
from webhook.policy.assignment.assigned_by import read_assigned_by
from webhook.policy.checkpoint.hook_kinds import tells
from webhook.policy.classification.classify import classify
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.sentences.sentence import sentence


def has_work_to_lose(pod: Pod, policy: TierPolicy) -> bool:
    """A training pod has, and any that bears a hook of ours which waits for a save.

    It is training where its annotation `assigned-by` says that its type gave it its tier, else by what it shows.
    """
    written = read_assigned_by(pod.metadata.annotations)
    if written and written.workload_type:
        trains = written.workload_type == WorkloadType.TRAINING
    else:
        trains = type_shown(pod, policy) is WorkloadType.TRAINING
    hooks = (each.lifecycle.pre_stop for each in pod.spec.containers if each.lifecycle and each.lifecycle.pre_stop)
    return trains or any(map(tells, hooks))


def type_shown(pod: Pod, policy: TierPolicy) -> WorkloadType | None:
    """By the kind of its controller, else by itself."""
    owner = pod.metadata.controller
    row = policy.kinds.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
    if row is not None and row.type is not None:
        return row.type
    evidence = classify(pod, (), policy.kinds)
    return evidence.type if evidence else None


class _Period(View, frozen=True):
    started_at: datetime | None = None


class _ContainerState(View, frozen=True):
    running: _Period | None = None
    terminated: _Period | None = None


class ContainerAge(View, frozen=True):
    """Since when a container runs, or ran until it ended; of its status nothing else is read."""

    state: _ContainerState = _ContainerState()

    @property
    def began(self) -> datetime | None:
        """None while it waits."""
        period = self.state.running or self.state.terminated
        return period.started_at if period else None


def began_at(containers: Sequence[ContainerAge]) -> float | None:
    """Seconds since 1970 from the first of its containers on, so that no work before is left out; None before that."""
    times = [each.began for each in containers if each.began]
    return min(times).timestamp() if times else None


log = logging.getLogger(__name__)

T = TypeVar("T")

ENDED = ("Succeeded", "Failed")
RUNNING = Source(
    path("v1", "pods"),
    params={"fieldSelector": ",".join(f"status.phase!={phase}" for phase in ENDED)},
    key="uid",
)
"""A pod that succeeds or fails leaves this selection, which the watch tells as a deletion."""
LONGEST_MESSAGE = 500
"""Characters of the scheduler's words: who may write a pod's status may write megabytes there."""
LATE = 2.0
"""By how much a kubelet may overrun the grace of a deletion."""


class SeenPod(msgspec.Struct, frozen=True):
    """A pod that exists. `ends_in`: it counts for so many seconds from when its deletion is seen; None: for ever.

    `made` are the ResourceClaims that were made for it of templates, by the claim's name within the pod. `preempted`:
    the scheduler has evicted it for another pod, and it ends now. `unscheduled`: why it finds no node, in its words.
    `began`: when the first of its containers did, in seconds since 1970; None before that.
    `bound`: when it got its node, as the API server wrote it; "" before. `version`: its resourceVersion.
    """

    pod: Pod
    ends_in: float | None
    made: Mapping[str, str] = msgspec.field(default_factory=dict)
    preempted: bool = False
    unscheduled: str = ""
    began: float | None = None
    bound: str = ""
    version: str = ""

    def ends_within(self, grace: float) -> bool:
        """Whether its kubelet has no more than so many seconds to end it."""
        return self.ends_in is not None and self.ends_in <= LATE * grace


class PodInformer(Reflectors, Generic[T]):
    """Follows all pods.

    `project` makes of a pod what is kept of it, None where it counts for nothing; it may look things up. `on_change`
    gets a pod's uid with its new value, None once it is gone. `on_relist` gets all pods that exist, by uid: at the
    start, and whenever the watch could not go on.
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
        """Read and project all pods again: the policy has changed."""
        self._reflector.relist()

    async def find(self, namespace: str, name: str) -> tuple[str, T | None] | None:
        """The uid of the pod of that name and what is kept of it, as the API server has it now; None without one."""
        try:
            tree = await self._client.get(path("v1", "pods", namespace, name))
        except NotFound:
            return None
        raw = msgspec.Raw(msgspec.json.encode(tree))
        if (tree.get("status") or {}).get("phase") in ENDED:
            return None
        return metadata_of(raw).uid, await self._projected(raw)

    async def list_in(self, namespace: str) -> dict[str, T]:
        """What is kept of the pods of one namespace, by uid, as the API server has them now.

        No list of all pods is under way meanwhile: handed on later, it would be the older one.
        """
        found: dict[str, T] = {}
        async with self._reflector.listing.of_a_part():
            async for raw in listed_objects(self._client.list_pages(path("v1", "pods", namespace), RUNNING.params)):
                kept = await self._projected(raw)
                if kept is not None:
                    found[metadata_of(raw).uid] = kept
        return found

    async def _projected(self, raw: msgspec.Raw) -> T | None:
        try:
            return await self._project(seen_pod(raw))
        except Refused as refused:
            log.warning("pod not counted", {"reason": sentence(refused.refusal)})
            return None


class _PodMetadata(Metadata, frozen=True):
    deletion_grace_period_seconds: int | None = None
    resource_version: str = ""


class _MadeClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodCondition(View, frozen=True):
    """A condition in a pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _PodStatus(View, frozen=True):
    conditions: tuple[PodCondition, ...] = ()
    resource_claim_statuses: tuple[_MadeClaim, ...] = ()
    container_statuses: tuple[ContainerAge, ...] = ()


class _Pod(View, frozen=True):
    metadata: _PodMetadata = _PodMetadata()
    spec: PodSpec = PodSpec()
    status: _PodStatus = _PodStatus()


def seen_pod(raw: msgspec.Raw | bytes) -> SeenPod:
    """A pod from its JSON. Raises Refused."""
    found = read(raw, _Pod)
    statuses = found.status.resource_claim_statuses
    made = {each.name: each.resource_claim_name for each in statuses if each.resource_claim_name}
    pod = Pod(metadata=found.metadata, spec=found.spec)
    metadata, conditions = found.metadata, found.status.conditions
    # A kubelet has the grace to end the pod, and may be late by as much again. By whose clock is the reader's choice:
    # two machines' clocks may be minutes apart, so deletionTimestamp is not compared with anything.
    is_ending, grace = metadata.deletion_timestamp is not None, metadata.deletion_grace_period_seconds
    # The scheduler writes this condition, then deletes the pod (KEP-3329). An eviction, a drain have other reasons.
    preempted = is_ending and _BY_SCHEDULER in ((each.type, each.status, each.reason) for each in conditions)
    # The API server writes it as it binds the pod (assignPod in pkg/registry/core/pod/storage).
    bound = (each for each in conditions if each.type == "PodScheduled" and each.status == "True")
    return SeenPod(
        pod,
        ends_in=LATE * grace if is_ending and grace is not None else None,
        made=made,
        preempted=preempted,
        unscheduled=why_unscheduled(conditions),
        began=began_at(found.status.container_statuses),
        bound=next((each.last_transition_time or "" for each in bound), ""),
        version=metadata.resource_version,
    )


def why_unscheduled(conditions: Iterable[PodCondition]) -> str:
    """Why a pod has no node, in its scheduler's words; "" where none has looked."""
    told = (each.message for each in conditions if each.type == "PodScheduled" and each.status == "False")
    return next(told, "")[:LONGEST_MESSAGE]


_BY_SCHEDULER = ("DisruptionTarget", "True", "PreemptionByScheduler")
