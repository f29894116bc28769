"""ResourceQuotas beside a tenant's quota: what they leave for a pod in each tier.

Source: the scopes as the in-tree quota matches them (podMatchesSelector in pkg/quota/v1/evaluator/core/pods.go).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from webhook.objects.pods import Pod
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import class_in_force

PRIORITY_CLASS = "PriorityClass"
"""The scope that tells pods by their class; also the key of its lines."""
REQUESTS = "requests."
"""Starts the name under which a ResourceQuota counts an extended resource."""


@dataclass(frozen=True, slots=True)
class NativeQuota:
    """A ResourceQuota: the classes whose pods it counts, and how much of each resource name it has left."""

    name: str
    classes: tuple[Requirement, ...]
    free: Mapping[str, Decimal]

    def counts(self, class_name: str) -> bool:
        """Whether pods of that class draw on it."""
        return all(line.matches({PRIORITY_CLASS: class_name}) for line in self.classes)


@dataclass(frozen=True, slots=True)
class NativeRoom:
    """The GPUs that a pod may hold at most, by the ResourceQuota that leaves least."""

    left: Decimal
    quota: str


def native_rooms(
    pod: Pod, gpus: Decimal, quotas: Iterable[NativeQuota], policy: TierPolicy
) -> Mapping[str, NativeRoom]:
    """The room for a pod that holds so many GPUs, by tier; a tier that no ResourceQuota counts is missing."""
    asked, rooms = asked_of(pod, policy), dict[str, NativeRoom]()
    for quota in quotas:
        for name in asked.keys() & quota.free.keys():
            left = gpus + (quota.free[name] - asked[name]) * policy.weights[name]
            for tier in policy.tiers:
                least = rooms.get(tier.name)
                counted = quota.counts(class_in_force(tier, adoption=policy.adoption))
                if counted and (least is None or left < least.left):
                    rooms[tier.name] = NativeRoom(left, quota.name)
    return rooms
