"""Lists objects of a cluster once: those that gpu-tiers decides by, its nodes, and how they serve GPUs.

Also PodDisruptionBudgets.
"""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import TypeVar

import msgspec

from webhook.cluster.views import priority_class
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version
from webhook.kube.errors import NotFound
from webhook.objects.node_fit import Taint
from webhook.objects.pods import Named
from webhook.objects.quantities import quantity
from webhook.objects.view import Tree, View, read
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice
from webhook.policy.preemption.cluster_state import DisruptionBudget, disruption_budget
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.quota.charges import flavor_on
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply, Version
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.claims import GROUP

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint with which an admin declares that a node is off and its pods have ended (KEP-2268)."""


class GpuNode(msgspec.Struct, frozen=True):
    """A node with GPUs: `gpus`, `cpu` (cores) and `memory` (bytes) are allocatable. `open`: ready, and not cordoned.

    `lost`: it is not ready, and nobody has declared it out of service, so its pods stay. `offers` are its GPUs by the
    name of their resource, unweighted.
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
    """Return the extended resources that device plugins report on a node, with their amounts."""
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
    ready = any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)
    return GpuNode(
        name=found.metadata.name,
        gpus=sum((weights[name] * count for name, count in weights.each_once(offers).items()), Decimal(0)),
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
    """Return the extended resources that the device plugins of each node have. Raises ApiError."""
    raws = listed_objects(client.list_pages(path("v1", "nodes")))
    return {read(raw, Named).metadata.name: frozenset(plugged_resources(raw)) async for raw in raws}


async def resource_slices(client: Client) -> tuple[ResourceSlice, ...]:
    """Return all ResourceSlices. Raises ApiError."""
    return await _of_dra(client, "resourceslices", ResourceSlice)


async def device_claims(client: Client) -> tuple[DeviceClaim, ...]:
    """Return all ResourceClaims with their allocated devices. Raises ApiError."""
    return await _of_dra(client, "resourceclaims", DeviceClaim)


async def device_taint_rules(client: Client) -> tuple[DeviceTaintRule, ...]:
    """Return all DeviceTaintRules. Raises ApiError."""
    return await _of_dra(client, "devicetaintrules", DeviceTaintRule)


V = TypeVar("V", bound=View)


async def _of_dra(client: Client, plural: str, shape: type[V]) -> tuple[V, ...]:
    """Return the objects of a kind; none if the cluster has no such API."""
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
