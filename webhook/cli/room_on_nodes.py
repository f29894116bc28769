"""Reads the nodes with GPUs and the pods on them, for a pod that waits."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

import msgspec

from webhook.cli.asked_cluster import AskedCluster
from webhook.cluster.pod_informer import RUNNING
from webhook.kube.errors import Forbidden
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.node_fit import Taint, obstacle
from webhook.objects.pods import Named, Pod
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.objects.view import View, read
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tiers import NONPREEMPTING
from webhook.readmodel.gpu_room import GpuHolder, NodeForPod, Room, Waiting
from webhook.readmodel.pending import room_for


class _NodeSpec(View, frozen=True):
    taints: tuple[Taint, ...] = ()


class _NodeStatus(View, frozen=True):
    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class _Node(Named, frozen=True):
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


async def room(asked: AskedCluster, pod: Pod, nominated: str, now: datetime) -> Room | None:
    """The room for a pod; None where it asks for no GPU by name, or the person may not list nodes."""
    waiting = _waiting(asked, pod, nominated)
    nodes = await _nodes(asked, pod) if waiting.asks else None
    return room_for(waiting, nodes, await _holders(asked, pod.metadata.namespace, now)) if nodes is not None else None


def _waiting(asked: AskedCluster, pod: Pod, nominated: str) -> Waiting:
    spec, tier = pod.spec, asked.policy.tiers.of_class(pod.spec.priority_class_name)
    asks = {name: gpus for name, gpus in asked_of(pod, asked.policy).items() if gpus}
    calm = "adoption" if spec.priority_class_name.endswith(NONPREEMPTING) else "never"
    return Waiting(
        asks,
        spec.priority or 0,
        tier.name if tier else "",
        evicts="lower" if spec.preemption_policy != "Never" else "adoption" if calm == "adoption" else "never",
        nominated=nominated,
    )


async def _nodes(asked: AskedCluster, pod: Pod) -> list[NodeForPod] | None:
    try:
        nodes = [read(raw, _Node) async for raw in listed_objects(asked.client.list_pages(path("v1", "nodes")))]
    except Forbidden:
        asked.unread.append("You may not list nodes: where it could run, and who holds the GPUs there, is left out.")
        return None
    return [
        NodeForPod(each.metadata.name, _gpus(each, asked), obstacle(pod.spec, each.metadata.labels, each.spec.taints))
        for each in nodes
    ]


def _gpus(node: _Node, asked: AskedCluster) -> dict[str, Decimal]:
    there = node.status.allocatable
    return {name: quantity(there[name], name) for name in asked.policy.weights.keys() & there.keys()}


async def _holders(asked: AskedCluster, own: str, now: datetime) -> list[GpuHolder]:
    """The pods with GPUs on nodes; those of the pod's own namespace where the person may not list all."""
    tenant_of = await _tenants(asked)
    try:
        return await _holders_in(asked, None, tenant_of, now)
    except Forbidden:
        asked.unread.append(
            f"You may not list pods in all namespaces: only those of {own} are counted, so what looks free may not be."
        )
    try:
        return await _holders_in(asked, own, tenant_of, now)
    except Forbidden:
        return []


async def _holders_in(
    asked: AskedCluster, namespace: str | None, tenant_of: Callable[[str], str], now: datetime
) -> list[GpuHolder]:
    pages = asked.client.list_pages(path("v1", "pods", namespace), RUNNING.params)
    found = [_holder(raw, asked, tenant_of, now) async for raw in listed_objects(pages)]
    return [each for each in found if each is not None]


def _holder(raw: msgspec.Raw, asked: AskedCluster, tenant_of: Callable[[str], str], now: datetime) -> GpuHolder | None:
    try:
        pod = read(raw, Pod)
        gpus = {name: held for name, held in asked_of(pod, asked.policy).items() if held}
    except Refused:  # stored by an API server that knows better than we do
        return None
    if not pod.spec.node_name or not gpus:
        return None
    tier, metadata = asked.policy.tiers.of_class(pod.spec.priority_class_name), pod.metadata
    return GpuHolder(
        f"{metadata.namespace}/{metadata.name}",
        pod.spec.node_name,
        gpus,
        pod.spec.priority or 0,
        tier.name if tier else pod.spec.priority_class_name,
        tenant_of(metadata.namespace),
        _ends_in(metadata.deletion_timestamp, now),
    )


def _ends_in(deletion: str | None, now: datetime) -> float | None:
    """The API server writes as a pod's deletionTimestamp when its grace period ends."""
    return max((datetime.fromisoformat(deletion) - now).total_seconds(), 0.0) if deletion else None


async def _tenants(asked: AskedCluster) -> Callable[[str], str]:
    """Tells the tenant of a namespace; where labels can't be read, the namespace stands for it."""
    known = dict[str, Namespace]()
    try:
        async for raw in listed_objects(asked.client.list_pages(path("v1", "namespaces"), metadata_only=True)):
            metadata = read(raw, Named).metadata
            known[metadata.name] = Namespace(metadata.name, metadata.labels)
    except Forbidden:
        asked.unread.append("You may not list namespaces: the holders' namespaces stand in the place of their tenants.")

    def tenant_of(namespace: str) -> str:
        found = known.get(namespace)
        tenant = asked.cluster.tenant(found) if found else None
        return tenant.name if tenant else "" if found else namespace

    return tenant_of
