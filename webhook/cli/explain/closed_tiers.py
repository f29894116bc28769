"""Names what keeps a workload out of the other tiers: its type, its tenant's ceiling, or a row of its quota."""

from collections.abc import Collection, Iterator
from decimal import Decimal

from msgspec.structs import replace

from webhook.objects.quantities import written, written_gpus
from webhook.policy.assignment.limits import acceptable, charge_of_all
from webhook.policy.decide import Decision
from webhook.policy.quota.charges import never_fits, row_usage, shortfall
from webhook.policy.values.tenants import Usage
from webhook.sentences.sentence import sentence


def closed_tiers(
    decision: Decision, own: Collection[str | None], gpus: Decimal, usage: Usage, may_name: Collection[str] | None
) -> str:
    """Return what closes each tier except its `own` to a workload that asks for so many GPUs at once.

    `usage` is that of all others. `may_name` are the tiers that the user may name; None for all.
    """
    reasons = dict.fromkeys(_reasons(decision, own, gpus, usage))
    others = (each.name for each in acceptable(decision.tier_request) if each.name not in own)
    if may_name is not None and (closed := [each for each in others if each not in may_name]):
        reasons[f"you may not name {', '.join(closed)} here (tierAccess: RBAC)"] = None
    return f"No other tier is open to it: {'; '.join(reasons) or 'the policy has no other'}."


def _reasons(decision: Decision, own: Collection[str | None], gpus: Decimal, usage: Usage) -> Iterator[str]:
    request, charge = decision.tier_request, decision.charge
    tenant, may_use = request.facts.tenant, {each.name for each in acceptable(request)}
    for tier in request.policy.tiers:
        if tier.name in own:
            continue
        if tier.name in may_use and tenant is not None and charge is not None:
            short = shortfall([replace(charge, gpus=gpus, tier=tier.name)], tenant, usage)
            whole = replace(charge_of_all(request, charge), tier=tier.name)
            if short is not None:
                used, quota = sentence(row_usage(short.row, usage, {})), f"TenantQuota/{tenant.name}"
                hours = f"{used} in {quota}"
                yield hours if short.row.spent else f"{used} of {quota} without it, and it asks for {written(gpus)}"
            elif row := never_fits(whole, tenant):
                hard = f"{row.subject} of TenantQuota/{tenant.name} allows {written_gpus(row.hard)}"
                yield f"{hard}, and all of its pods ask for {written(whole.gpus)}"
        elif tenant is not None and not tenant.may_use(tier, request.policy.tiers):
            field = f"maxTier {tenant.max_tier}" if tenant.allowed_tiers is None else "allowedTiers"
            yield f"{field} of TenantQuota/{tenant.name} excludes {tier.name}"
        elif request.evidence is not None:
            yield f"allowedTiersByType of the policy excludes {tier.name} for {request.evidence.type} workloads"
