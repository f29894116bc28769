"""Demotion: a pod over its tenant's quota runs at a lower tier, if the tenant asks for that."""

from dataclasses import replace

from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.quota.charges import Charge, alternatives, shortfall
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tiers import Tier


def demoted(assignment: Assignment, charge: Charge, usage: Usage, request: TierRequest) -> Assignment:
    """The highest lower tier that has room for the charge, by the usage of the tenant's rows; else what it was.

    A pod of a PodGroup stays in the group's tier: the scheduler would hold back the whole group otherwise.
    """
    tenant, chosen = request.facts.tenant, assignment.tier
    if tenant is None or not tenant.demotes or chosen is None or assignment.demoted_from or assignment.step == "group":
        return assignment
    fits = shortfall([charge], tenant, usage) is None
    lower = None if fits else _lower_with_room(charge, chosen, tenant, usage, request)
    return assignment if lower is None else _lowered(assignment, chosen, lower, tenant)


def demoted_to(name: str, assignment: Assignment, request: TierRequest) -> Assignment:
    """The lower tier at which the whole gang of a pod runs; what it was, where that is not lower."""
    tenant, chosen, lower = request.facts.tenant, assignment.tier, request.policy.tiers.get(name)
    if tenant is None or chosen is None or lower is None or assignment.demoted_from or assignment.step == "group":
        return assignment
    if lower.value >= chosen.value:
        return assignment
    return _lowered(assignment, chosen, lower, tenant)


def _lowered(assignment: Assignment, chosen: Tier, lower: Tier, tenant: Tenant) -> Assignment:
    warning = f"tenant {tenant.name} is over its quota of {chosen.name}: this pod runs as {lower.name}"
    return replace(assignment, tier=lower, demoted_from=chosen.name, warnings=(*assignment.warnings, warning))


def _lower_with_room(charge: Charge, chosen: Tier, tenant: Tenant, usage: Usage, request: TierRequest) -> Tier | None:
    below = [tier for tier in acceptable(request) if tier.value < chosen.value]
    return next((tier for tier, _ in alternatives(charge, tenant, usage, below)), None)
