"""Follows what preemption for devices of DRA is judged by: pods, nodes, devices, claims, budgets and groups.

Each object is reduced at once to what is judged of it. The leader follows them only while the policy wants it.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Self, TypeVar

import msgspec

from webhook.cluster.listed import device_claims, device_taint_rules, disruption_budgets, resource_slices
from webhook.cluster.pod_informer import RUNNING
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version
from webhook.kube.reflector import Reflector, Reflectors, Source, Store
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, read, view
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice, inventory
from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.disruption_budget import DisruptionBudget, disruption_budget
from webhook.policy.preemption.node_state import NodeState, SchedulableNode, node_state
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import GROUP
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

POD_GROUPS = "scheduling.k8s.io"
"""Their API group."""


class _Stores(msgspec.Struct):
    """The stores, by what they hold. Nodes are by name, all others by uid."""

    pods: Store[PodState]
    nodes: Store[NodeState]
    claims: Store[DeviceClaim]
    slices: Store[ResourceSlice]
    taints: Store[DeviceTaintRule]
    budgets: Store[DisruptionBudget]
    groups: Store[PodGroup]


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

        reflectors = [
            _reflector(client, RUNNING, pod, found.pods),
            _reflector(client, Source(path("v1", "nodes")), node, found.nodes),
            _reflector(
                client, Source(path("policy/v1", "poddisruptionbudgets"), key="uid"), disruption_budget, found.budgets
            ),
        ]
        dra, scheduling = partial(served_version, client, GROUP), partial(served_version, client, POD_GROUPS)
        if version := await dra("resourceclaims"):
            source = Source(path(version, "resourceclaims"), key="uid")
            reflectors.append(_reflector(client, source, partial(read, shape=DeviceClaim), found.claims))
        if version := await dra("resourceslices"):
            source = Source(path(version, "resourceslices"), key="uid")
            reflectors.append(_reflector(client, source, partial(read, shape=ResourceSlice), found.slices))
        if version := await dra("devicetaintrules"):
            source = Source(path(version, "devicetaintrules"), key="uid")
            reflectors.append(_reflector(client, source, partial(read, shape=DeviceTaintRule), found.taints))
        if version := await scheduling("podgroups"):
            source = Source(path(version, "podgroups"), key="uid")
            reflectors.append(_reflector(client, source, partial(read, shape=PodGroup), found.groups))
        return cls(found, *reflectors)

    def node_written(self, tree: Tree) -> None:
        """A node is as the answer to a write shows it: the watch may tell of that later."""
        written = node_state(view(tree, SchedulableNode))
        self._found.nodes.update(written.name, written)

    def waiting(self) -> list[PodState]:
        """Return the pods for which the scheduler has found no node, the longest waiting first."""
        found = [each for each in self._found.pods.objects.values() if each.waits_since is not None]
        return sorted(found, key=lambda each: each.waits_since or 0.0)

    def reserved(self) -> list[NodeState]:
        """Return the nodes that bear our taint or our annotation."""
        return [each for each in self._found.nodes.objects.values() if each.reserved_for or each.reservation]

    def state(
        self, classes: Mapping[str, DeviceClass], now: float, at_risk: Mapping[str, float]
    ) -> Callable[[], ClusterState]:
        """Return what makes the state of now, which takes a while and may be called in another thread."""
        found = self._found
        pods, nodes, groups = dict(found.pods.objects), dict(found.nodes.objects), list(found.groups.objects.values())
        slices, taints = list(found.slices.objects.values()), list(found.taints.objects.values())
        claims, budgets = list(found.claims.objects.values()), list(found.budgets.objects.values())

        def made() -> ClusterState:
            devices = inventory(slices, taints, claims, classes)
            return ClusterState(nodes, pods, _claims(claims), devices, now, _budgets(budgets), _groups(groups), at_risk)

        return made


async def listed_state(client: Client, policy: TierPolicy, now: float) -> ClusterState:
    """Read the same once, for a command. Raises ApiError."""

    async def objects(place: str, params: Mapping[str, str] | None = None) -> list[msgspec.Raw]:
        return [raw async for raw in listed_objects(client.list_pages(place, params))]

    pods = [pod_state(read(raw, SchedulablePod), policy) for raw in await objects(RUNNING.path, RUNNING.params)]
    nodes = [node_state(read(raw, SchedulableNode)) for raw in await objects(path("v1", "nodes"))]
    claims = await device_claims(client)
    slices, taints = await resource_slices(client), await device_taint_rules(client)
    budgets = _budgets(await disruption_budgets(client))
    version = await served_version(client, POD_GROUPS, "podgroups")
    groups = [read(raw, PodGroup) for raw in await objects(path(version, "podgroups"))] if version else []
    return ClusterState(
        nodes={each.name: each for each in nodes},
        pods={each.uid: each for each in pods},
        claims=_claims(claims),
        inventory=inventory(slices, taints, claims, policy.classes),
        now=now,
        budgets=budgets,
        groups=_groups(groups),
    )


def _claims(found: Iterable[DeviceClaim]) -> dict[str, DeviceClaim]:
    return {each.key: each for each in found}


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
