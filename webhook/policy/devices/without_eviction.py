"""Finds what a pod asks for of DRA, for which kube-scheduler evicts nobody."""

from collections.abc import Collection

from webhook.objects.phrase import Phrase
from webhook.objects.pods import Pod
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.facts import Facts
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier
from webhook.policy.values.weights import IMPLICIT_CLAIM
from webhook.policy.workloads.workload import Devices


def without_eviction(
    pod: Pod, devices: Collection[Devices], scope: EvictionScope, policy: TierPolicy
) -> tuple[str, ...]:
    """Return the resources and DeviceClasses of GPUs that a pod asks for and for which nobody is evicted on any node.

    One is enough that the scheduler makes no room for the pod: it needs all of them.
    """
    weights = policy.weights
    if scope.devices:
        return ()
    claimed = (each.device_class for each in devices if weights.of_devices(each.device_class, each.profile) > 0)
    named = (name for name, amount in asked_of(pod, policy).items() if amount and not scope.has(name, weights))
    return tuple(dict.fromkeys(name.removeprefix(IMPLICIT_CLAIM) for name in (*named, *claimed)))


def evicted_by(tier: Tier, pod: Pod, facts: Facts, policy: TierPolicy) -> Phrase:
    """The tiers that may evict a pod of this tier for its GPUs: none where its GPUs come by DRA."""
    by_dra = without_eviction(pod, facts.devices, facts.eviction, policy)
    return Phrase("evicted-by-nobody") if by_dra else policy.evicted_by(tier)


def evicts_others(tier: Tier | None, live: PriorityClass | None, policy: TierPolicy) -> bool:
    """Tell whether a tier counts on eviction: it may evict, and some tier is below it."""
    if tier is None or live is None or live.preemption_policy == "Never":
        return False
    return any(other.value < tier.value for other in policy.tiers)
