"""Lists the nodes that have GPUs, with what pods may take of them."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.node_fit import Taint
from webhook.objects.pods import Metadata, Quantity
from webhook.objects.quantities import quantity
from webhook.objects.view import View, read
from webhook.policy.quota.charges import flavor_on
from webhook.policy.values.tier_policy import TierPolicy

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an admin says that a node is off and its pods have ended (KEP-2268)."""


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


class _Condition(View, frozen=True):
    type: str = ""
    status: str = ""


class _Status(View, frozen=True):
    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[_Condition, ...] = ()


class _Spec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _Node(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def plugged_resources(raw: msgspec.Raw | bytes) -> dict[str, str]:
    """Return the extended resources of which a node has some, with their amounts: a device plugin reports them."""
    found = read(raw, _Node).status.allocatable
    return {name: str(amount) for name, amount in found.items() if "/" in name and str(amount) != "0"}


async def gpu_nodes(client: Client, policy: TierPolicy) -> tuple[GpuNode, ...]:
    """List the nodes whose device plugins offer GPUs that the policy counts. Raises ApiError."""
    return tuple([each for each in await all_nodes(client, policy) if each.gpus])


async def all_nodes(client: Client, policy: TierPolicy) -> tuple[GpuNode, ...]:
    """Return all nodes, also those without GPUs of a device plugin. Raises ApiError."""
    return tuple([gpu_node(raw, policy) async for raw in listed_objects(client.list_pages(path("v1", "nodes")))])


def gpu_node(raw: msgspec.Raw | bytes, policy: TierPolicy) -> GpuNode:
    found = read(raw, _Node)
    offered = {name: quantity(value, name) for name, value in found.status.allocatable.items()}
    weights = policy.weights
    # A device plugin that has gone leaves a 0 behind: the scheduler then takes such a resource from DRA.
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
    """Say what ends the wait for the end of pods on a lost node (KEP-2268)."""
    taint = f"kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    return f"If the node is off and stays so: {taint}, or delete the Node"
