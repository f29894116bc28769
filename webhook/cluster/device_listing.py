"""Reads how the nodes of a cluster serve GPUs: by device plugins, and by the devices of ResourceSlices."""

from collections import defaultdict
from typing import TypeVar

from webhook.cluster.gpu_nodes import plugged_resources
from webhook.kube.client import Client
from webhook.kube.discovery import served_version
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Named
from webhook.objects.view import View, read
from webhook.policy.devices.devices import DeviceClaim, DeviceTaintRule, ResourceSlice
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply, Version
from webhook.policy.workloads.claims import GROUP


async def plugins_by_node(client: Client) -> dict[str, frozenset[str]]:
    """Return the extended resources that the device plugins of each node have. Raises ApiError."""
    raws = listed_objects(client.list_pages(path("v1", "nodes")))
    return {read(raw, Named).metadata.name: frozenset(plugged_resources(raw)) async for raw in raws}


async def resource_slices(client: Client) -> tuple[ResourceSlice, ...]:
    """Return all ResourceSlices. Raises ApiError."""
    return await _listed(client, "resourceslices", ResourceSlice)


async def device_claims(client: Client) -> tuple[DeviceClaim, ...]:
    """Return all ResourceClaims with the devices that they hold. Raises ApiError."""
    return await _listed(client, "resourceclaims", DeviceClaim)


async def device_taint_rules(client: Client) -> tuple[DeviceTaintRule, ...]:
    """Return all DeviceTaintRules. Raises ApiError."""
    return await _listed(client, "devicetaintrules", DeviceTaintRule)


V = TypeVar("V", bound=View)


async def _listed(client: Client, plural: str, shape: type[V]) -> tuple[V, ...]:
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
