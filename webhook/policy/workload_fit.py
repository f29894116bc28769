"""How a workload fits its tenant's quota, and what is told of it: by what is used now, or if it ever could."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice

from msgspec import structs

from webhook.objects.phrase import AdmissionWarning
from webhook.policy.assignment.limits import acceptable, demotable_to
from webhook.policy.decide import Decision
from webhook.policy.decide_workload import WorkloadDecision, made_by_another
from webhook.policy.devices import evicted_by
from webhook.policy.quota.charges import Charge, Fit, GangDemand, Shortfall, alternatives, together
from webhook.policy.quota.demand import NOTHING
from webhook.policy.quota.native_quotas import NativeQuota, native_rooms
from webhook.policy.quota.refusals import (
    Applied,
    drawn,
    fit_over_quota,
    growth_warnings,
    no_room_for_gang,
    whole_fit,
)
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tiers import Tier


def fit_of(decision: WorkloadDecision, usage: Usage | None, reserved: Usage) -> Fit:
    """How a workload fits its tenant's quota, used without the claims it shares; with no `usage`, if it ever could.

    One whose pods are made elsewhere asks for nothing here. `reserved` is the part of the usage that is reserved for
    the tenant's queue.
    """
    first, own = decision.decisions[0].tier_request, decision.own
    tenant = decision.facts.tenant
    if tenant is None or tenant.charged_elsewhere or decision.elsewhere:
        return Fit()
    charges, needed = decision.charges, decision.needed
    applied = _applied(decision, tenant, reserved)
    fit = partial(whole_fit, tiers=acceptable(first), applied=applied, usage=usage, smallest=decision.smallest)
    lowered = tuple(_lowered(decision, tenant, usage)) if tenant.demotes and usage is not None else ()
    if lowered:
        rest = fit(charges, tenant.bounding_every_tier(), at_once=own.row.at_once)
        return Fit(None, lowered + rest.warnings)
    is_elastic = together(charges) != together(needed)
    if decision.gang is None and not is_elastic:
        return fit(charges, tenant, at_once=own.row.at_once)
    least = fit(needed, tenant, at_once=True, wished=charges, booked=not decision.waits)
    if least.refusal or not is_elastic:
        return least
    return fit(charges, tenant, at_once=not own.in_stages, strict=False)


def _lowered(
    decision: WorkloadDecision, tenant: Tenant, usage: Usage, before: Sequence[Charge] = ()
) -> Iterator[AdmissionWarning]:
    """What pods run as that are booked singly and have no room in a tier's row; nothing where no lower tier has any.

    Of a workload that grows those pods are judged that it did not ask for `before`.
    """
    own, asked = decision.own, decision.leading.tier_request
    one = decision.leading.least.gpus if decision.leading.least else Decimal(0)
    for row, charge in drawn(() if decision.gang else decision.charges, tenant, at_once=own.row.at_once):
        used = usage.get(row, Decimal(0))
        more = charge.gpus - together(each for each in before if row.counts(each.tier, each.flavor))
        short = Shortfall(structs.replace(charge, gpus=one or more), row, usage)
        exceeds = row.tier and more > 0 and used + more > row.hard
        lower = next(lower_tiers(decision, short), None) if exceeds else None
        if lower is not None:
            yield AdmissionWarning(
                "more-demoted" if before else "some-demoted",
                tenant=tenant.name,
                row=row.subject,
                used=used,
                hard=row.hard,
                what=f"this {own.kind}",
                gpus=more,
                tier=lower.name,
                evicted=evicted_by(lower, asked.pod, asked.facts, asked.policy),
            )


def growth_told(
    decision: WorkloadDecision, before: WorkloadDecision | None, usage: Usage, reserved: Usage
) -> tuple[AdmissionWarning, ...]:
    """Warnings of a workload that is changed to ask for more than has room now: of its pods that are booked singly."""
    tenant, own = decision.facts.tenant, decision.own
    booked = decision.gang.charges if decision.gang else ()
    if tenant is None or not own.row.at_once or together(decision.charges) == together(booked):
        return ()
    was, applied = before.charges if before else (), _applied(decision, tenant, reserved)
    lowered = tuple(_lowered(decision, tenant, usage, was)) if tenant.demotes else ()
    bounding = tenant.bounding_every_tier() if lowered else tenant
    return (*lowered, *growth_warnings(decision.charges, was, bounding, usage, applied))


def _applied(decision: WorkloadDecision, tenant: Tenant, reserved: Usage) -> Applied:
    can_wait = not (tenant.holds and decision.names_node)
    return Applied(f"this {decision.own.kind}", can_wait, decision.own.row.recurs, reserved)


def counted_while_held(decision: WorkloadDecision, quotas: Iterable[NativeQuota]) -> Iterator[AdmissionWarning]:
    """A warning of the first ResourceQuota that counts its pods, also while they wait for their turn."""
    if not made_by_another(decision.facts):
        counting = (quota for quota in quotas for each in decision.decisions if _counts(quota, each))
        yield from (AdmissionWarning("held-counted", quota=quota.name) for quota in islice(counting, 1))


def _counts(quota: NativeQuota, decision: Decision) -> bool:
    asked, tier = decision.tier_request, decision.assignment.tier
    return tier is not None and tier.name in native_rooms(asked.pod, NOTHING, (quota,), asked.policy)


def gang_fit(decision: WorkloadDecision, gang: GangDemand, short: Shortfall) -> Fit:
    """The refusal of a gang whose charge falls short, or a warning where its tenant wants no more."""
    first, own = decision.decisions[0].tier_request, decision.own
    tenant = decision.facts.tenant
    if tenant is None:
        return Fit()
    floor = together(decision.charges) > together(decision.needed)
    refusal = no_room_for_gang(gang, short, tenant, acceptable(first), f"{own.kind} {own.name}", floor=floor)
    return fit_over_quota(refusal, tenant)


def lower_tiers(decision: WorkloadDecision, short: Shortfall) -> Iterator[Tier]:
    """The tiers with room that a gang over quota may be demoted to, in the order of choice."""
    asked, chosen = decision.decisions[0].tier_request, decision.assignment.tier
    tenant = decision.facts.tenant
    if tenant is None or not tenant.demotes or chosen is None:
        return
    candidates = demotable_to(chosen, asked)
    yield from (tier for tier, _ in alternatives(short.charge, tenant, short.usage, candidates))
