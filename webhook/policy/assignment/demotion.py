"""Demotion: a pod that is over its tenant's quota runs at a lower tier, where the tenant asked for that."""

from dataclasses import replace
from decimal import Decimal

from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.quota.charges import Charge, alternatives, shortfall
from webhook.policy.quota.demand import flavor_of


def demoted(assignment: Assignment, gpus: Decimal, request: TierRequest) -> Assignment:
    """The highest lower tier that has room, by the usage among the facts; the assignment itself where none has."""
    tenant, usage, chosen = request.facts.tenant, request.facts.usage, assignment.tier
    if tenant is None or usage is None or tenant.on_exceed != "Demote" or chosen is None or assignment.demoted_from:
        return assignment
    charge = Charge(gpus, chosen.name, flavor_of(request.pod, request.policy.flavors))
    if not tenant.charges(gpus) or shortfall([charge], tenant, usage) is None:
        return assignment
    below = [tier for tier in acceptable(request) if tier.value < chosen.value]
    lower = next((tier for tier, _ in alternatives(charge, tenant, usage, below)), None)
    if lower is None:
        return assignment
    warning = f"tenant {tenant.name} is over its quota of {chosen.name}: this pod runs as {lower.name}"
    return replace(assignment, tier=lower, demoted_from=chosen.name, warnings=(*assignment.warnings, warning))
