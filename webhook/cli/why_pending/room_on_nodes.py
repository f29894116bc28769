"""Reads what there is for a pod that waits for GPUs: by the device plugins of nodes, and by DRA."""

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cli.why_pending.room_by_claims import rooms_by_devices
from webhook.cluster.gpu_nodes import GpuNode, all_nodes
from webhook.cluster.listed import listed_namespaces
from webhook.cluster.pod_listing import PodSummary, list_pods, no_claims
from webhook.objects.node_fit import obstacle
from webhook.objects.pods import Pod
from webhook.objects.view import Tree
from webhook.policy.checkpoint.work_lost import work_since
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tiers import NONPREEMPTING
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting, merged, room_for


async def room(asked: AskedCluster, pod: Pod, tree: Tree, nominated: str, now: datetime) -> Room | None:
    """Return the room for a pod, as far as the person may read it; None for a pod that asks for no GPU.

    A resource that a DeviceClass serves comes by DRA on each node whose device plugin doesn't have it. How much of
    a shared GPU is free the scheduler alone knows.
    """
    # 1. Read the nodes, and tell which of the pod's resources their device plugins have.
    waiting, weights = _waiting(asked, pod, nominated), asked.policy.weights
    by_class = [name for name in waiting.asks if weights.has_class(name)]
    if not waiting.asks and not pod.spec.resource_claims:
        return None
    nodes = await _nodes(asked)
    plugged = {name for each in nodes or () for name in each.offers}
    by_plugin = {name: gpus for name, gpus in waiting.asks.items() if name not in by_class or name in plugged}

    # 2. Read the pods, and whose they are, only where the nodes alone don't tell.
    asks_plugins = replace(waiting, asks=by_plugin)
    with_gpus = None if nodes is None else [_node_for(pod, each) for each in nodes if each.gpus]
    by_nodes_alone = room_for(asks_plugins, with_gpus, None) if by_plugin else None
    by_dra = bool(by_class or pod.spec.resource_claims)
    asks_pods = by_nodes_alone is not None and with_gpus is not None and not by_nodes_alone.sentences
    pods = await _pods(asked) if asks_pods or by_dra else None
    holders = await _holders(asked, pods, now)

    # 3. The scheduler evicts where a device plugin has them.
    rooms: list[Room] = []
    if by_nodes_alone is not None:
        rooms.append(room_for(asks_plugins, with_gpus, holders) if asks_pods else by_nodes_alone)

    # 4. It evicts nobody where they come by DRA: for claims anywhere, for a resource where no device plugin has it.
    if by_dra:
        by_uid = {each.uid: holder for each, holder in zip(pods or (), holders or (), strict=True)}

        def nodes_of(name: str) -> list[NodeForPod]:
            return [_node_for(pod, each) for each in nodes or () if name not in each.offers]

        asks = {name: waiting.asks[name] for name in by_class}
        rooms += await rooms_by_devices(asked, pod, tree, waiting, asks, nodes_of, by_uid)
    return merged(rooms) if rooms else None


def _node_for(pod: Pod, node: GpuNode) -> NodeForPod:
    return NodeForPod(node.name, node.offers, obstacle(pod.spec, node.labels, node.taints))


def _waiting(asked: AskedCluster, pod: Pod, nominated: str) -> Waiting:
    spec, tier = pod.spec, asked.policy.tiers.of_class(pod.spec.priority_class_name)
    calm = "adoption" if spec.priority_class_name.endswith(NONPREEMPTING) else "never"
    return Waiting(
        {
            name: gpus
            for name, gpus in asked_of(pod, asked.policy).items()
            if gpus and asked.policy.weights.is_whole(name)
        },
        spec.priority or 0,
        tier.name if tier else "",
        evicts="lower" if spec.preemption_policy != "Never" else "adoption" if calm == "adoption" else "never",
        nominated=nominated,
    )


async def _nodes(asked: AskedCluster) -> tuple[GpuNode, ...] | None:
    lost = "where it could run, and who holds the GPUs there,"
    return await asked.reader.part("nodes", all_nodes(asked.reader.client, asked.policy), None, lost)


async def _pods(asked: AskedCluster) -> list[PodSummary] | None:
    """Return the pods on nodes; None where the person may not list all."""
    lost = "which GPUs are free, and who holds the others,"
    return await asked.reader.part("pods", _listed_pods(asked), None, lost)


async def _listed_pods(asked: AskedCluster) -> list[PodSummary]:
    found: list[PodSummary] = []
    async for pod in list_pods(asked.reader.client, asked.policy, no_claims):
        asked.reader.steps.done()
        if pod.node:
            found.append(pod)
    return found


async def _holders(asked: AskedCluster, pods: list[PodSummary] | None, now: datetime) -> list[GpuHolder] | None:
    if pods is None:
        return None
    tenant_of = await _tenants(asked)
    return [_holder(each, asked, tenant_of, now) for each in pods]


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
