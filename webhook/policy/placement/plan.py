"""What a tier's placement adds to a pod: nothing that the pod says itself, so a second pass adds nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.objects.pods import Pod
from webhook.policy.placement.gang_label import gang_label_of
from webhook.policy.placement.neighbours import packed, siblings_of, speaks_for_itself, spread
from webhook.policy.placement.nodes import missing_node_selector, missing_tolerations, node_chosen
from webhook.policy.values.facts import Facts
from webhook.policy.values.placement import Placement
from webhook.policy.workloads.kinds import KindTable

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a strategy comes to for one pod: fields of its spec, and in a few words why."""

    said: str = ""
    pod_affinity: Tree | None = None
    spread_constraints: list[Tree] | None = None


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """What is added to a pod."""

    neighbours: Neighbours
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    active_deadline_seconds: int | None = None


def plan_placement(pod: Pod, facts: Facts, kinds: KindTable, placement: Placement) -> PlacementPlan:
    """What the placement of its tier adds to a pod."""
    return PlacementPlan(
        neighbours=_neighbours(pod, facts, kinds, placement),
        tolerations=missing_tolerations(pod, placement.tolerations),
        node_selector=missing_node_selector(pod, facts, placement.node_selector),
        active_deadline_seconds=None if pod.spec.active_deadline_seconds else placement.max_runtime,
    )


def _neighbours(pod: Pod, facts: Facts, kinds: KindTable, placement: Placement) -> Neighbours:
    """What its strategy comes to. A pod that bears just that has it of an earlier pass."""
    if placement.strategy is None:
        return Neighbours()
    if node_chosen(pod, facts):
        return Neighbours(f"{placement.strategy} changes nothing: its node is chosen already")
    wanted = (_pack if placement.strategy == "Pack" else _spread)(pod, facts, kinds, placement.topology_key)
    there = pod.spec.affinity.pod_affinity or None, pod.spec.topology_spread_constraints or None
    if not speaks_for_itself(pod):
        return wanted
    if any(there) and there == (wanted.pod_affinity, wanted.spread_constraints):
        return Neighbours(wanted.said)
    return Neighbours(f"{placement.strategy} changes nothing: the pod says itself how it lies to other pods")


def _pack(pod: Pod, facts: Facts, kinds: KindTable, topology_key: str) -> Neighbours:
    gang = gang_label_of(pod.metadata.labels, facts.owners, kinds)
    if gang is None:
        of = f"no label is known that all pods of {facts.owners[-1]} bear" if facts.owners else "the pod has no owner"
        return Neighbours(f"Pack changes nothing: {of}")
    if gang.size == 1:
        return Neighbours(f"Pack changes nothing: {gang} is one pod alone")
    return Neighbours(f"Pack by {topology_key} with {gang}", pod_affinity=packed(gang, topology_key))


def _spread(pod: Pod, facts: Facts, kinds: KindTable, topology_key: str) -> Neighbours:
    gang = next((key for key in pod.metadata.labels if key in kinds.gang_labels), None)
    if gang is not None:
        return Neighbours(f"Spread changes nothing: the pod is one of a gang, by its label {gang}")
    siblings = siblings_of(pod.metadata.labels, facts, kinds)
    if siblings is None:
        return Neighbours("Spread changes nothing: no label is known that its replicas alone bear")
    shown = ", ".join(f"{key}={value}" for key, value in siblings["labelSelector"]["matchLabels"].items())
    return Neighbours(f"Spread by {topology_key} from {shown}", spread_constraints=spread(siblings, topology_key))
