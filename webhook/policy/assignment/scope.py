"""Which pods are ours. The webhook configuration's matchConditions say the same in CEL."""

from decimal import Decimal

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.scheduling_workloads import SchedulingWorkload
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Workload


def may_concern(pod: Pod, policy: TierPolicy) -> bool:
    """Whether a pod could be ours, told from the pod alone. If not, nothing about it is looked up."""
    return (
        _holds_counted(pod, policy)
        or bool(pod.spec.resource_claims)
        or any(share.annotation in pod.metadata.annotations for share in policy.shares)
        or names_a_tier(pod, policy)
        or pod.spec.scheduling_group is not None
        or not policy.kinds.gang_labels.isdisjoint(pod.metadata.labels)
    )


def concerns(pod: Pod, demand: Decimal, facts: Facts, policy: TierPolicy) -> bool:
    """Whether a pod is ours: it holds GPUs, asks for a tier, or belongs to a gang that does."""
    group = facts.group
    return (
        demand > 0
        or names_a_tier(pod, policy)
        or (group is not None and policy.tiers.of_class(group.priority_class_name) is not None)
        or gang_with_gpus(facts, policy) is not None
    )


def group_concerns(group: Pod | PodGroup, facts: Facts, policy: TierPolicy) -> bool:
    """Whether a group is ours: its owner holds GPUs, or it names a tier."""
    return gang_with_gpus(facts, policy) is not None or names_a_tier(group, policy)


def names_a_tier(found: Pod | PodGroup, policy: TierPolicy) -> bool:
    """Whether label or class name a tier."""
    return TIER_LABEL in found.metadata.labels or policy.tiers.of_class(found.spec.priority_class_name) is not None


def require_metadata_and_spec(found: Pod | PodGroup | SchedulingWorkload) -> None:
    """Raises Refused where an object lacks one of them: a patch below an absent path fails with a 500."""
    nothing = type(found)()  # what a view holds in the place of an absent half is the same object in each
    for field, half, absent in (("metadata", found.metadata, nothing.metadata), ("spec", found.spec, nothing.spec)):
        if half is absent:
            raise Refused(f"{field}: absent; without it there is nothing to give a tier to")


def gang_with_gpus(facts: Facts, policy: TierPolicy) -> Workload | None:
    """The nearest owner whose pods hold GPUs."""
    return next((owner for owner in facts.owners if hold_gpus(owner.members, policy)), None)


def _holds_counted(pod: Pod, policy: TierPolicy) -> bool:
    names = policy.weights.keys()
    return any(
        not names.isdisjoint(container.resources.requests) or not names.isdisjoint(container.resources.limits)
        for _, container in pod.spec.every_container()
    )
