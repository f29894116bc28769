"""The tolerations by which pods of a tier may run on nodes that are reserved for it, or for a lower tier."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.objects.pods import Pod
from webhook.objects.view import listed, mapped
from webhook.policy.preemption.node_state import RESERVED
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier

Tolerations = tuple[Mapping[str, Any], ...]


def due_tolerations(tier: Tier | None, policy: TierPolicy) -> Tolerations:
    """Return all tolerations of our taint that a pod of that tier has."""
    evicting = (each for each in policy.tiers if each.preemption_policy != "Never")
    borne = (each.name for each in evicting if tier is not None and each.value <= tier.value)
    return tuple({"key": RESERVED, "operator": "Equal", "value": name, "effect": "NoSchedule"} for name in borne)


def undue(pod: Pod, due: Tolerations) -> Iterator[int]:
    """Yield the places of tolerations of our taint that a pod may not have, the last first."""
    there = listed(pod.spec.tolerations)
    for place in reversed(range(len(there))):
        if mapped(there[place]).get("key") == RESERVED and there[place] not in due:
            yield place
