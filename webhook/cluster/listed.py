"""Lists objects of a cluster once: those that gpu-tiers decides by, and how its nodes serve GPUs.

Also PodDisruptionBudgets. Source of those:
https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from webhook.cluster.gpu_nodes import plugged_resources
from webhook.cluster.views import priority_class
from webhook.kube.client import Client
from webhook.kube.discovery import served_version
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Metadata, Named
from webhook.objects.view import Tree, View, read
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice
from webhook.policy.quota.tenant_quotas import (
    API_VERSION,
    PLURAL,
    LabelSelector,
    TenantQuota,
    read_tenant_quota,
    requirements_of,
)
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply, Version
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.claims import GROUP


async def tenant_quotas(client: Client) -> list[TenantQuota]:
    """List TenantQuotas by name; none where the API server does not know them. Raises ApiError."""
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
    """Return all ResourceClaims with the devices that they hold. Raises ApiError."""
    return await _of_dra(client, "resourceclaims", DeviceClaim)


async def device_taint_rules(client: Client) -> tuple[DeviceTaintRule, ...]:
    """Return all DeviceTaintRules. Raises ApiError."""
    return await _of_dra(client, "devicetaintrules", DeviceTaintRule)


V = TypeVar("V", bound=View)


async def _of_dra(client: Client, plural: str, shape: type[V]) -> tuple[V, ...]:
    """Return the objects of a kind; none where the cluster has no such API."""
    version = await served_version(client, GROUP, plural)
    if version is None:
        return ()
    return tuple([read(raw, shape) async for raw in listed_objects(client.list_pages(path(version, plural)))])


def supply_of(plugins: dict[str, frozenset[str]], slices: tuple[ResourceSlice, ...], version: Version) -> GpuSupply:
    """Return how each node serves GPUs. Devices that several nodes reach are nobody's here."""
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    for each in slices:
        if each.spec.node_name and each.spec.devices:
            drivers[each.spec.node_name].add(each.spec.driver)
    names = sorted(plugins.keys() | drivers.keys())
    nodes = (NodeSupply(name, plugins.get(name, frozenset()), frozenset(drivers.get(name, ()))) for name in names)
    return GpuSupply(tuple(nodes), version)


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget. `lines` are its selector's; None selects no pod. `allowed` is how many may go now."""

    namespace: str
    name: str
    lines: tuple[Requirement, ...] | None
    allowed: int

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it selects a pod. An empty selector selects all of the namespace."""
        return (
            namespace == self.namespace and self.lines is not None and all(each.matches(labels) for each in self.lines)
        )


class _BudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0


class _Budget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


async def disruption_budgets(client: Client) -> tuple[DisruptionBudget, ...]:
    """List PodDisruptionBudgets. Raises ApiError."""
    pages = client.list_pages(path("policy/v1", "poddisruptionbudgets"))
    budgets: list[DisruptionBudget] = []
    async for raw in listed_objects(pages):
        found = read(raw, _Budget)
        about, selector = found.metadata, found.spec.selector
        lines = None if selector is None else tuple(requirements_of(selector))
        budgets.append(DisruptionBudget(about.namespace, about.name, lines, found.status.disruptions_allowed))
    return tuple(budgets)
