"""Whether a demand fits a tenant's rows, and the sentence where it does not; never books anything."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from webhook.objects.quantities import written
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tiers import Tier, Tiers

Usage = Mapping[QuotaRow, Decimal]
"""GPUs booked on each of a tenant's rows; a row without an entry is unused."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A demand to book: GPUs of a tier (None: a kept class below every tier), on a flavor where the pod names one."""

    gpus: Decimal
    tier: str | None
    flavor: str | None = None

    def rows(self, tenant: Tenant) -> list[QuotaRow]:
        """The tenant's rows it draws on, the narrowest first: it says most to the person it refuses."""
        drawn = (row for row in tenant.rows if row.counts(self.tier, self.flavor))
        return sorted(drawn, key=lambda row: (row.tier is None, row.flavor is None))


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The first row without room for a charge, and what is booked on it."""

    row: QuotaRow
    used: Decimal


def shortfall(charge: Charge, tenant: Tenant, usage: Usage) -> Shortfall | None:
    """The first of the tenant's rows that the charge would overdraw."""
    for row in charge.rows(tenant):
        used = usage.get(row, Decimal(0))
        if charge.gpus > 0 and used + charge.gpus > row.hard:
            return Shortfall(row, used)
    return None


def free(tier: str | None, flavor: str | None, tenant: Tenant, usage: Usage) -> Decimal | None:
    """GPUs left for a tier and flavor; None where no row bounds them."""
    rows = Charge(Decimal(0), tier, flavor).rows(tenant)
    return min((max(row.hard - usage.get(row, Decimal(0)), Decimal(0)) for row in rows), default=None)


def alternatives(charge: Charge, tenant: Tenant, usage: Usage, tiers: Iterable[Tier]) -> Iterator[tuple[Tier, str]]:
    """Tiers in which the charge would fit, with what is left there in words."""
    for tier in tiers:
        if tier.name == charge.tier:
            continue
        left = free(tier.name, charge.flavor, tenant, usage)
        if left is None or left >= charge.gpus:
            yield tier, "no limit" if left is None else f"{written(left)} free"


def refusal(short: Shortfall, charge: Charge, tenant: Tenant, usage: Usage, tiers: Iterable[Tier], what: str) -> str:
    """The sentence that a person over quota reads; `what` asks: "this pod", "this PyTorchJob"."""
    fits = ", ".join(f"{tier.name} ({left})" for tier, left in alternatives(charge, tenant, usage, tiers))
    return (
        f"tenant {tenant.name}: {short.row.subject} is at {written(short.used)} of {written(short.row.hard)} GPUs; "
        f"{what} asks for {written(charge.gpus)}. Would fit: {fits or 'no tier now'}. See TenantQuota/{tenant.name}."
    )


def never_fits(charge: Charge, tenant: Tenant) -> QuotaRow | None:
    """The row that could not hold the charge even if nothing else drew on it."""
    return next((row for row in charge.rows(tenant) if charge.gpus > row.hard), None)


def too_large(row: QuotaRow, charge: Charge, tenant: Tenant, tiers: Iterable[Tier], what: str) -> str:
    """The sentence for a workload that no wait would make fit."""
    roomy = [tier.name for tier in tiers if never_fits(Charge(charge.gpus, tier.name, charge.flavor), tenant) is None]
    return (
        f"tenant {tenant.name}: {row.subject} allows {written(row.hard)} GPUs; {what} asks for {written(charge.gpus)} "
        f"in all. Would fit: {', '.join(roomy) or 'no tier'}. See TenantQuota/{tenant.name}."
    )


def counted_as(class_name: str, priority: int | None, tiers: Tiers) -> str | None:
    """The tier in whose rows a pod counts: its class's, else the highest that its priority comes up to."""
    tier = tiers.of_class(class_name) or tiers.reached_by(priority or 0)
    return tier.name if tier else None
