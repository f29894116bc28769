"""What a tier's placement adds to a pod, and on which nodes the pod may run then.

It adds nothing that the pod says itself, so a second pass adds nothing.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.objects.pods import Pod
from webhook.objects.view import Tree
from webhook.policy.placement.neighbours import gang_label_of, packed, siblings_of, speaks_for_itself, spread
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Placement
from webhook.policy.workloads.kinds import KindTable


class Neighbours(msgspec.Struct, frozen=True):
    """What a strategy comes to for one pod: fields of its spec, and in a few words why."""

    said: str = ""
    pod_affinity: Tree | None = None
    spread_constraints: list[Tree] | None = None


class PlacementPlan(msgspec.Struct, frozen=True):
    """What is added to a pod."""

    neighbours: Neighbours
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = msgspec.field(default_factory=dict)
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


ON_EVERY_NODE = "DaemonSet"
"""Its controller has chosen the node before its pod is created, whatever the group of its API."""


def missing_tolerations(pod: Pod, wanted: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """Those of a tier's tolerations for whose taint the pod has none itself."""
    own = [each for each in pod.spec.tolerations or () if isinstance(each, dict)]
    return tuple(each for each in wanted if not any(_of_the_same_taint(theirs, each) for theirs in own))


def missing_node_selector(pod: Pod, facts: Facts, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Those of a tier's node labels of which the pod says nothing, by node selector or by required node affinity."""
    if not wanted or node_chosen(pod, facts):
        return {}
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    said = {line.key for term in terms for line in term.match_expressions} | pod.spec.node_selector.keys()
    return {key: value for key, value in wanted.items() if key not in said}


def with_node_selector(pod: Pod, facts: Facts, placement: Placement | None) -> Pod:
    """The pod as it will be bound to nodes: what it is charged for may depend on them."""
    more = missing_node_selector(pod, facts, placement.node_selector) if placement else {}
    if not more:
        return pod
    spec = msgspec.structs.replace(pod.spec, node_selector={**pod.spec.node_selector, **more})
    return msgspec.structs.replace(pod, spec=spec)


def node_chosen(pod: Pod, facts: Facts) -> bool:
    """Tells whether no scheduler chooses among nodes for this pod: it names its node, or stands on every one."""
    controller = pod.metadata.controller
    nearest = controller.kind if controller else facts.owners[0].row.kind if facts.owners else ""
    return bool(pod.spec.node_name) or nearest == ON_EVERY_NODE


def _of_the_same_taint(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """One without a key is for every taint, and one without an effect for all effects."""
    return (own.get("key") or wanted.get("key")) == wanted.get("key") and (
        own.get("effect") or wanted.get("effect")
    ) == wanted.get("effect")
