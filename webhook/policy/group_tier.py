"""The tier of a group of pods, a PodGroup or a Workload: that of its owner's pods where it has one, else its own.

The scheduler refuses a group whose priority isn't that of its pods, so two that differ are refused here, each by name.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused, shown
from webhook.policy.assignment.demotion import demoted, demoted_to
from webhook.policy.assignment.reinvocation import demoted_from, earlier_assignment
from webhook.policy.assignment.request import ASSIGNED_BY, TIER_LABEL, Assignment, TierRequest, tier_request
from webhook.policy.assignment.scope import gang_with_gpus
from webhook.policy.classification.classify import classify
from webhook.policy.decide import Decision, assignment_of, decision_on_group, decision_with
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Member, Workload


def tier_of_group(
    wish: Pod, facts: Facts, policy: TierPolicy, usage: Usage | None = None, gang_tier: str = ""
) -> Decision:
    """The decision on a group; `wish` is what it asks for itself, written as a pod.

    It is demoted as its pods would be: by a `usage` of the tenant's rows, or to the `gang_tier`. Raises Refused where
    it asks for another tier than its owner's pods have.
    """
    own = tier_request(wish, facts, policy, classify(wish, facts.owners, policy.kinds), holds_gpus=False)
    owner = gang_with_gpus(facts, policy)
    if owner is None:
        return decision_on_group(own, assignment_of(own))
    member = max(owner.members, key=lambda each: _held(each, policy))
    theirs = _of_its_pods(member, facts, policy)
    assignment = _demoted_before(own, theirs) or demoted_to(gang_tier, _shared(own, theirs, owner), theirs)
    if usage is not None:
        assignment = _demoted(assignment, theirs, member, usage)
    return decision_on_group(theirs, assignment)


def _of_its_pods(member: Member, facts: Facts, policy: TierPolicy) -> TierRequest:
    """What the pods of a template ask for."""
    evidence = classify(member.template, facts.owners, policy.kinds)
    return tier_request(member.template, replace(facts, devices=member.devices), policy, evidence, holds_gpus=True)


def _demoted(assignment: Assignment, theirs: TierRequest, member: Member, usage: Usage) -> Assignment:
    """The assignment of all pods of a template, as their tenant has room for them."""
    charge = decision_with(theirs, assignment, _held(member, theirs.policy)[1], member.count).charge
    return demoted(assignment, charge, usage, theirs) if charge else assignment


def _demoted_before(own: TierRequest, theirs: TierRequest) -> Assignment | None:
    """The assignment of an earlier pass of ours, if it was demoted in that."""
    annotations = own.pod.metadata.annotations
    if not demoted_from(annotations):
        return None
    marked = replace(theirs, label=own.label, class_name=own.class_name)
    return earlier_assignment(marked, annotations[ASSIGNED_BY])


def _shared(own: TierRequest, theirs: TierRequest, owner: Workload) -> Assignment:
    """The assignment of the owner's pods. Raises Refused where the group names another tier."""
    assignment = assignment_of(theirs)
    for field, named, tier in _named(own, theirs):
        if tier != (assignment.tier.name if assignment.tier else None):
            raise _unlike_its_owner(f"{field}: {shown(named)}", owner, assignment)
    return assignment


def _held(member: Member, policy: TierPolicy) -> tuple[Decimal, Decimal]:
    """The GPUs of all its pods, then of one: there may be none of them now."""
    demand = demand_of(member.template, member.devices, policy)
    return demand * member.count, demand


def _named(own: TierRequest, theirs: TierRequest) -> Iterator[tuple[str, str, str | None]]:
    """Where a group names a tier, what it writes, and which tier that is. A class of its pods is copied from them."""
    tier = own.policy.tiers.of_class(own.class_name)
    if own.label is not None:
        yield f"metadata.labels[{TIER_LABEL}]", own.label, own.label
    if tier is not None and own.class_name != theirs.pod.spec.priority_class_name:
        yield "spec.priorityClassName", own.class_name, tier.name


def _unlike_its_owner(written: str, owner: Workload, assignment: Assignment) -> Refused:
    tier = assignment.tier.name if assignment.tier else "without a tier"
    return Refused(
        f"{written}, but the pods of its owner {owner} are {tier} ({assignment.reason}); a group and its pods share "
        "one tier: write theirs, or leave it out",
        Reason.CONTRADICTION,
    )
