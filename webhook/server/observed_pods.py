"""What the pods that exist hold, brought into the ledger: by their claims, and by the nodes that they run on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import PodInformer, SeenPod
from webhook.config.in_force import PolicyInForce
from webhook.kube.client import Client
from webhook.ledger.pods_on_nodes import Placed, PodsOnNodes
from webhook.ledger.protocol import Holding, Ledger
from webhook.objects.pods import PodClaim
from webhook.objects.refusal import Missing, Unreadable
from webhook.policy.quota.charges import charge_of
from webhook.policy.quota.demand import flavor_on
from webhook.policy.workloads.workload import Devices
from webhook.server.patience import patiently

log = structlog.get_logger(__name__)


async def nodes_followed(cluster: LiveCluster, in_force: PolicyInForce) -> None:
    """The labels of nodes by which the policy tells flavors; where it has none, nodes are not read."""

    def follow() -> None:
        cluster.nodes.follow({key for flavor in in_force.current().flavors for key in flavor.node_labels})

    follow()
    in_force.subscribe(follow)
    if in_force.current().flavors:
        await patiently("the labels of nodes", cluster.nodes.wait_synced(), cluster.nodes.problems)


@asynccontextmanager
async def pods_observed(
    ledger: Ledger, client: Client, cluster: LiveCluster, in_force: PolicyInForce
) -> AsyncIterator[PodInformer[Placed]]:
    """The ledger rebuilt from the pods that exist, and kept right by a watch."""

    async def project(seen: SeenPod) -> Placed | None:
        policy = in_force.current()
        charge = charge_of(seen.pod, await _devices_of(seen, cluster), policy)
        if charge is None:
            return None
        metadata = seen.pod.metadata
        holding = Holding(metadata.namespace, charge, seen.until, metadata.controller_uid, seen.preempted)
        return Placed(holding, seen.pod.spec.node_name if policy.flavors else "")

    on_nodes = PodsOnNodes(ledger, lambda node: flavor_on(cluster.node_labels(node), in_force.current().flavors))
    cluster.nodes.subscribe(on_nodes.node_changed)
    async with PodInformer(client, project, on_nodes.pod_changed, on_nodes.pods_listed) as pods:
        await patiently("all pods", pods.wait_synced(), pods.problems)
        yield pods


async def _devices_of(seen: SeenPod, cluster: LiveCluster) -> list[Devices]:
    """The devices of a pod that exists, of those claims that can be read."""
    devices: list[Devices] = []
    for claim in seen.pod.spec.resource_claims:
        try:
            devices += await _devices_by(claim, seen, cluster)
        except Unreadable as problem:
            log.warning("claims not counted", pod=seen.pod.metadata.name, reason=str(problem))
    return devices


async def _devices_by(claim: PodClaim, seen: SeenPod, cluster: LiveCluster) -> tuple[Devices, ...]:
    """What a claim asks for; where its template is gone, what was made of it before."""
    namespace, made = seen.pod.metadata.namespace, seen.made.get(claim.name)
    try:
        return await cluster.devices(namespace, claim)
    except Missing:
        if made is None:
            raise
        return await cluster.devices(namespace, PodClaim(name=claim.name, resource_claim_name=made))
