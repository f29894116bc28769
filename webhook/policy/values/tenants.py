"""Tenants: the namespaces that a TenantQuota selects, and what it lets them use."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal, Self, TypeGuard

import msgspec
from msgspec.structs import replace

from webhook.objects.pods import line_holds
from webhook.policy.values.tiers import Tier, Tiers

OnExceed = Literal["Deny", "Demote", "Warn", "Hold"]
HoldOrder = Literal["Strict", "BestEffort"]
Period = Literal["Day", "Week", "Month", "Quarter"]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class Requirement(msgspec.Struct, frozen=True):
    """One line of a label selector's matchExpressions."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return line_holds(self.key, self.operator, self.values, labels)


def maybe(flavors: Iterable[str]) -> str:
    """Return several possible flavors as a charge names them: "a100? h100?". It counts on the rows of all."""
    return " ".join(f"{flavor}?" for flavor in flavors)


def is_maybe(flavor: str | None) -> TypeGuard[str]:
    """Tell whether a charge's flavor is uncertain: one of those that it names, or none of them."""
    return flavor is not None and flavor.endswith("?")


def may_be(named: str | None, flavor: str) -> bool:
    """Tell whether a charge with several possible flavors may be of that one."""
    return is_maybe(named) and f"{flavor}?" in named.split()


def row_name(tier: str | None, flavor: str | None) -> str:
    """Return the name of what a row, a budget or a grant is for; "" for all GPUs of every tier."""
    return " on ".join(name for name in (tier, flavor) if name)


class SpentBudget(msgspec.Struct, frozen=True):
    """A budget of GPU-hours that is used up. `used` are at least as many, because what runs runs on.

    `renews` says when there are new hours, or without `per` when the budget ends; "" for never.
    """

    gpu_hours: Decimal
    used: Decimal
    renews: str = ""
    per: str = ""


class QuotaRow(msgspec.Struct, frozen=True):
    """One line of a tenant's quotas. Without a tier it bounds all tiers, without a flavor all GPUs.

    `on_exceed`: what happens beyond it, whatever the tenant's other rows do; None for what the tenant does. A `spent`
    budget is a row of no GPUs: what runs stays, and nothing is added.
    """

    hard: Decimal
    tier: str | None = None
    flavor: str | None = None
    on_exceed: OnExceed | None = None
    spent: SpentBudget | None = None

    @property
    def has_queue(self) -> bool:
        """Tell whether the row itself queues the pods beyond it, whatever the tenant does beyond other rows."""
        return self.on_exceed == "Hold"

    @property
    def subject(self) -> str:
        """Return the name of what the row bounds, as a refusal has it."""
        return self.label if self.tier or self.flavor or self.spent else "the total"

    @property
    def label(self) -> str:
        """Return the name of what the row bounds, as a list has it."""
        return ("GPU-hours of " if self.spent else "") + (row_name(self.tier, self.flavor) or "total")

    def counts(self, tier: str | None, flavor: str | None) -> bool:
        """Tell whether a charge of that tier and flavor counts on this row, also with several possible flavors."""
        if self.tier not in (None, tier):
            return False
        return self.flavor is None or self.flavor == flavor or may_be(flavor, self.flavor)

    def overlaps(self, other: Self) -> bool:
        """Tell whether a charge may count on both rows."""
        names = (self.tier, other.tier), (self.flavor, other.flavor)
        return all(None in pair or pair[0] == pair[1] for pair in names)


class Budget(msgspec.Struct, frozen=True):
    """GPU-hours that a tenant may use in each period of the calendar of a time zone, or between two times.

    Times are in seconds since 1970. `until` is None without an end. Without a tier it counts all tiers, without a
    flavor all GPUs. With `on_exhausted` Warn nobody is stopped.
    """

    gpu_hours: Decimal
    tier: str | None = None
    flavor: str | None = None
    per: Period | None = None
    zone: str = "UTC"
    begins: float = 0.0
    until: float | None = None
    on_exhausted: OnExceed = "Deny"

    @property
    def row(self) -> QuotaRow:
        """The row that stands for the budget once it is used up, without the time of new hours."""
        return QuotaRow(
            Decimal(0), self.tier, self.flavor, self.on_exhausted, SpentBudget(self.gpu_hours, self.gpu_hours)
        )


class Grant(msgspec.Struct, frozen=True):
    """More GPUs on a row of a tenant, between two times in seconds since 1970."""

    gpus: Decimal
    begins: float
    until: float
    tier: str | None = None
    flavor: str | None = None
    reason: str = ""


Usage = Mapping[QuotaRow, Decimal]
"""GPUs booked on each of a tenant's rows; a row without an entry is unused."""


class Tenant(msgspec.Struct, frozen=True):
    """A TenantQuota, read. `created` is its creationTimestamp: the older of overlapping tenants wins.

    `backstop`: its rows are rendered as ResourceQuotas too. `reserve_seconds` is how long the head of its queue
    reserves free GPUs; None for no end. `demote_to` are the tiers that it may be demoted to, in the order of choice;
    empty for those of the policy. `demoted_before`: it no longer demotes, and gangs that it demoted still exist.

    `rows` have the GPUs of the grants that apply now. `rows_of_spec` are the rows without these GPUs; none for a tenant
    without budgets and grants.
    `spent` are the rows of budgets that are used up. `budgets` and `grants` are those of the spec.
    """

    name: str
    selector: tuple[Requirement, ...] = ()
    max_tier: str | None = None
    allowed_tiers: tuple[str, ...] | None = None
    default_tier: str | None = None
    rows: tuple[QuotaRow, ...] = ()
    on_exceed: OnExceed = "Deny"
    charged_elsewhere: bool = False
    backstop: bool = False
    created: str = ""
    hold_order: HoldOrder = "Strict"
    reserve_seconds: int | None = None
    demote_to: tuple[str, ...] = ()
    demoted_before: bool = False
    spent: tuple[QuotaRow, ...] = ()
    budgets: tuple[Budget, ...] = ()
    grants: tuple[Grant, ...] = ()
    rows_of_spec: tuple[QuotaRow, ...] = ()

    def selects(self, namespace_labels: Mapping[str, str]) -> bool:
        return all(line.matches(namespace_labels) for line in self.selector)

    @property
    def bounds(self) -> tuple[QuotaRow, ...]:
        """All rows that bound its pods. Those of budgets come first: what is used up is the better reason."""
        return (*(row for row in self.spent if row.on_exceed != "Warn"), *self.rows) if self.spent else self.rows

    def action(self, row: QuotaRow) -> OnExceed:
        """Return what happens to a workload above a row."""
        return row.on_exceed or self.on_exceed

    @property
    def demotes(self) -> bool:
        """Tell whether any of its workloads may run in a lower tier."""
        lends = self.on_exceed == "Demote" or any(row.on_exceed == "Demote" for row in self.spent)
        return lends and not self.charged_elsewhere

    @property
    def has_queue(self) -> bool:
        """Tell whether any of its pods are queued, now or once a budget is used up."""
        queues = any(row.has_queue for row in self.rows) or any(each.on_exhausted == "Hold" for each in self.budgets)
        return not self.charged_elsewhere and (self.on_exceed == "Hold" or queues)

    def holds_on(self, tier: str | None, flavor: str | None) -> bool:
        """Tell whether pods of that tier and flavor are queued. A used up budget that refuses them comes first."""
        if any(row.on_exceed == "Deny" and row.counts(tier, flavor) for row in self.spent):
            return False
        waits = self.on_exceed == "Hold" or any(row.has_queue and row.counts(tier, flavor) for row in self.bounds)
        return waits and not self.charged_elsewhere

    @property
    def above_quota(self) -> str:
        """Return the action above the quota, with the rows that have another one: "Deny, for gpu-batch Hold"."""
        if self.charged_elsewhere:
            return "charged elsewhere"
        queues = () if self.on_exceed == "Hold" else (f"for {row.label} Hold" for row in self.rows if row.has_queue)
        return ", ".join((self.on_exceed, *queues))

    def bounding_every_tier(self) -> Self:
        """Return the tenant with only those rows that no lower tier avoids."""
        rows, spent = (tuple(row for row in some if row.tier is None) for some in (self.rows, self.spent))
        return replace(self, rows=rows, spent=spent)

    def charges(self, gpus: Decimal) -> bool:
        """Tell whether GPUs are charged here: not if there are none, or if another quota system accounts for them."""
        return gpus > 0 and not self.charged_elsewhere

    def may_use(self, tier: Tier, tiers: Tiers) -> bool:
        """Tell whether a tier is within the ceiling. A ceiling that names no tier of the policy permits nothing."""
        if self.allowed_tiers is not None:
            return tier.name in self.allowed_tiers
        ceiling = self.ceiling(tiers)
        return ceiling is None or tier.value <= ceiling

    def ceiling(self, tiers: Tiers) -> int | None:
        """Return the highest priority value that the tenant may use; None without a ceiling, 0 if none is allowed."""
        if self.allowed_tiers is None and self.max_tier is None:
            return None
        named = self.allowed_tiers if self.allowed_tiers is not None else (self.max_tier or "",)
        return max((tier.value for tier in map(tiers.get, named) if tier), default=0)


def by_age(tenants: Iterable[Tenant]) -> list[Tenant]:
    return sorted(tenants, key=lambda tenant: (tenant.created, tenant.name))


def tenant_among(ranked: Iterable[Tenant], namespace_labels: Mapping[str, str]) -> Tenant | None:
    """Return the tenant of a namespace: the first that selects it, which is the oldest if they are sorted by age."""
    return next((each for each in ranked if each.selects(namespace_labels)), None)
