"""Lists objects of a cluster once: those that gpu-tiers decides by, nodes with their GPUs, pods, disruption budgets.

Each pod is reduced at once to a summary for reports, because a cluster may have tens of thousands.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from webhook.cluster.pod_informer import RUNNING, SeenPod, has_work_to_lose, type_shown
from webhook.cluster.views import priority_class
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version
from webhook.kube.errors import NotFound
from webhook.objects.node_fit import Taint
from webhook.objects.pods import Container, Named, OwnerReference, PodClaim
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, at, read
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.request import TIER_LABEL, gang_beyond
from webhook.policy.checkpoint.hook_plan import CHECKPOINT, grace_of
from webhook.policy.checkpoint.listen import has_report_volume
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice
from webhook.policy.preemption.cluster_state import DisruptionBudget, disruption_budget
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.quota.charges import flavor_on, named_flavor, tier_counted
from webhook.policy.quota.demand import admitted_with, asked_of, gpu_holders, peak_request, used_gpus
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply, Version
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.claims import GROUP
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Devices

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint with which an admin declares that a node is off and its pods have ended (KEP-2268)."""


class GpuNode(msgspec.Struct, frozen=True):
    """A node. `gpus` (weighted), `cpu` (cores) and `memory` (bytes) are allocatable. `open`: ready, and not cordoned.

    `lost`: it is not ready, and nobody has declared it out of service, so its pods stay. `offers` are its GPUs of
    device plugins by the name of their resource, unweighted.
    """

    name: str
    gpus: Decimal
    cpu: Decimal
    memory: Decimal
    flavor: str | None = None
    open: bool = True
    lost: bool = False
    offers: Mapping[str, Decimal] = msgspec.field(default_factory=dict)
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


def plugged_resources(raw: msgspec.Raw | bytes) -> dict[str, str]:
    """Return the extended resources that device plugins report on a node, with their amounts, except 0."""
    found = read(raw, SchedulableNode).status.allocatable
    return {name: str(amount) for name, amount in found.items() if "/" in name and str(amount) != "0"}


async def gpu_nodes(client: Client, policy: TierPolicy) -> tuple[GpuNode, ...]:
    """List the nodes whose device plugins offer GPUs that the policy counts. Raises ApiError."""
    return tuple([each for each in await all_nodes(client, policy) if each.gpus])


async def all_nodes(client: Client, policy: TierPolicy) -> tuple[GpuNode, ...]:
    """Return all nodes, also those without GPUs of a device plugin. Raises ApiError."""
    return tuple([gpu_node(raw, policy) async for raw in listed_objects(client.list_pages(path("v1", "nodes")))])


def gpu_node(raw: msgspec.Raw | bytes, policy: TierPolicy) -> GpuNode:
    found = read(raw, SchedulableNode)
    offered = {name: quantity(value, name) for name, value in found.status.allocatable.items()}
    weights = policy.weights
    # A device plugin that is gone leaves a 0. The scheduler then takes such a resource from DRA.
    offers = {name: count for name, count in offered.items() if count and name in weights and weights.is_whole(name)}
    once = weights.without_cards(weights.of_container(offers))  # each GPU once
    ready = any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)
    return GpuNode(
        name=found.metadata.name,
        gpus=sum((weights[name] * count for name, count in once.items()), Decimal(0)),
        cpu=offered.get("cpu", Decimal(0)),
        memory=offered.get("memory", Decimal(0)),
        flavor=flavor_on(found.metadata.labels, policy.flavors),
        open=ready and not found.spec.unschedulable,
        lost=not ready and all(each.key != OUT_OF_SERVICE for each in found.spec.taints),
        offers=offers,
        labels=found.metadata.labels,
        taints=found.spec.taints,
    )


def way_out(node: str) -> str:
    """Return how to end the wait for pods on a lost node (KEP-2268)."""
    taint = f"kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    return f"Only if the machine is really off: {taint}, or delete the Node; remove the taint when the machine is back"


async def tenant_quotas(client: Client) -> list[TenantQuota]:
    """List TenantQuotas by name; none if the API server does not know them. Raises ApiError."""
    try:
        found = [read_tenant_quota(raw) async for raw in listed_objects(client.list_pages(path(API_VERSION, PLURAL)))]
    except NotFound:
        return []
    return sorted(found, key=lambda each: each.name)


CRD = f"{PLURAL}.{API_VERSION.partition('/')[0]}"


async def serves_tenant_quotas(client: Client) -> bool:
    """Tell whether the API server knows TenantQuotas: False after somebody deleted their CRD. Raises ApiError."""
    return await served_version(client, API_VERSION.partition("/")[0], PLURAL) is not None


async def priority_classes(client: Client) -> dict[str, PriorityClass]:
    """List PriorityClasses by name. Raises ApiError."""
    found = map(priority_class, await listed_trees(client, path("scheduling.k8s.io/v1", "priorityclasses")))
    return {each.name: each for each in found}


async def listed_namespaces(client: Client) -> tuple[Namespace, ...]:
    """List namespaces with their labels. Raises ApiError."""
    pages = client.list_pages(path("v1", "namespaces"), metadata_only=True)
    return tuple([namespace_of(read(raw, Named).metadata) async for raw in listed_objects(pages)])


async def listed_trees(client: Client, where: str, params: dict[str, str] | None = None) -> list[Tree]:
    return [msgspec.json.decode(raw) async for raw in listed_objects(client.list_pages(where, params))]


async def plugins_by_node(client: Client) -> dict[str, frozenset[str]]:
    """Return the extended resources of each node's device plugins, by the node's name. Raises ApiError."""
    raws = listed_objects(client.list_pages(path("v1", "nodes")))
    return {read(raw, Named).metadata.name: frozenset(plugged_resources(raw)) async for raw in raws}


V = TypeVar("V", ResourceSlice, DeviceClaim, DeviceTaintRule)

_OF_DRA = {ResourceSlice: "resourceslices", DeviceClaim: "resourceclaims", DeviceTaintRule: "devicetaintrules"}


async def dra_objects(client: Client, shape: type[V]) -> tuple[V, ...]:
    """Return all objects of a DRA kind; none if the cluster does not serve that kind. Raises ApiError."""
    plural = _OF_DRA[shape]
    version = await served_version(client, GROUP, plural)
    if version is None:
        return ()
    return tuple([read(raw, shape) async for raw in listed_objects(client.list_pages(path(version, plural)))])


def supply_of(plugins: dict[str, frozenset[str]], slices: tuple[ResourceSlice, ...], version: Version) -> GpuSupply:
    """Return how each node serves GPUs, without devices that several nodes can reach."""
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    for each in slices:
        if each.spec.node_name and each.spec.devices:
            drivers[each.spec.node_name].add(each.spec.driver)
    names = sorted(plugins.keys() | drivers.keys())
    nodes = (NodeSupply(name, plugins.get(name, frozenset()), frozenset(drivers.get(name, ()))) for name in names)
    return GpuSupply(tuple(nodes), version)


async def disruption_budgets(client: Client) -> tuple[DisruptionBudget, ...]:
    """List PodDisruptionBudgets. Raises ApiError."""
    pages = client.list_pages(path("policy/v1", "poddisruptionbudgets"))
    return tuple([disruption_budget(raw) async for raw in listed_objects(pages)])


NOTHING = Decimal(0)

Claims = Callable[[str, PodClaim], Awaitable[tuple[Devices, ...]]]
"""Returns the devices of a pod's claim in a namespace; raises Unreadable."""


class PodSummary(msgspec.Struct, frozen=True):
    """A pod that has not ended. `cpu` in cores and `memory` in bytes are what the scheduler reserves for it.

    `tier` is the tier in whose rows it counts, by its class; `tier_label` is its label, and `flavor` the flavor that it
    is bound to. `gang` is the uid of its gang if that isn't its controller, and `group` its PodGroup. `queued`: it
    waits for quota behind our gate. `ends` is the end of its grace period if it is being deleted, or "".

    `claimed` are the GPUs of its claims that it was admitted with, for callers that read no claims.

    `asks` and the fields after it are set for pods with GPUs only. `asks` are its GPUs by resource. `workload_type` is
    the type by its controller's kind, or else by its own fields. `hook`: each container with GPUs has a preStop.
    `hook_asked` is the hook of its annotation. `unscheduled` says why it has no node. `work_to_lose` is when the work
    that it would lose began, in seconds since 1970. `reports`: it can report its saves.
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
        """Its controller for users, or the pod itself without one, as `<kind>/<name> in <namespace>`."""
        owner = f"{self.owner.kind}/{self.owner.name}" if self.owner else f"Pod/{self.name}"
        return f"{owner} in {self.namespace}"

    @property
    def job(self) -> str:
        """The name of the Job that controls it; "" if no Job does."""
        owner = self.owner
        return owner.name if owner and (owner.group, owner.kind) == ("batch", "Job") else ""


async def no_claims(namespace: str, claim: PodClaim) -> tuple[Devices, ...]:  # noqa: ARG001
    """Return no devices, for callers that count GPUs by resource name only."""
    return ()


async def pods_with_json(
    client: Client, policy: TierPolicy, claims: Claims, namespace: str | None = None
) -> AsyncIterator[tuple[msgspec.Raw, PodSummary]]:
    """Yield the pods that have not ended, page by page, each with its JSON. Raises ApiError.

    A pod that can't be read is left out.
    """
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
        claimed=sum(admitted_with(metadata).values(), NOTHING),
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
        named = {"fieldSelector": f"metadata.name={job}"}
        jobs = await listed_trees(client, path("batch/v1", "jobs", namespace), named)
        if any(at(each, "spec.podReplacementPolicy") == "Failed" for each in jobs):
            waiting.add((namespace, job))
    return tuple(pod for pod in found if (pod.namespace, pod.job) in waiting)
