"""The storage of a cluster as manifests: PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSI drivers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.builders.built import Tree
from webhook.objects.storage import CSIDriver, CSINode, StorageClass, VolumeClaim, persistent_volume
from webhook.objects.view import view
from webhook.policy.preemption.cluster_state import StorageState

CSI = "ebs.csi.example.com"
ZONE = "topology.kubernetes.io/zone"


def of_zone(*zones: str, key: str = ZONE) -> Tree:
    """The node affinity of a volume in these zones."""
    line = {"key": key, "operator": "In", "values": [*zones]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}


@dataclass
class Storage:
    """The manifests by name: add to them, then read them by `state`. All claims are of the namespace team-alpha."""

    claims: dict[str, Tree] = field(default_factory=dict)
    volumes: dict[str, Tree] = field(default_factory=dict)
    classes: dict[str, Tree] = field(default_factory=dict)
    drivers: dict[str, Tree] = field(default_factory=dict)
    nodes: dict[str, Tree] = field(default_factory=dict)

    def claim(self, name: str = "data", *, of: str = "fast", modes: Sequence[str] = ("ReadWriteOnce",)) -> Tree:
        """Add a claim without a volume, of the StorageClass `of`, and return it."""
        metadata: Tree = {"name": name, "namespace": "team-alpha", "annotations": {}}
        spec: Tree = {"storageClassName": of, "accessModes": [*modes]}
        self.claims[name] = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        return self.claims[name]

    def bound(self, name: str = "data", *, modes: Sequence[str] = ("ReadWriteOnce",), **volume: Any) -> Tree:
        """Add a claim that is bound to a volume of its own; return the volume, whose spec has these fields."""
        claim, pv = self.claim(name, modes=modes), f"pv-{name}"
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        claim["spec"]["volumeName"], claim["status"]["phase"] = pv, "Bound"
        source = {"csi": {"driver": CSI, "volumeHandle": pv}}
        self.volumes[pv] = {"metadata": {"name": pv, "labels": {}}, "spec": {**source, **volume}}
        return self.volumes[pv]

    def storage_class(self, name: str = "fast", mode: str = "WaitForFirstConsumer", **fields: Any) -> None:
        self.classes[name] = {"metadata": {"name": name}, "provisioner": CSI, "volumeBindingMode": mode, **fields}

    def driver(self, name: str = CSI, **spec: Any) -> None:
        self.drivers[name] = {"metadata": {"name": name}, "spec": spec}

    def attaches(self, node: str, most: int | None, driver: str = CSI) -> None:
        """Let a node attach `most` volumes of a driver; None is no limit."""
        limit = {} if most is None else {"allocatable": {"count": most}}
        self.nodes[node] = {"metadata": {"name": node}, "spec": {"drivers": [{"name": driver, **limit}]}}

    def state(self) -> StorageState:
        claims = [view(each, VolumeClaim) for each in self.claims.values()]
        return StorageState(
            {each.key: each for each in claims},
            {name: persistent_volume(json.dumps(each).encode()) for name, each in self.volumes.items()},
            {name: view(each, StorageClass) for name, each in self.classes.items()},
            {name: view(each, CSIDriver) for name, each in self.drivers.items()},
            {name: view(each, CSINode) for name, each in self.nodes.items()},
        )


def mount(pod: Tree, claim: str = "data") -> None:
    """Add a volume with this claim to the pod."""
    volume = {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
    pod["spec"].setdefault("volumes", []).append(volume)
