"""Reads the nodes with GPUs and the pods on them, for a pod that waits."""

from collections.abc import Callable
from datetime import datetime

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.cluster.listed import listed_namespaces
from webhook.cluster.pod_listing import PodSummary, list_pods, no_claims
from webhook.objects.node_fit import obstacle
from webhook.objects.pods import Pod
from webhook.policy.checkpoint.at_risk import work_since
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tiers import NONPREEMPTING
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting, room_for


async def room(asked: AskedCluster, pod: Pod, nominated: str, now: datetime) -> Room | None:
    """The room for a pod, as far as the person may read nodes and pods; None where nodes alone don't tell of its GPUs.

    That is where a DeviceClass has them, or the pod asks for parts of GPUs. The scheduler alone knows which devices of
    ResourceSlices, and how much of a shared GPU, are free.
    """
    waiting = _waiting(asked, pod, nominated)
    if not waiting.asks:
        return None
    nodes = await _nodes(asked, pod)
    by_nodes_alone = room_for(waiting, nodes, None)
    if nodes is None or by_nodes_alone.sentences:  # pods have no part in it, so nobody needs the right to list them
        return by_nodes_alone
    return room_for(waiting, nodes, await _holders(asked, now))


def _waiting(asked: AskedCluster, pod: Pod, nominated: str) -> Waiting:
    spec, tier = pod.spec, asked.policy.tiers.of_class(pod.spec.priority_class_name)
    asked_for, weights = asked_of(pod, asked.policy), asked.policy.weights
    by_nodes = (name for name in asked_for if not weights.has_class(name) and weights.is_whole(name))
    asks = {name: asked_for[name] for name in by_nodes if asked_for[name]}
    calm = "adoption" if spec.priority_class_name.endswith(NONPREEMPTING) else "never"
    return Waiting(
        asks,
        spec.priority or 0,
        tier.name if tier else "",
        evicts="lower" if spec.preemption_policy != "Never" else "adoption" if calm == "adoption" else "never",
        nominated=nominated,
    )


async def _nodes(asked: AskedCluster, pod: Pod) -> list[NodeForPod] | None:
    lost = "where it could run, and who holds the GPUs there,"
    nodes = await asked.reader.part("nodes", gpu_nodes(asked.reader.client, asked.policy), None, lost)
    if nodes is None:
        return None
    return [NodeForPod(each.name, each.offers, obstacle(pod.spec, each.labels, each.taints)) for each in nodes]


async def _holders(asked: AskedCluster, now: datetime) -> list[GpuHolder] | None:
    """The pods with GPUs on nodes; None where the person may not list all."""
    pods = await asked.reader.part("pods", _pods(asked), None, "which GPUs are free, and who holds the others,")
    if pods is None:
        return None
    tenant_of = await _tenants(asked)
    return [_holder(each, asked, tenant_of, now) for each in pods]


async def _pods(asked: AskedCluster) -> list[PodSummary]:
    found: list[PodSummary] = []
    async for pod in list_pods(asked.reader.client, asked.policy, no_claims):
        asked.reader.steps.done()
        if pod.node and pod.asks:
            found.append(pod)
    return found


def _holder(pod: PodSummary, asked: AskedCluster, tenant_of: Callable[[str], str | None], now: datetime) -> GpuHolder:
    tier = asked.policy.tiers.of_class(pod.class_name)
    return GpuHolder(
        f"{pod.namespace}/{pod.name}",
        pod.node,
        pod.asks,
        pod.priority,
        tier.name if tier else pod.class_name,
        tenant_of(pod.namespace),
        # the API server writes as a pod's deletionTimestamp when its grace period ends
        max((datetime.fromisoformat(pod.ends) - now).total_seconds(), 0.0) if pod.ends else None,
        work_since(pod.gpus, now.timestamp(), None, pod.work_to_lose),
        pod.created,
    )


async def _tenants(asked: AskedCluster) -> Callable[[str], str | None]:
    """Tells the tenant of a namespace, "" for none; None where labels of namespaces or tenants can't be read."""
    reader = asked.reader
    found = await reader.part("namespaces", listed_namespaces(reader.client), (), "the tenants of the holders")
    known = {each.name: each for each in found}

    def tenant_of(namespace: str) -> str | None:
        home = known.get(namespace)
        if home is None or "tenants" in reader.unread:
            return None
        tenant = asked.cluster.known.tenant(home)
        return tenant.name if tenant else ""

    return tenant_of
