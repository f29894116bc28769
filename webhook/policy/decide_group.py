"""What policy says of a PodGroup: its tier, and whether a disruption takes all of its pods."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import Reason, Refused, shown
from webhook.objects.scheduling_workloads import PodGroupTemplate
from webhook.policy.assignment.request import Assignment, not_default
from webhook.policy.assignment.scope import group_concerns, require_metadata_and_spec
from webhook.policy.decide import Decision
from webhook.policy.group_tier import tier_of_group
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.warning_texts import said
from webhook.policy.workloads.workload_types import WorkloadType

WITHOUT_PRIORITY = (
    "this cluster keeps no class on a PodGroup: its pods are evicted one by one, whatever disruptionMode says"
)
"""Said on 1.36 without the gate WorkloadAwarePreemption."""


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What is decided of a PodGroup: its tier, and the disruptionMode to write; None where it keeps its own."""

    decision: Decision
    disruption_mode: object | None


def decide_group(
    group: PodGroup,
    facts: Facts,
    policy: TierPolicy,
    template: PodGroupTemplate | None = None,
    usage: Usage | None = None,
    gang_tier: str = "",
) -> GroupDecision | None:
    """The decision on a PodGroup; None where its owner holds no GPUs and nobody names a tier.

    One that nobody says anything about takes the class of the `template` in a Workload that it was made of. It is
    demoted only by a `usage` of the tenant's rows, or to the `gang_tier` of a gang that was.
    """
    ours = group_concerns(group, facts, policy)
    inherited = template.priority_class_name if template and not ours else ""
    if not ours and policy.tiers.of_class(inherited) is None:
        return None
    require_metadata_and_spec(group)
    named = not_default(group.spec.priority_class_name, facts)
    wish = Pod(metadata=group.metadata, spec=PodSpec(priority_class_name=named or inherited))
    decision = tier_of_group(wish, facts, policy, usage, gang_tier)
    if template is not None:
        _like_its_template(decision.assignment, template, policy)
    written = group.mode_is_written or (template is not None and template.disruption_mode is not None)
    keeps = written or group.goes_whole or not _trains(group, decision)
    return GroupDecision(decision, None if keeps else group.whole)


def group_warnings(group: PodGroup, decision: Decision) -> Iterator[str]:
    """What a person should know of a gang, by the PodGroup as it is stored."""
    if group.spec.priority is None:
        yield WITHOUT_PRIORITY
    elif not _trains(group, decision):
        return
    elif not group.goes_whole:
        yield said("gang-in-parts")
    elif group.whole == "PodGroup":
        yield said("gang-broken-by-pods")


def _like_its_template(assignment: Assignment, template: PodGroupTemplate, policy: TierPolicy) -> None:
    """Raises Refused where a group names another tier than its template."""
    tier, theirs = assignment.tier, policy.tiers.of_class(template.priority_class_name)
    if tier is not None and theirs not in (None, tier) and assignment.step in ("label", "class"):
        raise Refused(
            f"{assignment.asked}: {tier.name}, but the template {shown(template.name)} in its Workload has "
            f"priorityClassName {shown(template.priority_class_name)}; a PodGroup has the class of its template: write "
            "that, or leave it out",
            Reason.CONTRADICTION,
        )


def _trains(group: PodGroup, decision: Decision) -> bool:
    """Whether it is a gang of the tier for training, or known to train: what is left of it can't go on."""
    assignment, policy = decision.assignment, decision.tier_request.policy
    evidence, tier = assignment.evidence, assignment.tier
    if group.spec.scheduling_policy.gang is None or tier is None:
        return False
    told = evidence is not None and evidence.type is WorkloadType.TRAINING and evidence.grade >= policy.raise_by
    return told or tier.name == policy.tier_of_type.get(WorkloadType.TRAINING)
