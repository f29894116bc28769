"""On which flavor's rows a pod counts: that of its node, and until it has one, each whose nodes may take it."""

from collections.abc import Iterable, Mapping

from webhook.objects.pods import NodeRequirement, NodeSelectorTerm, Pod
from webhook.policy.values.tenants import maybe
from webhook.policy.values.tier_policy import Flavor, TierPolicy


def flavor_of(pod: Pod, policy: TierPolicy) -> str | None:
    """The flavor a pod names, or under `flavorUnnamed: Worst` all on whose nodes it may land.

    Behind somebody else's scheduling gate it lands nowhere, and the gate's end is reviewed. Behind ours alone it counts
    as it will: what the leader books has to be all that it may take once the gate is open.
    """
    if policy.flavor_unnamed == "WhenBound" or pod.waits_for_others:
        return named_flavor(pod, policy.flavors)
    open_to: list[str] = []
    for flavor in policy.flavors:
        if _names(pod, flavor):
            return maybe((*open_to, flavor.name)) if open_to else flavor.name  # of several the first in the list counts
        if not any(_shuts_out(pod, key, value) for key, value in flavor.node_labels.items()):
            open_to.append(flavor.name)
    return maybe(open_to) if open_to else None


def named_flavor(pod: Pod, flavors: Iterable[Flavor]) -> str | None:
    """The flavor a pod is bound to by its node selector or by every term of its required node affinity."""
    return next((flavor.name for flavor in flavors if _names(pod, flavor)), None)


def flavor_on(labels: Mapping[str, str], flavors: Iterable[Flavor]) -> str | None:
    return next((flavor.name for flavor in flavors if flavor.node_labels.items() <= labels.items()), None)


def _names(pod: Pod, flavor: Flavor) -> bool:
    return all(_pinned(pod, key, value) for key, value in flavor.node_labels.items())


def _pinned(pod: Pod, key: str, value: str) -> bool:
    if pod.spec.node_selector.get(key) == value:
        return True
    pinned, terms = NodeRequirement(key=key, operator="In", values=(value,)), _terms(pod)
    return bool(terms) and all(pinned in term.match_expressions for term in terms)


def _shuts_out(pod: Pod, key: str, value: str) -> bool:
    """Tells whether no node that has this label may take the pod, whatever else it has."""
    if pod.spec.node_selector.get(key, value) != value:
        return True
    terms = _terms(pod)
    return bool(terms) and all(any(_denies(each, key, value) for each in term.match_expressions) for term in terms)


def _denies(line: NodeRequirement, key: str, value: str) -> bool:
    if line.key != key:
        return False
    return {"In": value not in line.values, "NotIn": value in line.values}.get(
        line.operator, line.operator == "DoesNotExist"
    )


def _terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    return pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
