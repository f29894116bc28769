"""A cluster whose GPUs come by DRA, as manifests: nodes, ResourceSlices, pods with their claims, budgets, groups."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.builders.built import Tree
from tests.builders.claims import DEVICE_CLASS, a_device, a_slice
from tests.builders.pods import GPU, IMAGE
from tests.builders.policies import a_policy
from tests.builders.storage import Storage
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import Phrase
from webhook.objects.view import view
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, inventory
from webhook.policy.preemption.cluster_state import ClusterState, Rules, disruption_budget
from webhook.policy.preemption.decide_preemption import decide_preemption
from webhook.policy.preemption.node_state import RESERVATION, RESERVED, SchedulableNode, node_state
from webhook.policy.preemption.pod_state import SchedulablePod, pod_state
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import Reservation
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass

NOW = 1_800_000_000.0
CLASSES = {DEVICE_CLASS: DeviceClass(DEVICE_CLASS, (f"device.driver == '{DEVICE_CLASS}'",), GPU)}
TIERS = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}
TOLERANT: Tree = {"key": RESERVED, "operator": "Exists", "effect": "NoSchedule"}


def at(seconds: float) -> str:
    """Return a time, `seconds` after NOW."""
    return datetime.fromtimestamp(NOW + seconds, UTC).isoformat()


@dataclass
class DraCluster:
    """The manifests of a cluster: add to them, then let it `decide` which pods a gang evicts."""

    policy: TierPolicy = field(default_factory=lambda: replace(a_policy(), classes=CLASSES))
    exempt: frozenset[str] = frozenset({"kube-system"})
    nodes: dict[str, Tree] = field(default_factory=dict)
    slices: list[Tree] = field(default_factory=list)
    pods: dict[str, Tree] = field(default_factory=dict)
    claims: dict[str, Tree] = field(default_factory=dict)
    rules: list[Tree] = field(default_factory=list)
    budgets: list[Tree] = field(default_factory=list)
    groups: dict[str, Tree] = field(default_factory=dict)
    at_risk: dict[str, float] = field(default_factory=dict)
    unsaved_since: dict[str, float] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)

    def node(self, name: str, gpus: int = 1, *, cpu: str = "64", plugged: int = 0, **device: Any) -> None:
        """Add a node that is ready, with `gpus` devices of DRA and `plugged` GPUs of a device plugin."""
        room = {"cpu": cpu, "memory": "512Gi", "pods": "110"} | ({GPU: str(plugged)} if plugged else {})
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        self.nodes[name] = {"metadata": metadata, "spec": {}, "status": status}
        if gpus:
            self.slices.append(a_slice(*(a_device(f"gpu-{each}", **device) for each in range(gpus)), node=name).json())

    def running(
        self, name: str, node: str, tier: str = "gpu-batch", gpus: int = 1, *, claim: Tree | None = None, **spec: Any
    ) -> Tree:
        """Add a pod on a node that uses the next `gpus` devices there by a claim of a template."""
        pod = self._pod(name, tier, {"nodeName": node, **spec})
        if gpus:
            made = self._claim(f"{name}-gpu", gpus, claim or {})
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
            pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
            made["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}]
            first = self.used.get(node, 0)
            self.used[node] = first + gpus
            results = [
                {"request": "gpu", "driver": DEVICE_CLASS, "pool": node, "device": f"gpu-{each}"}
                for each in range(first, first + gpus)
            ]
            made["status"] = {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
            }
        pod["status"]["startTime"] = at(-3600)
        return pod

    def waiting(
        self, name: str, tier: str = "gpu-training", gpus: int = 1, *, by: str = "claim", since: float = -60.0,
        claim: Tree | None = None, **spec: Any,
    ) -> Tree:  # fmt: skip
        """Add a pod that is unschedulable since `since`, with a claim of a template or (`by` resource) a request."""
        pod = self._pod(name, tier, {"tolerations": [TOLERANT], **spec})
        if by == "resource":
            pod["spec"]["containers"][0]["resources"]["requests"][GPU] = str(gpus)
        elif gpus:
            made = self._claim(f"{name}-gpu", gpus, claim or {})
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
            made["metadata"]["ownerReferences"] = [owner]
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
            pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": at(since)}
        pod["status"]["conditions"] = [told]
        return pod

    def ending(self, name: str, seconds: float = 20.0) -> None:
        self.pods[name]["metadata"]["deletionTimestamp"] = at(seconds)

    def budget(self, name: str, labels: Mapping[str, str], allowed: int = 0) -> None:
        metadata = {"name": name, "namespace": "team-alpha", "uid": name}
        selector = {"selector": {"matchLabels": dict(labels)}}
        self.budgets.append({"metadata": metadata, "spec": selector, "status": {"disruptionsAllowed": allowed}})

    def group(self, name: str, *pods: str, least: int = 1, whole: bool = False, **spec: Any) -> None:
        """Add a PodGroup of existing pods, which needs `least` of them and, if `whole`, is evicted as a whole."""
        mode = {"disruptionMode": {"all": {}}} if whole else {}
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}, **mode, **spec}
        self.groups[f"team-alpha/{name}"] = {
            "metadata": {"name": name, "namespace": "team-alpha", "uid": name},
            "spec": spec,
        }
        for each in pods:
            self.pods[each]["spec"]["schedulingGroup"] = {"podGroupName": name}

    def reserve(self, reservation: Reservation) -> None:
        """Put the taint and the annotation of a reservation on its nodes."""
        taint = {"key": RESERVED, "value": reservation.tier, "effect": "NoSchedule"}
        for name in reservation.nodes:
            self.nodes[name]["spec"]["taints"] = [taint]
            self.nodes[name]["metadata"]["annotations"] = {RESERVATION: msgspec.json.encode(reservation).decode()}

    def state(self) -> ClusterState:
        claims = {key: view(each, DeviceClaim) for key, each in self.claims.items()}
        taints = [view({"spec": each}, DeviceTaintRule) for each in self.rules]
        from webhook.policy.devices import ResourceSlice  # noqa: PLC0415

        slices = [view(each, ResourceSlice) for each in self.slices]
        budgets = [disruption_budget(json.dumps(each).encode()) for each in self.budgets]
        return ClusterState(
            nodes={name: node_state(view(each, SchedulableNode)) for name, each in self.nodes.items()},
            pods={name: pod_state(view(each, SchedulablePod), self.policy) for name, each in self.pods.items()},
            claims=claims,
            inventory=inventory(slices, taints, claims.values(), self.policy.classes),
            now=NOW,
            budgets={"team-alpha": budgets},
            groups={name: view(each, PodGroup) for name, each in self.groups.items()},
            at_risk=self.at_risk,
            unsaved_since=self.unsaved_since,
            storage=self.storage.state(),
        )

    def decide(self, gang: str, within: Sequence[str] | None = None) -> EvictionPlan | Phrase:
        rules = Rules(self.policy, self.exempt)
        return decide_preemption(gang, self.state(), rules, None if within is None else frozenset(within))

    def _pod(self, name: str, tier: str, spec: Tree) -> Tree:
        metadata: Tree = {"name": name, "namespace": "team-alpha", "uid": name, "resourceVersion": "1", "labels": {}}
        container = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        whole = {"priorityClassName": tier, "priority": TIERS.get(tier, 0), "containers": [container], **spec}
        self.pods[name] = {"metadata": metadata, "spec": whole, "status": {}}
        return self.pods[name]

    def _claim(self, name: str, gpus: int, exactly: Tree) -> Tree:
        device = {"deviceClassName": DEVICE_CLASS, "allocationMode": "ExactCount", "count": gpus, **exactly}
        devices = {"requests": [{"name": "gpu", "exactly": device}]}
        made = {
            "metadata": {"name": name, "namespace": "team-alpha", "uid": name},
            "spec": {"devices": devices},
            "status": {},
        }
        self.claims[f"team-alpha/{name}"] = made
        return made
