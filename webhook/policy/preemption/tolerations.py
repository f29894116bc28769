"""Which pods may run on nodes that are reserved for a tier: those of this tier and of higher ones.

For others the taint closes it, by the tolerations that pods get. A pod whose author tolerates every taint, as many do
to run on GPU nodes at all, gets a required node affinity: a reserved node has a label of the taint's name too.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from webhook.objects.pods import Pod
from webhook.objects.view import listed, mapped
from webhook.policy.preemption.node_state import RESERVED
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier

Tolerations = tuple[Mapping[str, Any], ...]


class ReservedNodesAccess(NamedTuple):
    """The reserved nodes that a pod may use: all its tolerations of our taint, and the tiers whose nodes it avoids."""

    tolerations: Tolerations
    avoided: tuple[str, ...]

    @property
    def expression(self) -> dict[str, Any]:
        """The expression of a node affinity that avoids them."""
        return {"key": RESERVED, "operator": "NotIn", "values": list(self.avoided)}

    def needs_affinity(self, pod: Pod) -> bool:
        """Tell whether a pod tolerates every taint of our effect, so that only an affinity avoids these nodes."""
        tolerations = (mapped(each) for each in listed(pod.spec.tolerations))
        any_taint = any(not each.get("key") and each.get("effect") in (None, "", "NoSchedule") for each in tolerations)
        return bool(self.avoided) and any_taint


def reserved_nodes_access(tier: Tier | None, policy: TierPolicy) -> ReservedNodesAccess:
    """Return what a pod of that tier may have."""
    evicting = [each for each in policy.tiers if each.preemption_policy != "Never"]
    borne = [each.name for each in evicting if tier is not None and each.value <= tier.value]
    tolerations = ({"key": RESERVED, "operator": "Equal", "value": name, "effect": "NoSchedule"} for name in borne)
    return ReservedNodesAccess(tuple(tolerations), tuple(each.name for each in evicting if each.name not in borne))


def undue(pod: Pod, due: Tolerations) -> Iterator[int]:
    """Yield the places of tolerations of our taint that a pod may not have, the last first."""
    there = listed(pod.spec.tolerations)
    for place in reversed(range(len(there))):
        if mapped(there[place]).get("key") == RESERVED and there[place] not in due:
            yield place
