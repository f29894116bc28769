"""Follows what preemption for devices of DRA is judged by: pods, nodes, devices, claims, budgets, groups and storage.

Each object is reduced at once to what is judged of it. The leader follows them only while the policy wants it.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

import msgspec

from webhook.cluster.pod_informer import RUNNING
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version
from webhook.kube.reflector import Reflector, Reflectors, Source, Store
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import Refused
from webhook.objects.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    StorageClass,
    VolumeClaim,
    persistent_volume,
)
from webhook.objects.view import Tree, View, read, view
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice, inventory
from webhook.policy.preemption.cluster_state import ClusterState, DisruptionBudget, StorageState, disruption_budget
from webhook.policy.preemption.node_state import NodeState, SchedulableNode, node_state
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state
from webhook.policy.preemption.reservation import Reservation, reservations_on
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import GROUP
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")
V = TypeVar("V", bound=View)
C = TypeVar("C", DeviceClaim, VolumeClaim)

POD_GROUPS, STORAGE = "scheduling.k8s.io", "storage.k8s.io/v1"
"""The API group of PodGroups, and the API of StorageClasses, CSIDrivers and CSINodes."""


class _Stores(msgspec.Struct):
    """The stores, by what they hold. Objects of namespaces are by uid, nodes and objects of storage by name."""

    pods: Store[PodState]
    nodes: Store[NodeState]
    claims: Store[DeviceClaim]
    slices: Store[ResourceSlice]
    taints: Store[DeviceTaintRule]
    budgets: Store[DisruptionBudget]
    groups: Store[PodGroup]
    volume_claims: Store[VolumeClaim]
    volumes: Store[PersistentVolume]
    storage_classes: Store[StorageClass]
    csi_drivers: Store[CSIDriver]
    csi_nodes: Store[CSINode]


class SchedulingView(Reflectors):
    """Use it as `async with`. `SchedulingView.of` makes one for a cluster."""

    def __init__(self, found: _Stores, *reflectors: Reflector[object]) -> None:
        self._found = found
        super().__init__(*reflectors)

    @classmethod
    async def of(cls, client: Client, policy: Callable[[], TierPolicy]) -> Self:
        """Follow what the cluster serves; DRA and PodGroups are not served everywhere. Raises ApiError."""
        found = _Stores(*(Store(lambda: None) for _ in _Stores.__struct_fields__))

        def pod(raw: msgspec.Raw) -> PodState:
            return pod_state(read(raw, SchedulablePod), policy())

        def node(raw: msgspec.Raw) -> NodeState:
            return node_state(read(raw, SchedulableNode))

        sources: list[tuple[Source, Callable[[msgspec.Raw], object], Store[Any]]] = [
            (RUNNING, pod, found.pods),
            (Source(path("v1", "nodes")), node, found.nodes),
            (Source(path("policy/v1", "poddisruptionbudgets"), key="uid"), disruption_budget, found.budgets),
            (Source(path("v1", "persistentvolumeclaims"), key="uid"), _reads(VolumeClaim), found.volume_claims),
            (Source(path("v1", "persistentvolumes")), persistent_volume, found.volumes),
            (Source(path(STORAGE, "storageclasses")), _reads(StorageClass), found.storage_classes),
            (Source(path(STORAGE, "csidrivers")), _reads(CSIDriver), found.csi_drivers),
            (Source(path(STORAGE, "csinodes")), _reads(CSINode), found.csi_nodes),
        ]
        for group, plural, shape, store in (
            (GROUP, "resourceclaims", DeviceClaim, found.claims),
            (GROUP, "resourceslices", ResourceSlice, found.slices),
            (GROUP, "devicetaintrules", DeviceTaintRule, found.taints),
            (POD_GROUPS, "podgroups", PodGroup, found.groups),
        ):
            if version := await served_version(client, group, plural):
                sources.append((Source(path(version, plural), key="uid"), _reads(shape), store))
        return cls(found, *(_reflector(client, *each) for each in sources))

    def node_written(self, tree: Tree) -> None:
        """A node is as the answer to a write shows it: the watch may tell of that later."""
        written = node_state(view(tree, SchedulableNode))
        self._found.nodes.update(written.name, written)

    def waiting(self) -> list[PodState]:
        """Return the pods for which the scheduler has found no node, the longest waiting first."""
        found = [each for each in self._found.pods.objects.values() if each.waits_since is not None]
        return sorted(found, key=lambda each: each.waits_since or 0.0)

    def reserved(self) -> list[NodeState]:
        """Return the nodes that bear our taint, label or annotation."""
        return [each for each in self._found.nodes.objects.values() if each.is_marked]

    def state(
        self,
        classes: Mapping[str, DeviceClass],
        now: float,
        at_risk: Mapping[str, float],
        unsaved_since: Mapping[str, float],
    ) -> Callable[[], ClusterState]:
        """Return what makes the state of now, which takes a while and may be called in another thread."""
        found = self._found
        pods, nodes, groups = dict(found.pods.objects), dict(found.nodes.objects), list(found.groups.objects.values())
        slices, taints = list(found.slices.objects.values()), list(found.taints.objects.values())
        claims, budgets = list(found.claims.objects.values()), list(found.budgets.objects.values())
        volume_claims, volumes = list(found.volume_claims.objects.values()), dict(found.volumes.objects)
        storage_classes, csi_drivers = dict(found.storage_classes.objects), dict(found.csi_drivers.objects)
        csi_nodes = dict(found.csi_nodes.objects)

        def made() -> ClusterState:
            devices = inventory(slices, taints, claims, classes)
            storage = StorageState(_by_key(volume_claims), volumes, storage_classes, csi_drivers, csi_nodes)
            return ClusterState(
                nodes,
                pods,
                _by_key(claims),
                devices,
                now,
                _budgets(budgets),
                _groups(groups),
                at_risk,
                unsaved_since,
                storage,
            )

        return made


async def listed_state(client: Client, policy: TierPolicy, now: float) -> ClusterState:
    """Read the same once, for a command. Raises ApiError."""

    there = await SchedulingView.of(client, lambda: policy)
    await there.read_once()
    return there.state(policy.classes, now, {}, {})()


async def node_reservations(client: Client) -> tuple[Reservation, ...]:
    """List the nodes that are reserved, by reservation. Raises ApiError."""
    pages = client.list_pages(path("v1", "nodes"))
    return reservations_on([node_state(read(raw, SchedulableNode)) async for raw in listed_objects(pages)])


def _by_key(found: Iterable[C]) -> dict[str, C]:
    return {each.key: each for each in found}


def _reads(shape: type[V]) -> Callable[[msgspec.Raw], V]:
    return partial(read, shape=shape)


def _budgets(found: Iterable[DisruptionBudget]) -> dict[str, list[DisruptionBudget]]:
    budgets: defaultdict[str, list[DisruptionBudget]] = defaultdict(list)
    for each in found:
        budgets[each.namespace].append(each)
    return budgets


def _groups(found: Iterable[PodGroup]) -> dict[str, PodGroup]:
    return {f"{each.metadata.namespace}/{each.metadata.name}": each for each in found}


def _reflector(
    client: Client, source: Source, reading: Callable[[msgspec.Raw], T], store: Store[T]
) -> Reflector[object]:
    async def project(raw: msgspec.Raw) -> T | None:
        try:
            return reading(raw)
        except Refused as refused:
            log.warning("not judged", {"path": source.path, "reason": sentence(refused.refusal)})
            return None

    return Reflector(client, source, project, store.update, store.replace)  # type: ignore[arg-type]
