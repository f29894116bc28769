"""Puts a pod's demand to the ledger and says the outcome in a sentence; what fits is decided in policy.quota."""

from dataclasses import replace
from decimal import Decimal

from webhook.admission.facts import Examined
from webhook.admission.ports import Ledger
from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.quota.charges import Charge, alternatives, counted_as, refusal, shortfall
from webhook.policy.values.tenants import Tenant

Outcome = tuple[str | None, tuple[str, ...]]
"""A refusal or None, and warnings."""


async def book(uid: str | None, seen: Examined, assignment: Assignment, ledger: Ledger) -> Outcome:
    """Book the demand, or only look where there is no uid to book it under (dry run)."""
    tenant = charged_tenant(seen)
    if tenant is None:
        return None, ()
    charge = Charge(seen.demand, tier_counted(assignment, seen.ask), seen.flavor)
    if uid is None:
        short = shortfall(charge, tenant, ledger.usage(tenant))
    else:
        short = await ledger.book(tenant, uid, seen.ask.facts.namespace.name, charge)
    if short is None:
        return None, ()
    sentence = refusal(short, charge, tenant, ledger.usage(tenant), acceptable(seen.ask), "this pod")
    return (None, (sentence,)) if tenant.on_exceed == "Warn" else (sentence, ())


def demoted(assignment: Assignment, seen: Examined, ledger: Ledger) -> Assignment:
    """The highest lower tier with room, where the tenant demotes what is over quota; else the assignment as it is."""
    tenant = charged_tenant(seen)
    if tenant is None or tenant.on_exceed != "Demote" or assignment.tier is None or assignment.demoted_from:
        return assignment
    usage, chosen = ledger.usage(tenant), assignment.tier
    charge = Charge(seen.demand, chosen.name, seen.flavor)
    if shortfall(charge, tenant, usage) is None:
        return assignment
    below = [tier for tier in acceptable(seen.ask) if tier.value < chosen.value]
    lower = next((tier for tier, _ in alternatives(charge, tenant, usage, below)), None)
    if lower is None:
        return assignment
    warning = f"tenant {tenant.name} is over its quota of {chosen.name}: this pod runs as {lower.name}"
    return replace(assignment, tier=lower, demoted_from=chosen.name, warnings=(*assignment.warnings, warning))


def charged_tenant(seen: Examined) -> Tenant | None:
    """The tenant whose rows a pod draws on: none where it holds no GPU or another quota system accounts for it."""
    tenant = seen.ask.facts.tenant
    return tenant if tenant and seen.demand > Decimal(0) and not tenant.charged_elsewhere else None


def tier_counted(assignment: Assignment, ask: TierRequest) -> str | None:
    """The tier in whose rows an assignment counts; a kept class counts by its value."""
    if assignment.tier is not None:
        return assignment.tier.name
    live = ask.facts.classes.get(ask.class_name)
    return counted_as(ask.class_name, live.value if live else None, ask.policy.tiers)
