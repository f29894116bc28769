"""Bounds the tier of a workload by its type and its tenant's ceiling and quota, and the class of any other pod.

A tier that a person asked for and may not have is Refused. A tier that we chose is lowered, with a warning. A pod over
its tenant's quota runs at a lower tier, if the tenant asks for that. Type and ceiling bound a lower tier too.
"""

from collections.abc import Iterable

from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refused, shown
from webhook.policy.assignment.request import (
    TIER_LABEL,
    UNTIERED_LABEL,
    Assignment,
    TierRequest,
    not_default,
    tier_request,
)
from webhook.policy.quota.charges import Charge, alternatives, lent_tiers, never_fits, shortfall
from webhook.policy.quota.demand import NOTHING, gpus_of_pods, shared_by, used_gpus
from webhook.policy.values.facts import Facts, Namespace
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.policy.values.tier_policy import Grade, TierPolicy
from webhook.policy.values.tiers import Tier

EXPLICIT = ("group", "label", "class")
"""The steps by which a tenant names a tier. A rule is not among them, because the platform team writes it."""


def requires_a_tier(namespace: Namespace, policy: TierPolicy) -> str:
    """Return who requires that somebody names a tier, the namespace or the policy; "" if gpu-tiers may choose one."""
    if namespace.labels.get(UNTIERED_LABEL, "").lower() == "refuse":
        return f"namespace {namespace.name}"
    return "the policy" if policy.untiered == "Refuse" else ""


def within_limits(assignment: Assignment, asked: TierRequest) -> Assignment:
    """Return the assignment, lowered if we chose a tier above the ceiling, with the warnings of its limits.

    Raises Refused if a person named a tier that is not allowed, if a class outside the tiers is above the ceiling, if
    a named tier or a tenant is required and there is none, or if no lower tier is allowed.
    """
    tenant, tier, namespace, evidence = asked.facts.tenant, assignment.tier, asked.facts.namespace, asked.evidence
    # 1. If a choice is required, somebody has to make it. A member without GPUs follows its gang.
    if asked.holds_gpus and not assignment.asked and (who := requires_a_tier(namespace, asked.policy)):
        tiers = _names(acceptable(asked))
        raise Refused(Reason.UNTIERED, "no-tier-named", who=who, label=TIER_LABEL, tiers=tiers)

    # 2. The type bounds what a tenant may name, with or without a tenant.
    bound = allowed_by_type(asked) if evidence and tier and assignment.step in EXPLICIT else None
    if evidence and tier and bound is not None and tier.name not in bound:
        field, of_type, clue, tiers = assignment.asked, evidence.type, evidence.text, _names(acceptable(asked))
        raise Refused(
            Reason.WORKLOAD_TYPE, "tier-not-for-type", field, tier=tier.name, type=of_type, clue=clue, tiers=tiers
        )
    if tenant is None:
        if not asked.holds_gpus and tier is None:
            return assignment
        match asked.policy.namespaces_without_tenant:
            case "Deny":
                removable = not asked.holds_gpus and assignment.step in EXPLICIT
                way_out = Phrase("remove-or-ask", asked=assignment.asked) if removable else Phrase("ask-for-tenant")
                raise Refused(Reason.NO_TENANT, "without-tenant", namespace=namespace.name, way_out=way_out)
            case "Warn":
                warning = AdmissionWarning("namespace-without-tenant", namespace=namespace.name)
                return structs.replace(assignment, warnings=(*assignment.warnings, warning))
        return assignment

    # 3. The ceiling bounds a class outside the tiers by its value, and a tier by its name.
    if tier is None:
        _other_class_within(tenant, asked)
        return assignment
    if tenant.may_use(tier, asked.policy.tiers):
        return assignment
    if assignment.asked:
        allowance, field = _allowance(tenant, asked), assignment.asked
        raise Refused(
            Reason.CEILING, "tier-above-ceiling", field, tier=tier.name, tenant=tenant.name, allowance=allowance
        )
    return _lowered(assignment, tier, tenant, asked)


def class_within_ceiling(pod: Pod, facts: Facts, policy: TierPolicy) -> None:
    """Raise Refused if the class of a pod that isn't ours is above its tenant's ceiling.

    Such a pod could evict pods with GPUs to get their CPU. The rule holds whatever `unmanagedClasses` says, because
    that setting is about pods that get a tier. It also holds for a class that evicts nobody, because its pods are
    scheduled first and evicted last. An unknown class passes: it was just created, or is in none of the files of a
    `review`.
    """
    name = not_default(pod.spec.priority_class_name, facts)  # not class_asked(): our mark is forged on such a pod
    asked = structs.replace(tier_request(pod, facts, policy, None, holds_gpus=False), class_name=name)
    if facts.tenant is not None and asked.class_name in facts.classes:
        _other_class_within(facts.tenant, asked)


def acceptable(asked: TierRequest) -> list[Tier]:
    """Return the tiers that the workload may name, by its type and its tenant, the highest first."""
    allowed, tenant = allowed_by_type(asked), asked.facts.tenant
    mine = allowed_tiers(tenant, asked.policy) if tenant else asked.policy.tiers
    return [tier for tier in mine if allowed is None or tier.name in allowed]


def charge_of_all(asked: TierRequest, charge: Charge) -> Charge:
    """Return the charge of all pods that its outermost known owner needs, or of the pod if that is more.

    If its templates run one after another, only the largest counts. The label of a workload is judged by all of its
    pods.
    """
    owner, policy = next((each for each in reversed(asked.facts.owners) if each.members), None), asked.policy
    of_templates = [
        gpus_of_pods(each.least, used_gpus(each.template, each.devices, policy), shared_by(each.devices, policy))
        for each in (owner.members if owner else ())
    ]
    in_all = (sum if owner and owner.row.at_once else max)((*of_templates, NOTHING))
    return structs.replace(charge, gpus=max(in_all, charge.gpus), shared={})


def open_tiers(asked: TierRequest, charge: Charge | None) -> list[Tier]:
    """Return the tiers that the workload may name, without those whose rows can never fit all of its pods.

    A tenant that demotes or only warns gets all of them.
    """
    tenant, tiers = asked.facts.tenant, acceptable(asked)
    if tenant is None or charge is None or tenant.on_exceed not in ("Deny", "Hold"):
        return tiers
    whole = charge_of_all(asked, charge)
    return [each for each in tiers if never_fits(structs.replace(whole, tier=each.name), tenant) is None]


def allowed_tiers(tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """Return the tiers within a tenant's ceiling, the highest first."""
    return [tier for tier in policy.tiers if tenant.may_use(tier, policy.tiers)]


def allowed_by_type(asked: TierRequest) -> tuple[str, ...] | None:
    """Return the tiers that workloads of this type may name; None if nothing bounds them.

    Only Proven and Shown evidence binds.
    """
    evidence = asked.evidence
    if evidence is None or evidence.grade not in (Grade.Proven, Grade.Shown):
        return None
    return asked.policy.allowed_by_type.get(evidence.type)


def _other_class_within(tenant: Tenant, asked: TierRequest) -> None:
    """Raise Refused for a class outside the tiers, such as system-*, if it is above the ceiling or unknown."""
    ceiling, live = tenant.ceiling(asked.policy.tiers), asked.facts.classes.get(asked.class_name)
    field, name = "spec.priorityClassName", asked.class_name
    if ceiling is None or (live is not None and live.value <= ceiling):
        return
    if live is None:
        raise Refused(Reason.FOREIGN_CLASS, "class-unknown", field, name=name)
    may = Phrase("class-bound", ceiling=ceiling, tenant=tenant.name)
    may = _allowance(tenant, asked) if asked.holds_gpus or ceiling == 0 else may
    raise Refused(
        Reason.CEILING, "class-above-ceiling", field, name=name, value=live.value, tenant=tenant.name, allowance=may
    )


def _lowered(assignment: Assignment, chosen: Tier, tenant: Tenant, asked: TierRequest) -> Assignment:
    tier = next((each for each in acceptable(asked) if each.value < chosen.value), None)
    if tier is None:
        reason, may = assignment.reason, _allowance(tenant, asked)
        raise Refused(
            Reason.CEILING, "default-above-ceiling", tier=chosen.name, reason=reason, tenant=tenant.name, allowance=may
        )
    lowered = Phrase("lowered", chosen=chosen.name, tier=tier.name, tenant=tenant.name)
    return structs.replace(
        assignment,
        tier=tier,
        reason=Phrase("lowered-after", reason=assignment.reason, lowered=lowered),
        trace=(*assignment.trace, Phrase("step", step="ceiling", found=lowered, too_weak="")),
        warnings=(*assignment.warnings, AdmissionWarning("tier-lowered", lowered=lowered)),
    )


def _allowance(tenant: Tenant, asked: TierRequest) -> Phrase:
    """Return the words for the tiers that a workload may use, or for why there are none.

    Either its type and its tenant allow no tier in common, or the TenantQuota names no tier of the policy.
    """
    if tiers := acceptable(asked):
        return Phrase("allowance", tiers=_names(tiers), tenant=tenant.name)
    if allowed := allowed_tiers(tenant, asked.policy):
        of_type, workload_type = allowed_by_type(asked), asked.evidence.type if asked.evidence else None
        return Phrase(
            "allowance-apart", type=workload_type, of_type=of_type, of_tenant=_names(allowed), tenant=tenant.name
        )
    known = _names(asked.policy.tiers)
    if tenant.allowed_tiers is None:
        field, names = "maxTier", [tenant.max_tier or ""]
    else:
        field, names = "allowedTiers", [*tenant.allowed_tiers] or ["empty"]
    named = tuple(map(shown, names))
    return Phrase("allowance-unknown", field=field, named=named, known=known, tenant=tenant.name)


def _names(tiers: Iterable[Tier]) -> tuple[str, ...]:
    return tuple(tier.name for tier in tiers) or ("none",)


def demoted(assignment: Assignment, charge: Charge, usage: Usage, asked: TierRequest) -> Assignment:
    """Return the assignment to the first lower tier with room.

    The assignment stays as it is if the charge fits, if nothing may be demoted from the full row, or if no lower tier
    has room. A pod of a PodGroup stays in the group's tier, because otherwise the scheduler would hold back the whole
    group.
    """
    tenant, chosen = asked.facts.tenant, assignment.tier
    if tenant is None or not tenant.demotes or chosen is None:
        return assignment
    short = shortfall([charge], tenant, usage)
    if short is None or tenant.action(short.row) != "Demote":
        return assignment
    roomy = (tier.name for tier, _ in alternatives(charge, tenant, usage, demotable_to(chosen, asked)))
    return demoted_to(next(roomy, ""), assignment, asked, short.row)


def demoted_to(name: str, assignment: Assignment, asked: TierRequest, row: QuotaRow | None = None) -> Assignment:
    """Return the assignment demoted to the named tier, because `row` is full; without a row, its gang was demoted.

    The assignment stays as it is if that tier is unknown or not lower, or if the pod is demoted already or has the tier
    of its PodGroup.
    """
    tenant, chosen, lower = asked.facts.tenant, assignment.tier, asked.policy.tiers.get(name)
    if tenant is None or chosen is None or lower is None or assignment.demoted_from or assignment.step == "group":
        return assignment
    if lower.value >= chosen.value:
        return assignment
    lowered = assignment.lowered_to(lower, asked, row)
    warning = AdmissionWarning("pod-demoted", lacks=lowered.lacks, tier=lower.name, evicted=lowered.evicted)
    return structs.replace(lowered, warnings=(*lowered.warnings, warning))


def demotable_to(chosen: Tier | None, asked: TierRequest) -> list[Tier]:
    """Return the lower tiers that a workload may be demoted to and may name, in the order of choice."""
    tenant, clue = asked.facts.tenant, asked.evidence
    if tenant is None or not tenant.demotes or chosen is None:
        return []
    may_name = acceptable(asked)
    return [tier for tier in lent_tiers(chosen, clue.type if clue else None, tenant, asked.policy) if tier in may_name]
