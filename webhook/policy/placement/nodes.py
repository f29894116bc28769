"""On which nodes a tier's pods may run: tolerations and node selectors, as far as the pod says nothing of them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.objects.pods import Pod
from webhook.policy.values.facts import Facts
from webhook.policy.values.placement import Placement

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
    """Whether no scheduler chooses among nodes for this pod: it names its node, or stands on every one."""
    controller = pod.metadata.controller
    nearest = controller.kind if controller else facts.owners[0].row.kind if facts.owners else ""
    return bool(pod.spec.node_name) or nearest == ON_EVERY_NODE


def _of_the_same_taint(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """One without a key is for every taint, and one without an effect for all effects."""
    return (own.get("key") or wanted.get("key")) == wanted.get("key") and (
        own.get("effect") or wanted.get("effect")
    ) == wanted.get("effect")
