"""Reads the objects of storage: claims, volumes, their classes, and what CSI drivers and nodes say of them.

Sources: https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and the plugins VolumeBinding and VolumeZone of
kube-scheduler 1.37.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from webhook.objects.pods import Metadata, NodeRequirement, NodeSelector, NodeSelectorTerm
from webhook.objects.view import View, at, mapped, read, view

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
IN_TREE = frozenset({"awsElasticBlockStore", "azureDisk", "cinder", "gcePersistentDisk", "portworxVolume"})
"""Sources that the scheduler translates into those of CSI drivers, which have labels of their own on nodes."""
SINGLE_USE = IN_TREE | {"iscsi", "rbd"}
"""Sources of a pod's own volumes that the scheduler lets pods of one node use only once, or counts for a driver."""
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_TOPOLOGY = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
"""The labels of zones and regions, with their names of today."""

Terms = tuple[NodeSelectorTerm, ...]
"""Terms; a node must match one of them."""


class UsedVolume(NamedTuple):
    """A claim that a pod uses, as namespace/name. `is_own`: it is made for an ephemeral volume of the pod."""

    key: str
    is_own: bool


def used_volumes(pod: Metadata, volumes: Iterable[Mapping[str, Any]]) -> Iterator[UsedVolume]:
    """Yield the PersistentVolumeClaims of a pod's volumes."""
    for volume in volumes:
        if named := mapped(volume.get("persistentVolumeClaim")).get("claimName"):
            yield UsedVolume(f"{pod.namespace}/{named}", is_own=False)
        elif volume.get("ephemeral") is not None:
            yield UsedVolume(f"{pod.namespace}/{pod.name}-{volume.get('name')}", is_own=True)


class _ClaimSpec(View, frozen=True):
    volume_name: str = ""
    storage_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    selector: Any = None


class _ClaimStatus(View, frozen=True):
    phase: str = ""


class VolumeClaim(View, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata = Metadata()
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_bound(self) -> bool:
        return bool(self.spec.volume_name) and BOUND in self.metadata.annotations

    @property
    def selected_node(self) -> str:
        """The node for which the scheduler has its volume made now; "" for none."""
        return self.metadata.annotations.get(SELECTED_NODE, "")


class PersistentVolume(msgspec.Struct, frozen=True):
    """A PersistentVolume. A node must match one term of each of `selectors`.

    `attachment` is its CSI driver and its handle there.
    """

    name: str
    selectors: tuple[Terms, ...]
    attachment: tuple[str, str] | None
    is_in_tree: bool


class _Required(View, frozen=True):
    required: NodeSelector = NodeSelector()


class _Volume(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: dict[str, Any] = field(default_factory=dict)


def persistent_volume(raw: msgspec.Raw | bytes) -> PersistentVolume:
    """Return a PersistentVolume from its JSON. Raises Refused."""
    found = read(raw, _Volume)
    terms = view(mapped(found.spec.get("nodeAffinity")), _Required).required.node_selector_terms
    selectors = (*((terms,) if terms else ()), *_zones(found.metadata.labels))
    csi = mapped(found.spec.get("csi"))
    attachment = (str(csi.get("driver")), str(csi.get("volumeHandle"))) if csi else None
    return PersistentVolume(found.metadata.name, selectors, attachment, not IN_TREE.isdisjoint(found.spec))


def _zones(labels: Mapping[str, str]) -> Iterator[Terms]:
    """Yield the terms of the labels of zones and regions. A node without any such label matches each of them."""
    without = NodeSelectorTerm(match_expressions=tuple(_line(key, "DoesNotExist") for key in _TOPOLOGY))
    for key, today in _TOPOLOGY.items():
        values = tuple(each.strip() for each in labels.get(key, "").split("__"))
        if all(values):
            named = NodeSelectorTerm(match_expressions=(_line(key, "In", *values),))
            renamed = (_line(key, "DoesNotExist"), _line(today, "In", *values))
            yield named, NodeSelectorTerm(match_expressions=renamed), without


def _line(key: str, operator: str, *values: str) -> NodeRequirement:
    return NodeRequirement(key=key, operator=operator, values=values)


class _Topology(View, frozen=True):
    match_label_expressions: tuple[NodeRequirement, ...] = ()


class StorageClass(View, frozen=True):
    """A StorageClass."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[_Topology, ...] = ()

    @property
    def waits(self) -> bool:
        """Tell whether a volume is made where its first pod starts."""
        return self.volume_binding_mode == "WaitForFirstConsumer"

    @property
    def terms(self) -> Terms:
        """The terms of its `allowedTopologies`."""
        return tuple(
            NodeSelectorTerm(match_expressions=tuple(_line(line.key, "In", *line.values) for line in each))
            for each in (topology.match_label_expressions for topology in self.allowed_topologies)
        )


class CSIDriver(View, frozen=True):
    """A CSIDriver: whether it has storage on some nodes only, or runs on some nodes only."""

    metadata: Metadata = Metadata()
    spec: Any = None

    def says(self, what: str) -> bool:
        return at(self.spec, what) is True


class _Count(View, frozen=True):
    count: int | None = None


class _NodeDriver(View, frozen=True):
    name: str = ""
    allocatable: _Count = _Count()


class _NodeDrivers(View, frozen=True):
    drivers: tuple[_NodeDriver, ...] = ()


class CSINode(View, frozen=True):
    """A CSINode: how many volumes of each driver its node can attach."""

    metadata: Metadata = Metadata()
    spec: _NodeDrivers = _NodeDrivers()
