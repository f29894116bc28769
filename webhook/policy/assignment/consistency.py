"""Whether what stands on a pod agrees with its tier: label, class, priority, preemption policy."""

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier


def disagreement(pod: Pod, tier: Tier, live: PriorityClass) -> str | None:
    """Why a pod, as it would be stored, does not bear its tier; None where all agree."""
    spec = pod.spec
    checks = (
        (f"metadata.labels[{TIER_LABEL}]", pod.metadata.labels.get(TIER_LABEL), tier.name),
        ("spec.priorityClassName", spec.priority_class_name or None, live.name),
        ("spec.priority", spec.priority, live.value),
        ("spec.preemptionPolicy", spec.preemption_policy, live.preemption_policy),
    )
    wrong = [
        f"{field} is {there if there is not None else 'absent'}, not {due}"
        for field, there, due in checks
        if there != due
    ]
    if not wrong:
        return None
    return (
        f"tier {tier.name} was not applied ({'; '.join(wrong)}): another webhook changed the pod after "
        "gpu-tiers, or the mutating webhook was not reached. Create it again; if that fails, tell your platform team"
    )


def group_disagreement(group: PodGroup, tier: Tier, live: PriorityClass) -> str | None:
    """Why a PodGroup, as it would be stored, does not bear its tier; None where all agree, or it can bear none."""
    if group.spec.priority is None or (group.spec.priority_class_name, group.spec.priority) == (live.name, live.value):
        return None
    return (
        f"tier {tier.name} was not applied to this PodGroup (spec.priorityClassName is "
        f'"{group.spec.priority_class_name}", spec.priority is {group.spec.priority}): the mutating webhook was not '
        "reached. Create it again; if that fails, tell your platform team"
    )


def drift(old: Pod, new: Pod, policy: TierPolicy) -> str | None:
    """Why a changed tier label is refused on an existing pod; None where it did not change or now says the truth."""
    before, after = old.metadata.labels.get(TIER_LABEL), new.metadata.labels.get(TIER_LABEL)
    tier = policy.tiers.of_class(new.spec.priority_class_name)
    truth = tier.name if tier else None
    if after in (before, truth) or new.metadata.deletion_timestamp:
        return None
    return (
        f"metadata.labels[{TIER_LABEL}]: {after or 'absent'}, but this pod runs "
        f"{f'as {truth}' if truth else 'without a tier'}; a pod's tier is fixed when it is created: "
        "delete the pod and create it again with the label"
    )
