"""Decides on a workload: on the pods of each template, and on all together."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from webhook.objects.phrase import AdmissionWarning
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import Reason, Refusal, Refused
from webhook.objects.view import at
from webhook.policy.assignment.kueue import QUEUE_NAME, queue_warnings
from webhook.policy.assignment.limits import class_within_ceiling
from webhook.policy.assignment.request import Assignment, names_a_tier, tier_request
from webhook.policy.assignment.steps import type_warnings
from webhook.policy.checkpoint.hook_warnings import HookSubject, hook_warnings
from webhook.policy.checkpoint.job_failures import job_warnings
from webhook.policy.classification.classify import classify
from webhook.policy.decide import Decision, assignment_of, decision_with, eviction_warnings
from webhook.policy.metadata_keys import unknown_keys
from webhook.policy.quota.charges import Charge, GangDemand, gang_of
from webhook.policy.quota.demand import NOTHING, demand_of, refuse_unlisted, unlisted_warnings
from webhook.policy.quota.held_warnings import held_warnings
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Member, Workload, gang_among, has_ended, is_suspended, manager_elsewhere


class WorkloadDecision(msgspec.Struct, frozen=True):
    """The decision on a workload: one on each template that is ours, and warnings.

    `facts` are the workload's own. Those of a template may name a nearer owner, which the workload carries and creates.
    `elsewhere`: another controller than its kind's own makes its pods, maybe in another cluster, so nothing is booked.
    """

    facts: Facts
    decisions: tuple[Decision, ...]
    warnings: tuple[AdmissionWarning, ...]
    gang: GangDemand | None = None
    elsewhere: bool = False

    @property
    def own(self) -> Workload:
        return self.facts.owners[0]

    @property
    def charges(self) -> tuple[Charge, ...]:
        return tuple(each.charge for each in self.decisions if each.charge)

    @property
    def needed(self) -> tuple[Charge, ...]:
        """The charges of the pods that it can't do without, as a gang or singly."""
        return self.gang.charges if self.gang else tuple(each.least.charge for each in self.decisions if each.least)

    @property
    def shared(self) -> frozenset[str]:
        """The ResourceClaims that its pods share, with each other or with others."""
        return frozenset(claim for each in self.decisions if each.charge for claim in each.charge.shared)

    @property
    def saving(self) -> tuple[str, ...]:
        """The names of the containers that a hook lets save before they end."""
        hooks = ((each.tier_request.pod.spec, each.hook.holders) for each in self.decisions if each.hook and each.saves)
        return tuple(dict.fromkeys(spec.containers[index].name for spec, holders in hooks for index in holders))

    @property
    def smallest(self) -> Decimal:
        """The GPUs of its smallest pod; 0 where some are of claims that others may hold already."""
        asked = (each.tier_request for each in self.decisions)
        return min(NOTHING if self.shared else demand_of(each.pod, each.facts.devices, each.policy) for each in asked)

    @property
    def names_node(self) -> bool:
        """Whether any of its pods with GPUs names one: the API server takes no gate with them, so they can't wait."""
        return any(each.charge and each.tier_request.pod.spec.node_name for each in self.decisions)

    @property
    def waits(self) -> bool:
        """Whether any of its pods wait for their turn."""
        tenant = self.facts.tenant
        return tenant is not None and not self.elsewhere and _waits(self.decisions, tenant)

    @property
    def leading(self) -> Decision:
        """The decision that stands for the whole: of what holds most GPUs; of a pipeline's equal steps, what trains."""
        return max(self.decisions, key=_weight)

    @property
    def assignment(self) -> Assignment:
        return self.leading.assignment


def decide_workload(tree: dict[str, Any], facts: Facts, policy: TierPolicy) -> WorkloadDecision | None:
    """The decision on a workload, which is the first of the facts' owners; None where none of its templates is ours."""
    # The class of the whole is held to the ceiling even under our mark, which anybody can write: a scheduler evicts by
    # that class, whatever the pods have.
    field = facts.owners[0].row.class_field
    name = at(tree, field) if field else None
    if isinstance(name, str):
        class_within_ceiling(Pod(spec=PodSpec(priority_class_name=name)), facts, policy)
    elsewhere = manager_elsewhere(tree, facts.owners[0].row) != ""
    if elsewhere or is_suspended(tree):  # who lets it run may choose its nodes
        policy = replace(policy, flavor_unnamed="WhenBound")
    decisions = tuple(_of_templates(facts, policy))
    if not decisions:
        return None
    told = [warning for each in decisions for warning in each.assignment.warnings]
    told += unlisted_in(facts, policy)
    told += _warnings(tree, decisions, facts, elsewhere=elsewhere)
    gang = None if elsewhere or is_suspended(tree) or has_ended(tree) else _gang(decisions, facts)
    if gang is not None:
        _refuse_named_node(facts, decisions)
    decision = WorkloadDecision(facts, decisions, tuple(dict.fromkeys(told)), gang, elsewhere)
    return replace(decision, warnings=decision.warnings + queue_warnings(facts, decision.assignment, policy))


def unlisted_in(facts: Facts, policy: TierPolicy) -> tuple[AdmissionWarning, ...]:
    """Warnings of GPUs in a workload's templates that the policy does not list, also where it is not ours."""
    if made_by_another(facts):
        return ()
    told = (warning for member in facts.owners[0].members for warning in unlisted_warnings(member.template, policy))
    return tuple(dict.fromkeys(told))


def _gang(decisions: tuple[Decision, ...], facts: Facts) -> GangDemand | None:
    """The workload as a gang; None where it is none, or where another is that makes it."""
    if gang_among(facts.owners) is not facts.owners[0]:
        return None
    return gang_of([each.least for each in decisions if each.least])


def _refuse_named_node(facts: Facts, decisions: tuple[Decision, ...]) -> None:
    """Raises Refused for pods of a gang that would not wait: no gate can be on a pod that names its node."""
    if facts.tenant is None or not _waits(decisions, facts.tenant):
        return
    for member in facts.owners[0].members:
        if node := member.template.spec.node_name:
            with _placed(member):
                raise Refused(Reason.INVALID, "gang-names-node", "spec.nodeName", node=node, tenant=facts.tenant.name)


def _of_templates(facts: Facts, policy: TierPolicy) -> Iterator[Decision]:
    """The templates that are ours, as their pods will be judged. Raises Refused also for a class of another one."""
    members = facts.owners[0].members
    demands = [_demand(member, policy) for member in members]
    for member, demand in zip(members, demands, strict=True):
        with _placed(member):
            if any(demands) or names_a_tier(member.template, policy):
                owners = (*member.makers, *facts.owners)
                evidence = classify(member.template, [each for each in owners if not each.place], policy.kinds)
                of_member = structs.replace(facts, devices=member.devices, owners=owners)
                asked = tier_request(member.template, of_member, policy, evidence, holds_gpus=demand > 0)
                yield decision_with(asked, assignment_of(asked), demand, member.count, member.least)
            else:
                class_within_ceiling(member.template, facts, policy)


def _demand(member: Member, policy: TierPolicy) -> Decimal:
    with _placed(member):
        if policy.uncounted == "Refuse":
            refuse_unlisted(member.template, policy)
        return demand_of(member.template, member.devices, policy)


@contextmanager
def _placed(member: Member) -> Iterator[None]:
    """A refused field is one of the template's."""
    try:
        yield
    except Refused as refused:
        raise Refused.of(member.placed(refused.refusal)) from refused


def _weight(decision: Decision) -> tuple[Decimal, bool]:
    evidence = decision.assignment.evidence
    held = decision.charge.gpus if decision.charge else Decimal(0)
    return held, evidence is not None and evidence.type is WorkloadType.TRAINING


def _waits(decisions: tuple[Decision, ...], tenant: Tenant) -> bool:
    """Tells whether any of its pods wait for their turn."""
    charges = (each.charge for each in decisions if each.charge)
    return any(tenant.charges(each.gpus) and tenant.holds_on(each.tier, each.flavor) for each in charges)


def made_by_another(facts: Facts) -> bool:
    """Tells whether another workload makes this one: then a person was told when that was applied."""
    return any(owner.members for owner in facts.owners[1:])


def _warnings(
    tree: dict[str, Any], decisions: tuple[Decision, ...], facts: Facts, *, elsewhere: bool
) -> Iterator[AdmissionWarning]:
    if made_by_another(facts):
        return
    tenant, own = None if elsewhere else facts.tenant, facts.owners[0]
    passed = (owner for each in decisions for owner in each.tier_request.facts.owners if owner.place)
    yield from unknown_keys((own, *(each.tier_request.pod.metadata for each in decisions), *passed))
    if tenant is not None and tenant.rows and not tenant.charged_elsewhere and QUEUE_NAME in own.labels:
        yield AdmissionWarning("two-quotas", tenant=tenant.name)
    if tenant is not None and _waits(decisions, tenant) and not is_suspended(tree):
        yield from held_warnings(tree, own.row)
    yield from _told_by_one_template(decisions, own)
    for each in decisions:
        yield from type_warnings(each.tier_request, each.assignment)
        # The API server refuses pods that ask for other nodes than their namespace gives them, out of sight of the
        # person who applies the workload.
        asked, selector = each.tier_request.pod.spec.node_selector, facts.namespace.selector
        for key in selector.conflicts(each.tier_request.pod) if selector else ():
            value = selector.labels[key] if selector else ""
            yield AdmissionWarning("node-selector", key=key, own=asked[key], value=value)
        yield from eviction_warnings(each)
    hooks = [(each, each.hook) for each in decisions if each.hook]
    for each, hook in hooks:
        yield from hook_warnings(HookSubject(each.tier_request.pod, hook, each.tier_request.policy.checkpoint))
    saving = next((each for each in decisions if each.saves), None)
    if saving is not None:
        adds = saving.tier_request.policy.checkpoint.pod_failure_policy == "Add"
        yield from job_warnings(tree, own.row, adds=adds)


def _told_by_one_template(decisions: tuple[Decision, ...], own: Workload) -> Iterator[AdmissionWarning]:
    """A warning where a template with GPUs gets the tier that another one of its gang names."""
    for each in decisions:
        tier, template = each.assignment.tier, each.assignment.template
        if tier is not None and template and each.tier_request.holds_gpus:
            yield AdmissionWarning("gang-label", template=template, kind=own.kind.kind, tier=tier.name)


def gang_in_two_tiers(decision: WorkloadDecision) -> Refusal | None:
    """The refusal of a gang in which two templates name different tiers; None for any other workload.

    Both are templates that the gang can't do without: spare workers may run in a tier of their own.
    """
    own, decided = decision.own, {id(each.tier_request.pod): each.assignment for each in decision.decisions}
    if gang_among(decision.facts.owners) is not own:
        return None
    first: tuple[str, str] | None = None
    for member in own.members:
        assignment = decided.get(id(member.template))
        if not member.least or assignment is None or assignment.tier is None:
            continue
        if assignment.step not in ("label", "class") or assignment.bearer or assignment.template:
            continue  # neither the template nor what lies between it and its workload names the tier
        field, tier = member.placed_field(assignment.asked), assignment.tier.name
        first = first or (field, tier)
        if tier != first[1]:
            return Refusal(
                Reason.CONTRADICTION,
                "gang-in-two-tiers",
                field,
                tier=tier,
                other=first[0],
                other_tier=first[1],
                kind=own.kind.kind,
            )
    return None
