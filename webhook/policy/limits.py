"""Whether a workload may have the tier it was assigned: by its type and by its tenant's ceiling; never by usage.

What a person asked for and may not have is Refused; what we chose ourselves is lowered, with a warning.
"""

from dataclasses import replace

from webhook.policy.assignment import Ask, Assignment
from webhook.policy.refusal import Refused, shown
from webhook.policy.tenants import Tenant
from webhook.policy.tiers import Tier

CLAIMS = ("group", "label", "class")
"""The steps by which a tenant claims a tier; a rule is the platform team's own word."""


def within_limits(assignment: Assignment, ask: Ask) -> Assignment:
    """The assignment, lowered where we may; raises Refused where a person asked for more than allowed."""
    _claimable(assignment, ask)
    tenant = ask.facts.tenant
    if tenant is None:
        return _without_tenant(assignment, ask)
    if assignment.tier is None:
        _kept_class_within(tenant, ask)
        return assignment
    if tenant.may_use(assignment.tier, ask.policy.tiers):
        return assignment
    if assignment.asked:
        raise Refused(
            f"{assignment.asked}: {assignment.tier.name} is not for tenant {tenant.name}; {_allowance(tenant, ask)}"
        )
    return _lowered(assignment, assignment.tier, tenant, ask)


def acceptable(ask: Ask) -> list[Tier]:
    """The tiers that the workload may name, by its proven type and its tenant, the highest first."""
    allowed, tenant, tiers = allowed_by_type(ask), ask.facts.tenant, ask.policy.tiers
    mine = tiers if tenant is None else [tier for tier in tiers if tenant.may_use(tier, tiers)]
    return [tier for tier in mine if allowed is None or tier.name in allowed]


def allowed_by_type(ask: Ask) -> tuple[str, ...] | None:
    """The tiers that workloads of this type may name; None where nothing bounds them, or nothing proves the type."""
    return ask.policy.allowed_by_type.get(ask.evidence.type) if ask.evidence and ask.evidence.proof else None


def _claimable(assignment: Assignment, ask: Ask) -> None:
    evidence, tier, allowed = ask.evidence, assignment.tier, allowed_by_type(ask)
    if evidence is None or tier is None or allowed is None or assignment.step not in CLAIMS or tier.name in allowed:
        return
    raise Refused(
        f"{assignment.asked}: {tier.name} is not for {evidence.type} workloads, and this is one by {evidence.text}; "
        f"it may use {_names(acceptable(ask))}"
    )


def _without_tenant(assignment: Assignment, ask: Ask) -> Assignment:
    name = ask.facts.namespace.name
    sentence = f"namespace {name} belongs to no tenant: no TenantQuota's namespaceSelector selects it"
    match ask.policy.namespaces_without_tenant:
        case "Deny" if ask.holds_gpus:
            raise Refused(f"{sentence}; ask your platform team for one")
        case "Warn" if ask.holds_gpus:
            return replace(assignment, warnings=(*assignment.warnings, sentence))
    return assignment


def _kept_class_within(tenant: Tenant, ask: Ask) -> None:
    """A class outside the tiers is bounded by value, so that system-* is no way round the ceiling."""
    ceiling, live = tenant.ceiling(ask.policy.tiers), ask.facts.classes.get(ask.class_name)
    if ceiling is None or (live is not None and live.value <= ceiling):
        return
    if live is None:
        raise Refused(f"spec.priorityClassName: no PriorityClass is named {shown(ask.class_name)}")
    raise Refused(
        f"spec.priorityClassName: {live.name} ({live.value}) is above the ceiling of tenant {tenant.name}; "
        f"{_allowance(tenant, ask)}"
    )


def _lowered(assignment: Assignment, chosen: Tier, tenant: Tenant, ask: Ask) -> Assignment:
    tiers = ask.policy.tiers
    below = (tier for tier in tiers if tier.value < chosen.value and tenant.may_use(tier, tiers))
    tier = next(below, None)
    if tier is None:
        raise Refused(f"{chosen.name} ({assignment.reason}) is not for tenant {tenant.name}; {_allowance(tenant, ask)}")
    note = f"lowered from {chosen.name} to {tier.name}, the ceiling of tenant {tenant.name}"
    return replace(
        assignment,
        tier=tier,
        reason=f"{assignment.reason}; {note}",
        trace=(*assignment.trace, f"ceiling: {note}"),
        warnings=(*assignment.warnings, f"tier {note}"),
    )


def _allowance(tenant: Tenant, ask: Ask) -> str:
    if tenant.allowed_tiers is None and tenant.max_tier and ask.policy.tiers.get(tenant.max_tier) is None:
        return (
            f'its maxTier "{shown(tenant.max_tier)}" is no tier of the policy, so that it may use none; your platform '
            f"team mends TenantQuota/{tenant.name}"
        )
    return f"it may use {_names(acceptable(ask))}. See TenantQuota/{tenant.name}."


def _names(tiers: list[Tier]) -> str:
    return ", ".join(tier.name for tier in tiers) or "no tier"
