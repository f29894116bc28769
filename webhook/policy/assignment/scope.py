"""Which pods are ours. The webhook configuration's matchConditions say the same in CEL."""

from decimal import Decimal

from webhook.objects.pods import Pod, PodGroup
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.classification.classify import classify
from webhook.policy.classification.evidence import Evidence, Trust
from webhook.policy.quota.demand import demand_of, hold_gpus
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Workload


def may_concern(pod: Pod, policy: TierPolicy) -> bool:
    """Whether a pod could be ours, told from the pod alone: else nothing about it is looked up."""
    return (
        _holds_counted(pod, policy)
        or bool(pod.spec.resource_claims)
        or _marked(pod, policy)
        or pod.spec.scheduling_group is not None
        or not policy.kinds.gang_labels.isdisjoint(pod.metadata.labels)
    )


def concerns(pod: Pod, demand: Decimal, facts: Facts, policy: TierPolicy) -> bool:
    """Whether a pod is ours: it holds GPUs, asks for a tier, or belongs to a gang that does."""
    group = facts.group
    return (
        demand > 0
        or _marked(pod, policy)
        or (group is not None and policy.tiers.of_class(group.priority_class_name) is not None)
        or any(hold_gpus(owner.members, policy) for owner in facts.owners)
    )


def group_concerns(group: PodGroup, facts: Facts, policy: TierPolicy) -> bool:
    """Whether a PodGroup is ours: its owner holds GPUs, or it names a tier."""
    named = TIER_LABEL in group.metadata.labels or policy.tiers.of_class(group.spec.priority_class_name) is not None
    return named or any(hold_gpus(owner.members, policy) for owner in facts.owners)


def may_hold_gpus(pod: Pod, policy: TierPolicy) -> bool:
    """Whether a pod asks for GPUs, or for claims of which it can't be told from the pod alone."""
    return bool(pod.spec.resource_claims) or demand_of(pod, (), policy) > 0


def type_of_workload(own: Workload, policy: TierPolicy) -> Evidence | None:
    """The type of a workload as it is applied. Where its operator brings the GPUs unseen, only proof tells."""
    holding = [member.template for member in own.members if may_hold_gpus(member.template, policy)]
    if not holding and not own.brings_gpus:
        return None
    found = classify(holding[0] if holding else Pod(), (own,), policy.kinds)
    seen = holding or own.row.gpu_fields
    return (
        found if found and (seen or Trust.PROOF in (found.trust, found.otherwise and found.otherwise.trust)) else None
    )


def _holds_counted(pod: Pod, policy: TierPolicy) -> bool:
    names = policy.weights.keys()
    return any(
        not names.isdisjoint(container.resources.requests) or not names.isdisjoint(container.resources.limits)
        for _, container in pod.spec.every_container()
    )


def _marked(pod: Pod, policy: TierPolicy) -> bool:
    return TIER_LABEL in pod.metadata.labels or policy.tiers.of_class(pod.spec.priority_class_name) is not None
