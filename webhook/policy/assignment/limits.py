"""Whether a workload may have its tier, by its type and by its tenant's ceiling, and any other pod its class.

A tier that a person asked for and may not have is Refused. One that we chose is lowered, with a warning.
"""

from dataclasses import replace

from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused, shown
from webhook.policy.assignment.request import Assignment, TierRequest, not_default, tier_request
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Grade, TierPolicy
from webhook.policy.values.tiers import Tier

CLAIMS = ("group", "label", "class")
"""The steps by which a tenant claims a tier; a rule is the platform team's own word."""


def within_limits(assignment: Assignment, request: TierRequest) -> Assignment:
    """The assignment, lowered where we may; raises Refused where a person asked for more than allowed."""
    _claimable(assignment, request)
    tenant = request.facts.tenant
    if tenant is None:
        return _without_tenant(assignment, request)
    if assignment.tier is None:
        _kept_class_within(tenant, request)
        return assignment
    if tenant.may_use(assignment.tier, request.policy.tiers):
        return assignment
    if assignment.asked:
        raise Refused(
            f"{assignment.asked}: {assignment.tier.name} is not for tenant {tenant.name}; "
            f"{_allowance(tenant, request)}",
            Reason.CEILING,
        )
    return _lowered(assignment, assignment.tier, tenant, request)


def class_within_ceiling(pod: Pod, facts: Facts, policy: TierPolicy) -> None:
    """Raises Refused where the class of a pod that isn't ours lies above its tenant's ceiling.

    It could evict pods with GPUs for their CPU. The rule is that of a kept class, whatever `unmanagedClasses` says:
    that is about pods that get a tier. It holds for a class that evicts nobody too, as it does for pods with GPUs,
    because such a pod is still scheduled first and evicted last. A class that is not known has just been made, or
    stands in none of the files of a `review`: it says nothing.
    """
    name = not_default(pod.spec.priority_class_name, facts)  # a mark that it is ours is forged: those stand on our pods
    request = replace(tier_request(pod, facts, policy, None, holds_gpus=False), class_name=name)
    if facts.tenant is not None and request.class_name in facts.classes:
        _kept_class_within(facts.tenant, request)


def acceptable(request: TierRequest) -> list[Tier]:
    """The tiers that the workload may name, by its proven type and its tenant, the highest first."""
    allowed, tenant = allowed_by_type(request), request.facts.tenant
    mine = allowed_tiers(tenant, request.policy) if tenant else request.policy.tiers
    return [tier for tier in mine if allowed is None or tier.name in allowed]


def allowed_tiers(tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """The tiers within a tenant's ceiling, the highest first."""
    return [tier for tier in policy.tiers if tenant.may_use(tier, policy.tiers)]


def allowed_by_type(request: TierRequest) -> tuple[str, ...] | None:
    """The tiers that workloads of this type may name; None where nothing bounds them, or nothing proves the type."""
    return (
        request.policy.allowed_by_type.get(request.evidence.type)
        if request.evidence and request.evidence.grade is Grade.Proven
        else None
    )


def _claimable(assignment: Assignment, request: TierRequest) -> None:
    evidence, tier, allowed = request.evidence, assignment.tier, allowed_by_type(request)
    if evidence is None or tier is None or allowed is None or assignment.step not in CLAIMS or tier.name in allowed:
        return
    raise Refused(
        f"{assignment.asked}: {tier.name} is not allowed for {evidence.type} workloads; this is one because of "
        f"{evidence.text}; it may use {_names(acceptable(request))}",
        Reason.WORKLOAD_TYPE,
    )


def _without_tenant(assignment: Assignment, request: TierRequest) -> Assignment:
    name = request.facts.namespace.name
    sentence = f"namespace {name} belongs to no tenant: no TenantQuota's namespaceSelector selects it"
    concerned = request.holds_gpus or assignment.tier is not None
    match request.policy.namespaces_without_tenant:
        case "Deny" if concerned:
            raise Refused(f"{sentence}; {_way_out(assignment, request)}", Reason.NO_TENANT)
        case "Warn" if concerned:
            return replace(assignment, warnings=(*assignment.warnings, sentence))
    return assignment


def _way_out(assignment: Assignment, request: TierRequest) -> str:
    ask = "ask your platform team for one"
    return ask if request.holds_gpus or assignment.step not in CLAIMS else f"remove {assignment.asked}, or {ask}"


def _kept_class_within(tenant: Tenant, request: TierRequest) -> None:
    """A class outside the tiers is bounded by value, so that system-* is no way round the ceiling."""
    ceiling, live = tenant.ceiling(request.policy.tiers), request.facts.classes.get(request.class_name)
    if ceiling is None or (live is not None and live.value <= ceiling):
        return
    if live is None:
        raise Refused(
            f"spec.priorityClassName: no PriorityClass is named {shown(request.class_name)}", Reason.FOREIGN_CLASS
        )
    raise Refused(
        f"spec.priorityClassName: {live.name} ({live.value}) is above the ceiling of tenant {tenant.name}; "
        f"{_allowance(tenant, request) if request.holds_gpus or ceiling == 0 else _bound(tenant, ceiling)}",
        Reason.CEILING,
    )


def _bound(tenant: Tenant, ceiling: int) -> str:
    return f"a pod without GPUs may have a class of value {ceiling} at most, or none. See TenantQuota/{tenant.name}."


def _lowered(assignment: Assignment, chosen: Tier, tenant: Tenant, request: TierRequest) -> Assignment:
    tiers = request.policy.tiers
    below = (tier for tier in tiers if tier.value < chosen.value and tenant.may_use(tier, tiers))
    tier = next(below, None)
    if tier is None:
        raise Refused(
            f"{chosen.name} ({assignment.reason}) is not for tenant {tenant.name}; {_allowance(tenant, request)}",
            Reason.CEILING,
        )
    note = f"lowered from {chosen.name} to {tier.name}, the ceiling of tenant {tenant.name}"
    return replace(
        assignment,
        tier=tier,
        reason=f"{assignment.reason}; {note}",
        trace=(*assignment.trace, f"ceiling: {note}"),
        warnings=(*assignment.warnings, f"tier {note}"),
    )


def _allowance(tenant: Tenant, request: TierRequest) -> str:
    if tenant.allowed_tiers is None and tenant.max_tier and request.policy.tiers.get(tenant.max_tier) is None:
        return (
            f'its maxTier "{shown(tenant.max_tier)}" is no tier of the policy, so it may use none; ask your platform '
            f"team to correct TenantQuota/{tenant.name}"
        )
    return f"it may use {_names(acceptable(request))}. See TenantQuota/{tenant.name}."


def _names(tiers: list[Tier]) -> str:
    return ", ".join(tier.name for tier in tiers) or "no tier"
