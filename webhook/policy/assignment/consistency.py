"""Whether what stands on a pod agrees with its tier: label, class, priority, preemption policy; never changes it."""

from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier, class_in_force, classes_of


def live_class(tier: Tier, request: TierRequest) -> PriorityClass:
    """The PriorityClass that pods of a tier get now, as it is in the cluster. Raises Refused where it is missing."""
    name = class_in_force(tier, adoption=request.policy.adoption)
    live = request.facts.classes.get(name)
    if live is None:
        raise Refused(
            f"PriorityClass/{name} of tier {tier.name} does not exist; your platform team restores it with helm upgrade"
        )
    wanted = next(each for each in classes_of(tier) if each.name == name)
    for field, there, due in (
        ("value", live.value, wanted.value),
        ("preemptionPolicy", live.preemption_policy, wanted.preemption_policy),
    ):
        if there != due:
            raise Refused(
                f"PriorityClass/{name} has {field} {there}, but the policy says {due} for tier {tier.name}; "
                "your platform team has to bring the two together"
            )
    return live


def disagreement(pod: Pod, assignment: Assignment, request: TierRequest) -> str | None:
    """Why a pod, as it would be stored, does not bear its assignment; None where all agree."""
    if assignment.tier is None:
        return None
    live = live_class(assignment.tier, request)
    spec = pod.spec
    checks = (
        (f"metadata.labels[{TIER_LABEL}]", pod.metadata.labels.get(TIER_LABEL), assignment.tier.name),
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
        f"tier {assignment.tier.name} was not applied ({'; '.join(wrong)}): another webhook changed the pod after "
        "gpu-tiers, or the mutating webhook was not reached. Create it again; if it stays, tell your platform team"
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
