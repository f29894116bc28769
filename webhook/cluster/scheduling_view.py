"""Follows the objects that preemption for DRA devices needs: pods, nodes, devices, claims, budgets, groups, storage.

Each object is reduced at once to the fields that it needs. The leader follows them unless the policy says `Off`.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Self, TypeVar

import msgspec

from webhook.cluster.pod_informer import RUNNING
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version
from webhook.kube.reflector import Reflector, Reflectors, Source, Store, storing
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import Refused
from webhook.objects.storage import (
    CSIDriver,
    CSINode,
    StorageClass,
    VolumeClaim,
    persistent_volume,
)
from webhook.objects.view import Tree, read, view
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice, inventory
from webhook.policy.preemption.cluster_state import ClusterState, StorageState, disruption_budget
from webhook.policy.preemption.node_state import NodeState, SchedulableNode, node_state
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state
from webhook.policy.preemption.reservation import Reservation, reservations_on
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import GROUP
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

STORAGE = "storage.k8s.io/v1"
"""The API of StorageClasses, CSIDrivers and CSINodes."""


class SchedulingView(Reflectors):
    """Use it as `async with`. `SchedulingView.of` makes one for a cluster.

    ResourceClaims, PersistentVolumeClaims and PodGroups are stored by namespace/name; nodes and the other storage
    objects by name; all others by uid.
    """

    def __init__(self, client: Client, policy: Callable[[], TierPolicy], served: Mapping[str, str]) -> None:
        """`served` has the versions of the optional APIs that this cluster serves, by plural."""
        reflectors: list[Reflector[Any]] = []

        def store(source: Source | None, reading: Callable[[msgspec.Raw], T]) -> Store[T]:
            """Return a store that follows a source; an empty one for an API that is not served."""
            made = Store[T](lambda: None)
            if source is not None:
                reflectors.append(storing(client, source, partial(_judged, source, reading), made))
            return made

        def of_served(plural: str, key: Literal["path", "uid"] = "uid") -> Source | None:
            return Source(path(served[plural], plural), key=key) if plural in served else None

        self._pods = store(RUNNING, lambda raw: pod_state(read(raw, SchedulablePod), policy()))
        self._nodes = store(Source(path("v1", "nodes")), lambda raw: node_state(read(raw, SchedulableNode)))
        self._budgets = store(Source(path("policy/v1", "poddisruptionbudgets"), key="uid"), disruption_budget)
        claims = Source(path("v1", "persistentvolumeclaims"), key="path")
        self._volume_claims = store(claims, partial(read, shape=VolumeClaim))
        self._volumes = store(Source(path("v1", "persistentvolumes")), persistent_volume)
        self._storage_classes = store(Source(path(STORAGE, "storageclasses")), partial(read, shape=StorageClass))
        self._csi_drivers = store(Source(path(STORAGE, "csidrivers")), partial(read, shape=CSIDriver))
        self._csi_nodes = store(Source(path(STORAGE, "csinodes")), partial(read, shape=CSINode))
        self._claims = store(of_served("resourceclaims", "path"), partial(read, shape=DeviceClaim))
        self._slices = store(of_served("resourceslices"), partial(read, shape=ResourceSlice))
        self._taints = store(of_served("devicetaintrules"), partial(read, shape=DeviceTaintRule))
        self._groups = store(of_served("podgroups", "path"), partial(read, shape=PodGroup))
        super().__init__(*reflectors)

    @classmethod
    async def of(cls, client: Client, policy: Callable[[], TierPolicy]) -> Self:
        """Return a view of the APIs that the cluster serves: it may lack DRA or PodGroups. Raises ApiError."""
        served = {}
        for plural in ("resourceclaims", "resourceslices", "devicetaintrules", "podgroups"):
            group = "scheduling.k8s.io" if plural == "podgroups" else GROUP
            if version := await served_version(client, group, plural):
                served[plural] = version
        return cls(client, policy, served)

    def node_written(self, tree: Tree) -> None:
        """Note a node from the answer to a write, because the watch may show the write later."""
        written = node_state(view(tree, SchedulableNode))
        self._nodes.update(written.name, written)

    def waiting(self) -> list[PodState]:
        """Return the pods for which the scheduler has found no node, the longest waiting first."""
        found = [each for each in self._pods.objects.values() if each.waits_since is not None]
        return sorted(found, key=lambda each: each.waits_since or 0.0)

    def reserved(self) -> list[NodeState]:
        """Return the nodes that have our taint, label or annotation, of a reservation that may be over."""
        return [each for each in self._nodes.objects.values() if each.is_marked]

    def state(
        self,
        classes: Mapping[str, DeviceClass],
        now: float,
        at_risk: Mapping[str, float],
        unsaved_since: Mapping[str, float],
    ) -> Callable[[], ClusterState]:
        """Return a function that computes the current state. It takes a while, and may run in another thread."""
        pods, nodes, claims = dict(self._pods.objects), dict(self._nodes.objects), dict(self._claims.objects)
        slices, taints = list(self._slices.objects.values()), list(self._taints.objects.values())
        budgets, groups = list(self._budgets.objects.values()), dict(self._groups.objects)
        storage = StorageState(
            dict(self._volume_claims.objects),
            dict(self._volumes.objects),
            dict(self._storage_classes.objects),
            dict(self._csi_drivers.objects),
            dict(self._csi_nodes.objects),
        )

        def made() -> ClusterState:
            devices, by_namespace = inventory(slices, taints, claims.values(), classes), defaultdict(list)
            for each in budgets:
                by_namespace[each.namespace].append(each)
            return ClusterState(
                nodes, pods, claims, devices, now, by_namespace, groups, at_risk, unsaved_since, storage
            )

        return made


async def listed_state(client: Client, policy: TierPolicy, now: float) -> ClusterState:
    """Read the objects of a SchedulingView once, for a command. Raises ApiError."""
    there = await SchedulingView.of(client, lambda: policy)
    await there.read_once()
    return there.state(policy.classes, now, {}, {})()


async def node_reservations(client: Client) -> tuple[Reservation, ...]:
    """Return each reservation once, as the annotations of all nodes show them. Raises ApiError."""
    pages = client.list_pages(path("v1", "nodes"))
    return reservations_on([node_state(read(raw, SchedulableNode)) async for raw in listed_objects(pages)])


def _judged(source: Source, reading: Callable[[msgspec.Raw], T], raw: msgspec.Raw) -> T | None:
    try:
        return reading(raw)
    except Refused as refused:
        log.warning("not judged", {"path": source.path, "reason": sentence(refused.refusal)})
        return None
