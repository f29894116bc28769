"""A cluster with devices of DRA, simulated second by second: an API server, a scheduler, and the leader's view.

Pods that wait take whatever device is free on a node that they tolerate, those of low tiers first, and there are always
more low pods.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import msgspec

from tests.builders.built import Tree
from tests.builders.claims import DEVICE_CLASS
from tests.builders.dra_cluster import NOW, TIERS, DraCluster
from webhook.controllers import device_preemption
from webhook.controllers.device_preemption import DevicePreemption, JudgingOrder
from webhook.kube.errors import NotFound
from webhook.objects.view import at, view
from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.node_state import RESERVED, NodeState, SchedulableNode, node_state
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.values.weights import DeviceClass

FRESH = "fresh"
"""The name of the pod of a low tier that waits: each time it gets a node, another one comes."""


class Case(msgspec.Struct, frozen=True):
    """Devices by node, the graces of the pods that hold them, and the pods that come: when, and of which tier."""

    nodes: tuple[int, ...]
    graces: tuple[int, ...]
    comes: tuple[tuple[int, str], ...]
    seed: int


@dataclass
class Simulated:
    """The cluster, as an API server and as a scheduler. It is the leader's view, too."""

    case: Case
    cluster: DraCluster = field(default_factory=DraCluster)
    seconds: float = 0.0
    evicted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.case.seed)  # noqa: S311
        graces = iter(self.case.graces)
        for number, devices in enumerate(self.case.nodes):
            self.cluster.node(f"n{number}", gpus=devices)
            for each in range(devices):
                self.cluster.running(f"low-{number}-{each}", f"n{number}", terminationGracePeriodSeconds=next(graces))
        self._come_fresh()

    @property
    def now(self) -> float:
        return NOW + self.seconds

    def next_second(self) -> None:
        self.seconds += 1
        for number, (when, tier) in enumerate(self.case.comes):
            if when == self.seconds:
                self.cluster.waiting(f"high-{number}", tier, since=self.seconds, tolerations=[*tolerated(tier)])
        for name, pod in [*self.cluster.pods.items()]:
            if pod["metadata"].get("ends", self.now + 1) <= self.now:
                del self.cluster.pods[name]
                self.cluster.claims.pop(f"team-alpha/{name}-gpu", None)
        waiting = [name for name, pod in self.cluster.pods.items() if "nodeName" not in pod["spec"]]
        for name in sorted(waiting, key=lambda each: (each != FRESH, self._chance.random())):
            self._schedule(name)

    def _come_fresh(self) -> None:
        self.cluster.waiting(FRESH, "gpu-batch", since=self.seconds, tolerations=[*tolerated("gpu-batch")])

    def _schedule(self, name: str) -> None:
        pod, claim = self.cluster.pods[name], self.cluster.claims[f"team-alpha/{name}-gpu"]
        count = claim["spec"]["devices"]["requests"][0]["exactly"]["count"]
        for node, tree in self.cluster.nodes.items():
            free = [each for each in range(self.case.nodes[int(node[1:])]) if (node, f"gpu-{each}") not in self.held()]
            taints = {each["value"] for each in tree["spec"].get("taints") or ()}
            if len(free) < count or not taints <= {each["value"] for each in pod["spec"]["tolerations"]}:
                continue
            pod["spec"]["nodeName"], pod["status"]["conditions"] = node, []
            results = [
                {"request": "gpu", "driver": DEVICE_CLASS, "pool": node, "device": f"gpu-{each}"}
                for each in free[:count]
            ]
            users = [{"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}]
            claim["status"] = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
            if name == FRESH:
                self._come_again(pod, claim)
            return

    def _come_again(self, pod: Tree, claim: Tree) -> None:
        """Rename the fresh pod, which has its node now, and create the next one."""
        name = f"took-{self.seconds}"
        for tree in (pod, claim):
            tree["metadata"]["name"] = tree["metadata"]["name"].replace(FRESH, name)
        pod["metadata"]["uid"] = claim["status"]["reservedFor"][0]["uid"] = name
        pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] = f"{name}-gpu"
        self.cluster.pods[name] = pod
        self.cluster.claims[f"team-alpha/{name}-gpu"] = claim
        self._come_fresh()

    def held(self) -> set[tuple[str, str]]:
        results = (at(each, "status.allocation.devices.results") for each in self.cluster.claims.values())
        return {(each["pool"], each["device"]) for found in results for each in found or ()}  # type: ignore[attr-defined]

    # The API server.

    async def get(self, where: str) -> Tree:
        return self.cluster.nodes[where.rpartition("/")[2]]

    async def patch(self, where: str, change: Tree, **_: object) -> Tree:
        if where.endswith("/status"):
            return {"metadata": {"resourceVersion": "1"}}
        node = self.cluster.nodes[where.rpartition("/")[2]]
        there = node["metadata"].setdefault("annotations", {})
        for key, value in change["metadata"].get("annotations", {}).items():
            there.pop(key, None) if value is None else there.update({key: value})
        node["spec"]["taints"] = change["spec"]["taints"] or []
        return node

    async def delete(self, where: str, **_: object) -> None:
        name = where.rpartition("/")[2]
        if name not in self.cluster.pods:
            raise NotFound(where, 404, "")
        if "ends" not in self.cluster.pods[name]["metadata"]:
            self.evicted.append(name)
            grace = self.cluster.pods[name]["spec"].get("terminationGracePeriodSeconds", 30)
            self.cluster.pods[name]["metadata"]["ends"] = self.now + grace
            self.cluster.ending(name, self.seconds + grace)

    # The view.

    def waiting(self) -> list[PodState]:
        found = [each for each in self.cluster.state().pods.values() if each.waits_since is not None]
        return sorted(found, key=lambda each: each.waits_since or 0.0)

    def reserved(self) -> list[NodeState]:
        found = (node_state(view(each, SchedulableNode)) for each in self.cluster.nodes.values())
        return [each for each in found if each.is_marked]

    def node_written(self, _: Tree) -> None: ...

    def state(self, _: Mapping[str, DeviceClass], now: float, *__: object) -> Callable[[], ClusterState]:
        return lambda: msgspec.structs.replace(self.cluster.state(), now=now)


def tolerated(tier: str) -> Iterable[Tree]:
    for name, value in TIERS.items():
        if value <= TIERS[tier]:
            yield {"key": RESERVED, "operator": "Equal", "value": name, "effect": "NoSchedule"}


@contextmanager
def leading(simulated: Simulated) -> Iterator[DevicePreemption]:
    """Yield a leader with the clock of the simulation; call `one_round` for each of its rounds."""
    known: Any = SimpleNamespace(eviction=lambda: SimpleNamespace(devices=False), namespaces=lambda: ())
    anything: Any = simulated
    events: Any = SimpleNamespace(add=lambda *_: None)
    policy = msgspec.structs.replace(simulated.cluster.policy, device_preemption="On")
    leader = DevicePreemption(
        anything, known, lambda: policy, lambda: True, lambda: (), dict, events, frozenset(), lambda *_: None
    )
    clock = SimpleNamespace(time=lambda: simulated.now, monotonic=lambda: simulated.now)
    leader._order = JudgingOrder(clock.monotonic)
    with mock.patch.object(device_preemption, "time", clock):
        yield leader


def one_round(leader: DevicePreemption, simulated: Simulated) -> None:
    anything: Any = simulated
    asyncio.run(leader._round(anything))


def judged(leader: DevicePreemption) -> int:
    """Return for how many gangs the leader has found that nobody is evicted."""
    return len(leader._order._judged)
