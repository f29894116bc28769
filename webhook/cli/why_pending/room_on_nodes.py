"""Reads the nodes with GPUs and the pods on them, for a pod that waits."""

from collections.abc import Callable
from datetime import datetime

from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.installed import listed_namespaces
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.cluster.pod_listing import PodSummary, list_pods, no_claims
from webhook.objects.node_fit import obstacle
from webhook.objects.pods import Pod
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tiers import NONPREEMPTING
from webhook.readmodel.pending import GpuHolder, NodeForPod, Room, Waiting, room_for


async def room(asked: AskedCluster, pod: Pod, nominated: str, now: datetime) -> Room | None:
    """The room for a pod; None where it asks for no GPU that nodes have by name, or the person may not list nodes."""
    waiting = _waiting(asked, pod, nominated)
    nodes = await _nodes(asked, pod) if waiting.asks else None
    return room_for(waiting, nodes, await _holders(asked, pod.metadata.namespace, now)) if nodes is not None else None


def _waiting(asked: AskedCluster, pod: Pod, nominated: str) -> Waiting:
    spec, tier = pod.spec, asked.policy.tiers.of_class(pod.spec.priority_class_name)
    asked_for, weights = asked_of(pod, asked.policy), asked.policy.weights
    asks = {name: gpus for name, gpus in asked_for.items() if gpus and not weights.is_of_class(name)}
    calm = "adoption" if spec.priority_class_name.endswith(NONPREEMPTING) else "never"
    return Waiting(
        asks,
        spec.priority or 0,
        tier.name if tier else "",
        evicts="lower" if spec.preemption_policy != "Never" else "adoption" if calm == "adoption" else "never",
        nominated=nominated,
    )


async def _nodes(asked: AskedCluster, pod: Pod) -> list[NodeForPod] | None:
    instead = "You may not list nodes: where it could run, and who holds the GPUs there, is left out."
    nodes = await asked.reader.part("nodes", gpu_nodes(asked.reader.client, asked.policy), None, instead)
    if nodes is None:
        return None
    return [NodeForPod(each.name, each.offers, obstacle(pod.spec, each.labels, each.taints)) for each in nodes]


async def _holders(asked: AskedCluster, own: str, now: datetime) -> list[GpuHolder]:
    """The pods with GPUs on nodes; those of the pod's own namespace where the person may not list all."""
    tenant_of, part = await _tenants(asked), asked.reader.part
    instead = (
        f"You may not list pods in all namespaces: only those of {own} are counted, so what looks free may not be."
    )
    found = await part("pods", _holders_in(asked, None, tenant_of, now), None, instead)
    return await part("pods", _holders_in(asked, own, tenant_of, now), []) if found is None else found


async def _holders_in(
    asked: AskedCluster, namespace: str | None, tenant_of: Callable[[str], str], now: datetime
) -> list[GpuHolder]:
    found: list[GpuHolder] = []
    async for pod in list_pods(asked.reader.client, asked.policy, no_claims, namespace):
        asked.reader.steps.done()
        if pod.node and pod.asks:
            found.append(_holder(pod, asked, tenant_of, now))
    return found


def _holder(pod: PodSummary, asked: AskedCluster, tenant_of: Callable[[str], str], now: datetime) -> GpuHolder:
    tier = asked.policy.tiers.of_class(pod.class_name)
    return GpuHolder(
        f"{pod.namespace}/{pod.name}",
        pod.node,
        pod.asks,
        pod.priority,
        tier.name if tier else pod.class_name,
        tenant_of(pod.namespace),
        _ends_in(pod.ends, now),
    )


def _ends_in(deletion: str, now: datetime) -> float | None:
    """The API server writes as a pod's deletionTimestamp when its grace period ends."""
    return max((datetime.fromisoformat(deletion) - now).total_seconds(), 0.0) if deletion else None


async def _tenants(asked: AskedCluster) -> Callable[[str], str]:
    """Tells the tenant of a namespace; where labels can't be read, the namespace stands for it."""
    instead = "You may not list namespaces: the holders' namespaces stand in the place of their tenants."
    found = await asked.reader.part("namespaces", listed_namespaces(asked.reader.client), (), instead)
    known = {each.name: each for each in found}

    def tenant_of(namespace: str) -> str:
        found = known.get(namespace)
        tenant = asked.cluster.known.tenant(found) if found else None
        return tenant.name if tenant else "" if found else namespace

    return tenant_of
