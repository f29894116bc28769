"""Lists pods and reduces each at once to a summary for reports, because a cluster may have tens of thousands."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.cluster.listed import GpuNode
from webhook.cluster.pod_informer import RUNNING, SeenPod, has_work_to_lose, type_shown
from webhook.kube.client import Client, listed_objects, path
from webhook.objects.pods import Container, OwnerReference, PodClaim
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import View, read
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.request import TIER_LABEL, gang_beyond
from webhook.policy.checkpoint.hook_plan import CHECKPOINT, grace_of
from webhook.policy.checkpoint.listen import has_report_volume
from webhook.policy.quota.charges import named_flavor, tier_counted
from webhook.policy.quota.demand import asked_of, gpu_holders, let_in_with, peak_request, used_gpus
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Devices

NOTHING = Decimal(0)

Claims = Callable[[str, PodClaim], Awaitable[tuple[Devices, ...]]]
"""Returns the devices of a pod's claim in a namespace; raises Unreadable."""


class PodSummary(msgspec.Struct, frozen=True):
    """A pod that has not ended. `cpu` in cores and `memory` in bytes are what the scheduler reserves for it.

    `tier` is the tier in whose rows it counts, by its class; `tier_label` is its label, and `flavor` the flavor that it
    is bound to. `gang` is the uid of its gang if that isn't its controller, and `group` its PodGroup. `queued`: it
    waits for quota behind our gate. `ends`: it is being deleted, and its grace period ends then.

    `claimed` are the GPUs of its claims that it was admitted with, for callers that read no claims.

    The other fields are set for pods with GPUs only. `asks` are its GPUs by resource, `workload_type` the type of the
    pod by itself. `hook`: each container with GPUs has a preStop. `hook_asked` is the hook of its annotation.
    `unscheduled` is its scheduler's reason why it has no node. `work_to_lose`: since when, in seconds since 1970.
    `reports`: it can report its saves.
    """

    namespace: str
    name: str
    uid: str = ""
    tier_label: str = ""
    assigned_by: str = ""
    class_name: str = ""
    priority: int = 0
    preempts: bool = True
    tier: str | None = None
    flavor: str | None = None
    gpus: Decimal = NOTHING
    claimed: Decimal = NOTHING
    cpu: Decimal = NOTHING
    memory: Decimal = NOTHING
    node: str = ""
    created: str = ""
    owner: OwnerReference | None = None
    grace: int = 30
    gang: str = ""
    group: str = ""
    gated: bool = False
    queued: bool = False
    ends: str = ""
    asks: Mapping[str, Decimal] = msgspec.field(default_factory=dict)
    workload_type: WorkloadType | None = None
    hook: bool = False
    hook_asked: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    scheduler: str = ""
    unscheduled: str = ""
    work_to_lose: float | None = None
    reports: bool = False

    @property
    def made_by(self) -> str:
        """The name of its controller for users, or its own name."""
        owner = f"{self.owner.kind}/{self.owner.name}" if self.owner else f"Pod/{self.name}"
        return f"{owner} in {self.namespace}"

    @property
    def job(self) -> str:
        """The Job that controls it; "" if none does."""
        owner = self.owner
        return owner.name if owner and (owner.group, owner.kind) == ("batch", "Job") else ""


async def no_claims(namespace: str, claim: PodClaim) -> tuple[Devices, ...]:  # noqa: ARG001
    """Return none, for callers that count GPUs by resource name only."""
    return ()


async def list_pods(client: Client, policy: TierPolicy, claims: Claims) -> AsyncIterator[PodSummary]:
    """Yield the pods that have not ended, page by page. Raises ApiError."""
    async for _, summary in pods_with_json(client, policy, claims):
        yield summary


async def pods_with_json(
    client: Client, policy: TierPolicy, claims: Claims, namespace: str | None = None
) -> AsyncIterator[tuple[msgspec.Raw, PodSummary]]:
    """Yield the same pods, each with its whole object. An object that can't be read is left out."""
    async for raw in listed_objects(client.list_pages(path("v1", "pods", namespace), RUNNING.params)):
        try:
            yield raw, await pod_summary(read(raw, SeenPod), policy, claims)
        except Refused:
            continue


async def pod_summary(found: SeenPod, policy: TierPolicy, claims: Claims) -> PodSummary:
    """Reduce a pod, with the devices of its claims up to the first that can't be read. Raises Refused."""
    devices = list[Devices]()
    with suppress(Unreadable):
        for claim in found.spec.resource_claims:
            devices += await claims(found.metadata.namespace, claim)
    return summary_of(found, tuple(devices), policy)


def summary_of(found: SeenPod, devices: tuple[Devices, ...], policy: TierPolicy) -> PodSummary:
    """Reduce a pod. `devices` are those of its claims."""
    spec, metadata = found.spec, found.metadata
    summary = PodSummary(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        tier_label=metadata.labels.get(TIER_LABEL, ""),
        assigned_by=metadata.annotations.get(ASSIGNED_BY, ""),
        class_name=spec.priority_class_name,
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never",
        tier=tier_counted(spec.priority_class_name, spec.priority, policy.tiers),
        flavor=named_flavor(found, policy.flavors),
        gpus=used_gpus(found, devices, policy),
        claimed=sum(let_in_with(metadata).values(), NOTHING),
        cpu=_set_aside(found, "cpu"),
        memory=_set_aside(found, "memory"),
        node=spec.node_name,
        created=metadata.creation_timestamp or "",
        owner=metadata.controller,
        grace=grace_of(found),
        gang=gang_beyond(metadata),
        group=spec.scheduling_group.pod_group_name if spec.scheduling_group else "",
        gated=bool(spec.scheduling_gates),
        queued=found.waits_for_quota,
        ends=metadata.deletion_timestamp or "",
    )
    if not (summary.gpus or summary.claimed):
        return summary
    holders = [spec.containers[index] for index in gpu_holders(found, devices, policy)]
    return replace(
        summary,
        asks={name: gpus for name, gpus in asked_of(found, policy).items() if gpus},
        workload_type=type_shown(found, policy),
        hook=bool(holders) and all(each.lifecycle and each.lifecycle.pre_stop for each in holders),
        hook_asked=metadata.annotations.get(CHECKPOINT, ""),
        labels=metadata.labels,
        scheduler=spec.scheduler_name,
        work_to_lose=found.began if has_work_to_lose(found, policy) else None,
        unscheduled="" if spec.node_name else found.unscheduled,
        reports=has_report_volume(spec),
    )


def _set_aside(found: SeenPod, resource: str) -> Decimal:
    def count(container: Container, where: str) -> Decimal:
        value = container.resources.requests.get(resource)
        return NOTHING if value is None else quantity(value, where)

    return peak_request(found, count) + quantity(found.spec.overhead.get(resource, 0), f"spec.overhead.{resource}")


class _JobSpec(View, frozen=True):
    pod_replacement_policy: str = ""


class _Job(View, frozen=True):
    spec: _JobSpec = _JobSpec()


async def lost_pods(client: Client, pods: Iterable[PodSummary], nodes: Collection[GpuNode]) -> tuple[PodSummary, ...]:
    """Return the pods on lost nodes that their Jobs do not replace. Raises ApiError.

    A pod is deleted some minutes after its node stops reporting, and stays until the kubelet confirms the end. With
    `podReplacementPolicy: Failed` the Job waits for that. Jobs are read only if a pod ends on a lost node, which is
    rare.
    """
    lost = {each.name for each in nodes if each.lost}
    found = [pod for pod in pods if pod.ends and pod.job and pod.node in lost]
    waiting: set[tuple[str, str]] = set()
    for namespace, job in {(pod.namespace, pod.job) for pod in found}:
        named = client.list_pages(path("batch/v1", "jobs", namespace), {"fieldSelector": f"metadata.name={job}"})
        if "Failed" in [read(raw, _Job).spec.pod_replacement_policy async for raw in listed_objects(named)]:
            waiting.add((namespace, job))
    return tuple(pod for pod in found if (pod.namespace, pod.job) in waiting)
