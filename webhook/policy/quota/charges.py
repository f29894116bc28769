"""Charges: GPUs booked against a tenant's rows, and whether they fit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.policy.quota.demand import demand_of, flavor_of
from webhook.policy.values.facts import Devices
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier, Tiers


@dataclass(frozen=True, slots=True)
class Charge:
    """A demand to book: GPUs of a tier (None: a kept class below every tier), on a flavor where the pod names one."""

    gpus: Decimal
    tier: str | None
    flavor: str | None = None

    def rows(self, tenant: Tenant) -> list[QuotaRow]:
        """The tenant's rows it draws on, the narrowest first: that one tells most in a refusal."""
        drawn = (row for row in tenant.rows if row.counts(self.tier, self.flavor))
        return sorted(drawn, key=lambda row: (row.tier is None, row.flavor is None))


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What does not fit: the first row without room, all that would be drawn on it, and the usage that shows it."""

    charge: Charge
    row: QuotaRow
    usage: Usage


@dataclass(frozen=True, slots=True)
class Fit:
    """How something fits a quota: the refusal where it may not be, and warnings."""

    refusal: str | None = None
    warnings: tuple[str, ...] = ()
    refused: Decimal = Decimal(0)
    """GPUs that the refusal speaks of."""


def shortfall(charges: Iterable[Charge], tenant: Tenant, usage: Usage) -> Shortfall | None:
    """The first of the tenant's rows that the charges together would overdraw."""
    drawn: dict[QuotaRow, Decimal] = {}
    for charge in charges:
        for row in charge.rows(tenant) if charge.gpus > 0 else ():
            drawn[row] = drawn.get(row, usage.get(row, Decimal(0))) + charge.gpus
            if drawn[row] > row.hard:
                drawing = replace(charge, gpus=drawn[row] - usage.get(row, Decimal(0)))
                return Shortfall(drawing, row, usage)
    return None


def never_fits(charge: Charge, tenant: Tenant) -> QuotaRow | None:
    """The row that could not hold the charge even if nothing else drew on it."""
    return next((row for row in charge.rows(tenant) if charge.gpus > row.hard), None)


def alternatives(charge: Charge, tenant: Tenant, usage: Usage, tiers: Iterable[Tier]) -> Iterator[tuple[Tier, str]]:
    """Tiers in which the charge would fit, with what is left there in words."""
    for tier in tiers:
        if tier.name == charge.tier:
            continue
        left = _free(tier.name, charge.flavor, tenant, usage)
        if left is None or left >= charge.gpus:
            yield tier, "no limit" if left is None else f"{written(left)} free"


def _free(tier: str | None, flavor: str | None, tenant: Tenant, usage: Usage) -> Decimal | None:
    """GPUs left for a tier and flavor; None where no row bounds them."""
    rows = Charge(Decimal(0), tier, flavor).rows(tenant)
    return min((max(row.hard - usage.get(row, Decimal(0)), Decimal(0)) for row in rows), default=None)


def charge_of(pod: Pod, devices: Iterable[Devices], policy: TierPolicy) -> Charge | None:
    """What a pod that exists is charged; None where it holds no GPU. Its class says the tier: labels are mutable."""
    gpus = demand_of(pod, devices, policy)
    if not gpus:
        return None
    tier = tier_counted(pod.spec.priority_class_name, pod.spec.priority, policy.tiers)
    return Charge(gpus, tier, flavor_of(pod, policy.flavors))


def tier_counted(class_name: str, priority: int | None, tiers: Tiers) -> str | None:
    """The tier in whose rows a pod counts: its class's, else the highest that its priority comes up to."""
    tier = tiers.of_class(class_name) or tiers.reached_by(priority or 0)
    return tier.name if tier else None
