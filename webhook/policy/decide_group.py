"""Decides on a PodGroup, and on the Workload of scheduling.k8s.io whose templates PodGroups are made of.

A group has the tier of its owner's pods, or its own if it has no owner. The scheduler refuses a group whose priority
differs from its pods'. Such a group is refused here, with both names.
"""

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from msgspec import structs

from webhook.objects.group_kind import COMPOSITE_POD_GROUP
from webhook.objects.podgroups import PodGroup, PodGroupTemplate, SchedulingWorkload
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal, Refused
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.assignment.limits import demoted, demoted_to
from webhook.policy.assignment.request import (
    TIER_LABEL,
    gang_with_gpus,
    group_concerns,
    not_default,
    require_metadata_and_spec,
    tier_request,
)
from webhook.policy.assignment.steps import earlier_assignment
from webhook.policy.classification.classify import classify
from webhook.policy.decide import Decision, assignment_of, decision_on_group, decision_with, request_of_member
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.facts import Facts, Group
from webhook.policy.values.tenants import Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Member


def decide_group(
    group: PodGroup,
    facts: Facts,
    policy: TierPolicy,
    model: PodGroupTemplate | Group | None = None,
    usage: Usage | None = None,
    gang_tier: str = "",
) -> Decision | None:
    """Return the decision on a PodGroup; None if its owner holds no GPUs and nobody names a tier.

    The `model` is the CompositePodGroup above it, or else the template in a Workload that it was made of. A group
    without a tier of its own takes the class of its model. It is demoted only by a `usage` of the tenant's rows, or to
    the `gang_tier` of its demoted gang. A PodGroup that is a gang and trains gets the disruptionMode by which all of
    its pods go together, unless somebody wrote one. Raises Refused if the group contradicts its owner or its model.
    """
    parent = model if isinstance(model, Group) else None
    template = None if isinstance(model, Group) else model
    ours = group_concerns(group, facts, policy)
    inherited = model.priority_class_name if model and not ours else ""
    if not ours and policy.tiers.of_class(inherited) is None:
        return None
    require_metadata_and_spec(group)
    named = not_default(group.spec.priority_class_name, facts)
    wish = Pod(metadata=group.metadata, spec=PodSpec(priority_class_name=named or inherited))
    decision = _tier_of_group(wish, facts, policy, class_borne(group), usage, gang_tier)
    assignment, of_model = decision.assignment, policy.tiers.of_class(model.priority_class_name) if model else None
    tier, asked, of_class = assignment.tier, assignment.asked, model.priority_class_name if model else ""
    if template and tier and of_model not in (None, tier) and assignment.step in ("label", "class"):
        name = template.name
        raise Refused(
            Reason.CONTRADICTION, "unlike-template", asked, tier=tier.name, template=name, class_name=of_class
        )
    # The scheduler starts no group of a tree in which one priority differs (1.38 beta: validatePodGroupHierarchy), and
    # a group's class can't be changed.
    if parent and tier != of_model:
        own, above = tier.name if tier else Phrase("without-tier"), of_class or "none"
        raise Refused(Reason.CONTRADICTION, "unlike-parent", asked, tier=own, parent=parent.name, class_name=above)
    written = group.mode_is_written or (template is not None and template.disruption_mode is not None)
    # A CompositePodGroup in mode All may not contain a group with another mode, and such groups may exist already.
    keeps = written or group.goes_whole or not _trains(group, decision) or group.kind == COMPOSITE_POD_GROUP.kind
    return decision if keeps else structs.replace(decision, disruption_mode=group.whole)


def group_warnings(group: PodGroup, decision: Decision) -> Iterator[AdmissionWarning]:
    """Yield the warnings about a gang, by the PodGroup as it is stored."""
    if group.spec.priority is None:
        yield AdmissionWarning("group-without-priority")  # 1.36 without the gate WorkloadAwarePreemption
    elif not _trains(group, decision):
        return
    elif not group.goes_whole:
        yield AdmissionWarning("gang-in-parts")
    elif group.whole == "PodGroup":
        yield AdmissionWarning("gang-broken-by-pods")


def _trains(group: PodGroup, decision: Decision) -> bool:
    """Tell whether a group is a gang of the training tier, or known to train. Such a gang can't go on without a pod."""
    assignment, policy = decision.assignment, decision.tier_request.policy
    evidence, tier = assignment.evidence, assignment.tier
    if group.spec.scheduling_policy.gang is None or tier is None:
        return False
    is_training = evidence is not None and evidence.type is WorkloadType.TRAINING and evidence.grade >= policy.raise_by
    return is_training or tier.name == policy.tier_of_type.get(WorkloadType.TRAINING)


def decide_scheduling_workload(found: SchedulingWorkload, facts: Facts, policy: TierPolicy) -> Decision | None:
    """Return the decision on a Workload; None if its owner holds no GPUs and it names no tier."""
    names = tuple(each.priority_class_name for _, each in found.templates())
    wishes = [Pod(metadata=found.metadata, spec=PodSpec(priority_class_name=name)) for name in names]
    if not any(group_concerns(wish, facts, policy) for wish in wishes):
        return None
    require_metadata_and_spec(found)
    wish = next((wish for wish in wishes if wish.spec.priority_class_name), wishes[0])
    return _tier_of_group(wish, facts, policy, class_borne(wish))


def template_problem(
    found: SchedulingWorkload, live: PriorityClass | None, facts: Facts, policy: TierPolicy
) -> Refusal | None:
    """Return why no PodGroup can be made of one of the templates of a Workload; None if all are right.

    The class of the template does not exist, which the API server accepts. Or its priority is not that of `live`, the
    class of the Workload's tier.
    """
    reason, tiers = Reason.CONTRADICTION, policy.tiers.names()
    for field, each in found.templates():
        name = each.priority_class_name
        if name and name not in facts.classes:
            return Refusal(reason, "template-class-unknown", field, template=each.name, class_name=name, tiers=tiers)
    for path, each in found.templates():
        field, there = f"{path}.priority", each.priority
        if live is not None and there not in (None, live.value):
            return Refusal(reason, "template-priority", field, priority=there, name=live.name, value=live.value)
    return None


def templates_disagree(found: SchedulingWorkload, policy: TierPolicy) -> Refusal | None:
    """Return why a Workload can't have one tier: two of its templates name different ones; None if they don't.

    The API server of 1.37 refuses these too, without their names, and that of 1.36 accepts them.
    """
    naming = [(field, each.name, each.priority_class_name) for field, each in found.templates()]
    for (_, one, its), (field, other, others) in pairwise(each for each in naming if each[2]):
        tiers = policy.tiers.of_class(its), policy.tiers.of_class(others)
        if its != others and any(tiers) and tiers[0] != tiers[1]:
            return Refusal(
                Reason.CONTRADICTION, "templates-differ", field, one=one, its_class=its, other=other, other_class=others
            )
    return None


def _tier_of_group(
    wish: Pod, facts: Facts, policy: TierPolicy, borne: str, usage: Usage | None = None, gang_tier: str = ""
) -> Decision:
    """Return the decision on a group; `wish` is its own request, written as a pod, `borne` its class.

    It is demoted as its pods would be: by a `usage` of the tenant's rows, or to the `gang_tier`. Raises Refused if it
    asks for another tier than its owner's pods have.
    """
    own = tier_request(wish, facts, policy, classify(wish, facts.owners, policy.kinds), holds_gpus=False)
    owner = gang_with_gpus(facts, policy)
    if owner is None:
        return decision_on_group(own, assignment_of(own))
    member = max(owner.members, key=lambda each: _demands(each, policy))
    theirs = request_of_member(member, facts, policy, holds_gpus=True)
    # A group that our earlier pass demoted gets the same again.
    written, assignment = read_assigned_by(wish.metadata.annotations), None
    if written is not None and written.demoted_from:
        marked = structs.replace(theirs, label=own.label, class_name=own.class_name)
        assignment = earlier_assignment(marked, written, borne)
    # Any other group gets the assignment of the owner's pods, and may name no other tier.
    if assignment is None:
        assignment, tier = assignment_of(theirs), policy.tiers.of_class(own.class_name)
        named = [(f"metadata.labels[{TIER_LABEL}]", own.label, own.label)] if own.label is not None else []
        if tier is not None and own.class_name != theirs.pod.spec.priority_class_name:  # its source
            named.append(("spec.priorityClassName", own.class_name, tier.name))
        due, reason = assignment.tier.name if assignment.tier else None, assignment.reason
        for field, text, name in named:
            if name != due:
                maker, there = str(owner), due or Phrase("without-tier")
                raise Refused(
                    Reason.CONTRADICTION, "unlike-owner", field, written=text, owner=maker, tier=there, reason=reason
                )
        assignment = demoted_to(gang_tier, assignment, theirs)
    if usage is not None:
        # The assignment of all pods of a template, by the room that their tenant has.
        charge = decision_with(theirs, assignment, _demands(member, theirs.policy)[1], member.count).charge
        assignment = demoted(assignment, charge, usage, theirs) if charge else assignment
    return decision_on_group(theirs, assignment)


def _demands(member: Member, policy: TierPolicy) -> tuple[Decimal, Decimal]:
    """Return the GPUs of all pods of a template, then of one pod, which decides if the template has no pods now."""
    demand = demand_of(member.template, member.devices, policy)
    return demand * member.count, demand
