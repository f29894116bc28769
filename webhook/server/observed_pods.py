"""What the pods that exist hold, brought into the ledger: by their claims, and by the nodes that they run on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import structlog

from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import PodInformer, SeenPod
from webhook.config.in_force import PolicyInForce
from webhook.kube.client import Client
from webhook.ledger.pods_on_nodes import Placed, PodsOnNodes, counted
from webhook.ledger.protocol import Holding, Observer
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


class ObservedPods:
    """Follows pods for an observer, at one time for one: for the ledger in memory, or for a leader in its term."""

    def __init__(self, client: Client, cluster: LiveCluster, in_force: PolicyInForce) -> None:
        self._client = client
        self._cluster = cluster
        self._in_force = in_force
        self._pods: PodInformer[Placed] | None = None
        self._on_nodes: PodsOnNodes | None = None
        cluster.nodes.subscribe(self._node_changed)
        in_force.subscribe(self._relist)  # other resources may count now, and weigh differently

    @property
    def synced(self) -> bool:
        """Whether all pods have been read."""
        return self._pods is not None and self._pods.synced

    def problems(self) -> list[str]:
        """Why pods, or the nodes they run on, can't be followed now: a sentence each."""
        return [*(self._pods.problems() if self._pods else ()), *self._cluster.nodes.problems()]

    @asynccontextmanager
    async def following(self, observer: Observer) -> AsyncIterator[Self]:
        """Tell the observer of all pods that exist, by a quorum list, and then of each change."""
        on_nodes = self._on_nodes = PodsOnNodes(observer, self._flavor_on)
        async with PodInformer(self._client, self._project, on_nodes.pod_changed, on_nodes.pods_listed) as pods:
            self._pods = pods
            try:
                await patiently("all pods", pods.wait_synced(), pods.problems)
                yield self
            finally:
                self._pods = self._on_nodes = None

    async def find(self, namespace: str, name: str) -> tuple[str, Holding | None] | None:
        """The uid of the pod of that name and what it holds, as the API server has it now; None without one."""
        found = await self._following.find(namespace, name)
        if found is None:
            return None
        uid, placed = found
        return uid, self._counted(placed) if placed else None

    async def list_in(self, namespace: str) -> dict[str, Holding]:
        """What the pods of one namespace hold, by uid, as the API server has them now."""
        found = await self._following.list_in(namespace)
        return {uid: self._counted(placed) for uid, placed in found.items()}

    @property
    def _following(self) -> PodInformer[Placed]:
        if self._pods is None:
            raise AssertionError("pods are not followed")
        return self._pods

    def _counted(self, placed: Placed) -> Holding:
        return counted(placed.holding, self._flavor_on(placed.node))

    def _flavor_on(self, node: str) -> str | None:
        return flavor_on(self._cluster.node_labels(node), self._in_force.current().flavors) if node else None

    def _node_changed(self, node: str) -> None:
        if self._on_nodes is not None:
            self._on_nodes.node_changed(node)

    def _relist(self) -> None:
        if self._pods is not None:
            self._pods.relist()

    async def _project(self, seen: SeenPod) -> Placed | None:
        policy = self._in_force.current()
        charge = charge_of(seen.pod, await _devices_of(seen, self._cluster), policy)
        if charge is None:
            return None
        metadata = seen.pod.metadata
        holding = Holding(
            metadata.namespace, charge, seen.ends_in, metadata.controller_uid, seen.preempted, metadata.name
        )
        return Placed(holding, seen.pod.spec.node_name if policy.flavors else "")


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
