"""What policy says of Kubernetes' own Workload (scheduling.k8s.io): one tier for all of its PodGroup templates."""

from itertools import pairwise

from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import shown
from webhook.objects.scheduling_workloads import SchedulingWorkload
from webhook.policy.assignment.scope import group_concerns, require_metadata_and_spec
from webhook.policy.decide import Decision
from webhook.policy.group_tier import tier_of_group
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy


def decide_scheduling_workload(found: SchedulingWorkload, facts: Facts, policy: TierPolicy) -> Decision | None:
    """The decision on a Workload; None where its owner holds no GPUs and it names no tier."""
    names = tuple(each.priority_class_name for each in found.spec.pod_group_templates)
    wishes = [Pod(metadata=found.metadata, spec=PodSpec(priority_class_name=name)) for name in names]
    if not any(group_concerns(wish, facts, policy) for wish in wishes):
        return None
    require_metadata_and_spec(found)
    return tier_of_group(next((wish for wish in wishes if wish.spec.priority_class_name), wishes[0]), facts, policy)


def class_missing(found: SchedulingWorkload, facts: Facts, policy: TierPolicy) -> str | None:
    """Why no PodGroup can be made of a template whose class does not exist; the API server takes it all the same."""
    for each in found.spec.pod_group_templates:
        if each.priority_class_name and each.priority_class_name not in facts.classes:
            return (
                f"spec.podGroupTemplates: {shown(each.name)} has priorityClassName {shown(each.priority_class_name)}, "
                "which is no PriorityClass, and templates can't be changed later; write that of a tier, one of "
                f"{policy.tiers.names()}"
            )
    return None


def templates_disagree(found: SchedulingWorkload, policy: TierPolicy) -> str | None:
    """Why a Workload can't have one tier: two of its templates name different ones; None where they don't.

    The API server of 1.37 refuses these too, without their names, and that of 1.36 lets them pass.
    """
    naming = [each for each in found.spec.pod_group_templates if each.priority_class_name]
    for one, other in pairwise(naming):
        names = (one.priority_class_name, other.priority_class_name)
        tiers = [policy.tiers.of_class(name) for name in names]
        if names[0] != names[1] and any(tiers) and tiers[0] != tiers[1]:
            return (
                f"spec.podGroupTemplates: {shown(one.name)} has priorityClassName {shown(names[0])}, "
                f"and {shown(other.name)} has {shown(names[1])}; the templates of a Workload share one tier"
            )
    return None


def priority_disagrees(found: SchedulingWorkload, decision: Decision) -> str | None:
    """Why no PodGroup can be made of a template: its priority isn't its class's; None where it is, or is left out."""
    live = decision.live
    for index, each in enumerate(found.spec.pod_group_templates):
        if live is not None and each.priority not in (None, live.value):
            return (
                f"spec.podGroupTemplates[{index}].priority: {each.priority}, but {live.name} is {live.value}; leave it "
                "out: the API server writes it on the PodGroups"
            )
    return None
