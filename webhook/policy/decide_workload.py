"""Decides on a workload: on the pods of each template, on all together, and on their fit in the tenant's quota."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal, Refused
from webhook.objects.view import at
from webhook.policy.assignment.consistency import outranked_workload
from webhook.policy.assignment.kueue import QUEUE_NAME, queue_warnings
from webhook.policy.assignment.limits import acceptable, class_within_ceiling, demotable_to
from webhook.policy.assignment.request import TIER_LABEL, Assignment, names_a_tier
from webhook.policy.assignment.steps import type_warnings
from webhook.policy.checkpoint.hook_warnings import hook_warnings
from webhook.policy.checkpoint.job_failures import job_warnings
from webhook.policy.decide import Decision, assignment_of, decision_with, eviction_warnings, request_of_member
from webhook.policy.devices import evicted_by
from webhook.policy.metadata_keys import unknown_keys
from webhook.policy.quota.charges import (
    Charge,
    GangDemand,
    QuotaVerdict,
    Shortfall,
    alternatives,
    gang_of,
    row_usage,
    together,
)
from webhook.policy.quota.demand import NOTHING, demand_of, refuse_unlisted, unlisted_warnings
from webhook.policy.quota.native_quotas import NativeQuota, native_rooms
from webhook.policy.quota.queue_status import hold_warnings
from webhook.policy.quota.refusals import Applied, drawn, fit_over_quota, growth_warnings, no_room_for_gang, whole_fit
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tier_policy import EVICTED_BY_NOBODY, TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Member, Workload, gang_among, has_ended, is_suspended, manager_elsewhere


class WorkloadDecision(msgspec.Struct, frozen=True):
    """The decision on a workload: one on each template that is ours, and warnings.

    `facts` are the workload's own. Those of a template may name a nearer owner, which the workload contains and
    creates. `elsewhere`: another controller makes its pods, maybe in another cluster, so nothing is booked.
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
        """Return the charges of the pods that it needs, as a gang or singly."""
        return self.gang.charges if self.gang else tuple(each.least.charge for each in self.decisions if each.least)

    @property
    def shared(self) -> frozenset[str]:
        """Return the ResourceClaims that its pods share, with each other or with others."""
        return frozenset(claim for each in self.decisions if each.charge for claim in each.charge.shared)

    @property
    def saving(self) -> tuple[str, ...]:
        """Return the names of the containers that a hook lets save before they end."""
        hooks = ((each.tier_request.pod.spec, each.hook.holders) for each in self.decisions if each.hook and each.saves)
        return tuple(dict.fromkeys(spec.containers[index].name for spec, holders in hooks for index in holders))

    @property
    def smallest(self) -> Decimal:
        """Return the GPUs of its smallest pod; 0 if other pods may use some of its claims already."""
        asked = (each.tier_request for each in self.decisions)
        return min(NOTHING if self.shared else demand_of(each.pod, each.facts.devices, each.policy) for each in asked)

    @property
    def waits(self) -> bool:
        """Tell whether any of its pods are queued."""
        tenant = self.facts.tenant
        return tenant is not None and not self.elsewhere and _waits(self.decisions, tenant)

    @property
    def leading(self) -> Decision:
        """Return the decision that represents the workload: with the most GPUs, and among equals one that trains."""

        def weight(decision: Decision) -> tuple[Decimal, bool]:
            evidence = decision.assignment.evidence
            trains = evidence is not None and evidence.type is WorkloadType.TRAINING
            return decision.charge.gpus if decision.charge else NOTHING, trains

        return max(self.decisions, key=weight)

    @property
    def assignment(self) -> Assignment:
        return self.leading.assignment

    @property
    def demotable(self) -> list[Tier]:
        """Return the lower tiers to which it may be demoted, in the order of choice."""
        return demotable_to(self.assignment.tier, self.decisions[0].tier_request)

    def contradiction(self) -> Refusal | None:
        """Return the refusal of a gang in which two templates name different tiers, or of a KAI label above its pods.

        The gang needs both templates. Spare workers may run in a tier of their own.
        """
        own, decided = self.own, {id(each.tier_request.pod): each.assignment for each in self.decisions}
        first: tuple[str, str] | None = None
        for member in own.members if gang_among(self.facts.owners) is own else ():
            assignment = decided.get(id(member.template))
            if not member.least or assignment is None or assignment.tier is None:
                continue
            if assignment.step not in ("label", "class") or assignment.bearer or assignment.template:
                continue  # neither the template nor what lies between it and its workload names the tier
            field, tier = member.placed_field(assignment.asked), assignment.tier.name
            first = first or (field, tier)
            if tier != first[1]:
                (other, its), kind = first, own.kind.kind
                return Refusal(
                    Reason.CONTRADICTION, "gang-in-two-tiers", field, tier=tier, other=other, other_tier=its, kind=kind
                )
        return outranked_workload(own, self.leading.live, self.facts)

    def fit(self, usage: Usage, reserved: Usage, *, starts: bool) -> QuotaVerdict:
        """Return how a workload fits its tenant's quota. Only limits count for one that does not start now.

        `usage` leaves out the claims that it shares. A workload whose pods are made elsewhere asks for nothing here.
        `reserved` is the part of the usage that is reserved for the tenant's queue.
        """
        tenant, row, gang = self.facts.tenant, self.own.row, self.gang
        if tenant is None or tenant.charged_elsewhere or self.elsewhere:
            return QuotaVerdict()
        charges, applied = self.charges, self._applied(tenant, usage, reserved)
        # 1. A gang is judged by all of its pods, any other workload by those that it needs. The rest gets warnings.
        is_elastic = together(charges) != together(self.needed)
        at_once, limits = row.at_once or is_elastic or bool(gang), not starts or bool(gang and not self.waits)
        least = whole_fit(self.needed, tenant, applied, at_once=at_once, wished=charges, limits_only=limits)

        # 2. Pods that are booked singly may be demoted, so only the rows of every tier bound them.
        lowered = tuple(self._lowered(tenant, usage, reserved)) if tenant.demotes and starts else ()
        if least.refusal or not (lowered or is_elastic):
            return least
        bounding, at_once = (tenant.bounding_every_tier(), row.at_once) if lowered else (tenant, not self.own.in_stages)
        rest = whole_fit(charges, bounding, applied, at_once=at_once, strict=False, limits_only=not starts)
        return replace(rest, warnings=lowered + rest.warnings)

    def _lowered(
        self, tenant: Tenant, usage: Usage, reserved: Usage, before: Sequence[Charge] = ()
    ) -> Iterator[AdmissionWarning]:
        """Warn of pods that are booked singly and run in a lower tier, because a tier's row has no room for them.

        A workload that grows is judged by the pods beyond `before`.
        """
        own, asked = self.own, self.leading.tier_request
        one = self.leading.least.gpus if self.leading.least else Decimal(0)
        for row, charge in drawn(() if self.gang else self.charges, tenant, at_once=own.row.at_once):
            used = usage.get(row, Decimal(0))
            more = charge.gpus - together(each for each in before if row.counts(each.tier, each.flavor))
            short = Shortfall(replace(charge, gpus=one or more), row, usage)
            exceeds = row.tier and more > 0 and used + more > row.hard
            lower = next(self.lower_tiers(short), None) if exceeds else None
            if lower is not None:
                yield AdmissionWarning(
                    "more-demoted" if before else "some-demoted",
                    tenant=tenant.name,
                    row=row_usage(row, usage, reserved),
                    what=f"this {own.kind}",
                    gpus=more,
                    those=Phrase("all-lowered" if row.spent else "some-lowered"),
                    tier=lower.name,
                    evicted=evicted_by(lower, asked.pod, asked.facts, asked.policy),
                )

    def growth(self, before: "WorkloadDecision | None", usage: Usage, reserved: Usage) -> tuple[AdmissionWarning, ...]:
        """Return warnings if a workload grows beyond the room that its singly booked pods have now."""
        tenant, own = self.facts.tenant, self.own
        booked = self.gang.charges if self.gang else ()
        if tenant is None or not own.row.at_once or together(self.charges) == together(booked):
            return ()
        was = before.charges if before else ()
        lowered = tuple(self._lowered(tenant, usage, reserved, was)) if tenant.demotes else ()
        bounding = tenant.bounding_every_tier() if lowered else tenant
        applied = self._applied(tenant, usage, reserved)
        return (*lowered, *growth_warnings(self.charges, was, bounding, applied))

    def relabelled(self, before: "WorkloadDecision") -> Iterator[AdmissionWarning]:
        """Warn that existing pods keep their tier, if a changed label gives another one to the same templates."""
        own, was = self.own, before.own
        if own.labels.get(TIER_LABEL) == was.labels.get(TIER_LABEL) or not any(each.count for each in was.members):
            return
        both = zip(self.decisions, before.decisions, strict=False)
        pairs = ((each.assignment.tier, old.assignment.tier) for each, old in both)
        if tiers := tuple(dict.fromkeys(tier.name for tier, old in pairs if tier is not None and tier != old)):
            yield AdmissionWarning("tier-for-new-pods", kind=own.kind.kind, tier=tiers)

    def _applied(self, tenant: Tenant, usage: Usage, reserved: Usage) -> Applied:
        # A pod that names its node can't be queued, because it takes no gate.
        names_node = any(each.charge and each.tier_request.pod.spec.node_name for each in self.decisions)
        return Applied(
            what=f"{'each pod of ' if self.own.row.while_queued.on_every_node else ''}this {self.own.kind}",
            usage=usage,
            reserved=reserved,
            tiers=acceptable(self.decisions[0].tier_request),
            lower=self.demotable if tenant.demotes else (),
            smallest=self.smallest,
            can_wait=not (tenant.has_queue and names_node),
            recurs=self.own.row.recurs,
            whole=self.gang is not None,
        )

    def counted_while_queued(self, quotas: Iterable[NativeQuota]) -> Iterator[AdmissionWarning]:
        """Warn of the first ResourceQuota that counts its pods, also while they are queued."""
        for quota, each in product(quotas, () if made_by_another(self.facts) else self.decisions):
            asked, tier = each.tier_request, each.assignment.tier
            if tier is not None and tier.name in native_rooms(asked.pod, NOTHING, (quota,), asked.policy):
                yield AdmissionWarning("queued-counted", quota=quota.name)
                return

    def gang_fit(self, gang: GangDemand, tenant: Tenant, short: Shortfall) -> QuotaVerdict:
        """Return the refusal of a gang whose charge falls short, or a warning if its tenant wants only that."""
        tiers, what = acceptable(self.decisions[0].tier_request), f"{self.own.kind} {self.own.name}"
        floor = together(self.charges) > together(self.needed)
        return fit_over_quota(no_room_for_gang(gang, short, tenant, tiers, what, floor=floor), tenant, short.row)

    def lower_tiers(self, short: Shortfall) -> Iterator[Tier]:
        """Yield the tiers with room that a workload over quota may be demoted to, in the order of choice."""
        tenant = self.facts.tenant
        if tenant is not None and tenant.action(short.row) == "Demote":
            yield from (tier for tier, _ in alternatives(short.charge, tenant, short.usage, self.demotable))


def decide_workload(tree: dict[str, Any], facts: Facts, policy: TierPolicy) -> WorkloadDecision | None:
    """Return the decision on a workload, the first of the facts' owners; None if none of its templates is ours."""
    # The ceiling bounds the class of the whole even under our mark, which anybody can write, because a scheduler evicts
    # by that class, whatever the pods have.
    field = facts.owners[0].row.class_field
    name = at(tree, field) if field else None
    if isinstance(name, str):
        class_within_ceiling(Pod(spec=PodSpec(priority_class_name=name)), facts, policy)
    elsewhere = manager_elsewhere(tree, facts.owners[0].row) != ""
    if elsewhere or is_suspended(tree):  # whoever resumes it may choose its nodes
        policy = replace(policy, flavor_unnamed="WhenBound")
    decisions = tuple(_of_templates(facts, policy))
    if not decisions:
        return None
    warnings = [warning for each in decisions for warning in each.assignment.warnings]
    warnings += unlisted_in(facts, policy)
    warnings += _warnings(tree, decisions, facts, elsewhere=elsewhere)
    # Another workload may be the gang, and make this one.
    whole = gang_among(facts.owners) is facts.owners[0] and not (elsewhere or is_suspended(tree) or has_ended(tree))
    gang = gang_of([each.least for each in decisions if each.least]) if whole else None
    # A pod that names its node takes no gate, so such pods of a gang would not be queued.
    if gang is not None and facts.tenant is not None and _waits(decisions, facts.tenant):
        for member in facts.owners[0].members:
            if node := member.template.spec.node_name:
                with _placed(member):
                    tenant = facts.tenant.name
                    raise Refused(Reason.INVALID, "gang-names-node", "spec.nodeName", node=node, tenant=tenant)
    decision = WorkloadDecision(facts, decisions, tuple(dict.fromkeys(warnings)), gang, elsewhere)
    return replace(decision, warnings=decision.warnings + queue_warnings(facts, decision.assignment, policy))


def unlisted_in(facts: Facts, policy: TierPolicy) -> tuple[AdmissionWarning, ...]:
    """Return warnings of GPUs in a workload's templates that the policy does not list, even if it is not ours."""
    if made_by_another(facts):
        return ()
    warnings = (warning for member in facts.owners[0].members for warning in unlisted_warnings(member.template, policy))
    return tuple(dict.fromkeys(warnings))


def _of_templates(facts: Facts, policy: TierPolicy) -> Iterator[Decision]:
    """Yield the decisions on templates that are ours.

    Raises Refused naming the template's field, also if the class of another template is above the ceiling.
    """
    members, demands = facts.owners[0].members, list[Decimal]()
    for member in members:
        with _placed(member):
            if policy.uncounted == "Refuse":
                refuse_unlisted(member.template, policy)
            demands.append(demand_of(member.template, member.devices, policy))
    for member, demand in zip(members, demands, strict=True):
        with _placed(member):
            if any(demands) or names_a_tier(member.template, policy):
                asked = request_of_member(member, facts, policy, holds_gpus=demand > 0)
                yield decision_with(asked, assignment_of(asked), demand, member.count, member.least)
            else:
                class_within_ceiling(member.template, facts, policy)


@contextmanager
def _placed(member: Member) -> Iterator[None]:
    """Report a refused field of a pod as the field of its template."""
    try:
        yield
    except Refused as refused:
        raise Refused.of(member.placed(refused.refusal)) from refused


def _waits(decisions: tuple[Decision, ...], tenant: Tenant) -> bool:
    """Tell whether the tenant queues any pods of these decisions."""
    charges = (each.charge for each in decisions if each.charge)
    return any(tenant.charges(each.gpus) and tenant.holds_on(each.tier, each.flavor) for each in charges)


def made_by_another(facts: Facts) -> bool:
    """Tell whether another workload makes this one. Its author was warned when the other one was applied."""
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
        yield from hold_warnings(tree, own.row)
    for each in decisions:  # a template with GPUs may get the tier that another template of its gang names
        tier, template = each.assignment.tier, each.assignment.template
        if tier is not None and template and each.tier_request.holds_gpus:
            yield AdmissionWarning("gang-label", template=template, kind=own.kind.kind, tier=tier.name)
    for each in decisions:
        yield from type_warnings(each.tier_request, each.assignment)
        # The API server refuses pods that ask for other nodes than their namespace gives them, and the person who
        # applies the workload would not see that.
        asked = each.tier_request.pod.spec.node_selector
        for key, value in facts.namespace.selector.items():
            if asked.get(key, value) != value:
                yield AdmissionWarning("node-selector", key=key, own=asked[key], value=value)
        yield from eviction_warnings(each)
    for each in decisions:
        if each.hook:
            yield from hook_warnings(each.tier_request.pod, each.hook, each.tier_request.policy.checkpoint)
    # A Job that saves gets a podFailurePolicy. Any other Job fails for good after some evictions, and loses all work.
    saving = next((each for each in decisions if each.saves), None)
    if saving is not None or any(map(_may_be_evicted, decisions)):
        adds = saving is not None and saving.tier_request.policy.checkpoint.pod_failure_policy == "Add"
        yield from job_warnings(tree, own.row, adds=adds)


def _may_be_evicted(decision: Decision) -> bool:
    """Tell whether a higher tier may evict its pods for their GPUs."""
    asked, tier = decision.tier_request, decision.assignment.tier
    if tier is None or not asked.holds_gpus:
        return False
    return evicted_by(tier, asked.pod, asked.facts, asked.policy) != EVICTED_BY_NOBODY
