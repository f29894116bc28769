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
    """Tell whether a flavor is one of several possible ones, or none."""
    return flavor is not None and flavor.endswith("?")


def may_be(named: str | None, flavor: str) -> bool:
    """Tell whether a charge with several possible flavors may be of that one."""
    return is_maybe(named) and f"{flavor}?" in named.split()


class QuotaRow(msgspec.Struct, frozen=True):
    """One line of a tenant's quotas. Without a tier it bounds all tiers, without a flavor all GPUs.

    `has_queue`: pods beyond it are queued, whatever the tenant's other rows do.
    """

    hard: Decimal
    tier: str | None = None
    flavor: str | None = None
    has_queue: bool = False

    @property
    def subject(self) -> str:
        """Return the name of what the row bounds, as a refusal has it."""
        return self.label if self.tier or self.flavor else "the total"

    @property
    def label(self) -> str:
        """Return the name of what the row bounds, as a list has it."""
        return " on ".join(name for name in (self.tier, self.flavor) if name) or "total"

    def counts(self, tier: str | None, flavor: str | None) -> bool:
        """Tell whether a charge of that tier and flavor counts on this row, also with several possible flavors."""
        if self.tier not in (None, tier):
            return False
        return self.flavor is None or self.flavor == flavor or may_be(flavor, self.flavor)


Usage = Mapping[QuotaRow, Decimal]
"""GPUs booked on each of a tenant's rows; a row without an entry is unused."""


class Tenant(msgspec.Struct, frozen=True):
    """A TenantQuota, read. `created` is its creationTimestamp: the older of overlapping tenants wins.

    `backstop`: its rows are rendered as ResourceQuotas too. `reserve_seconds` is how long the head of its queue
    reserves free GPUs; None for no end. `demote_to` are the tiers that it may be demoted to, in the order of choice;
    empty for those of the policy. `demoted_before`: it no longer demotes, and gangs that it demoted still exist.
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

    def selects(self, namespace_labels: Mapping[str, str]) -> bool:
        return all(line.matches(namespace_labels) for line in self.selector)

    @property
    def demotes(self) -> bool:
        return self.on_exceed == "Demote" and not self.charged_elsewhere

    @property
    def has_queue(self) -> bool:
        """Tell whether any of its pods are queued."""
        return not self.charged_elsewhere and (self.on_exceed == "Hold" or any(row.has_queue for row in self.rows))

    def holds_on(self, tier: str | None, flavor: str | None) -> bool:
        """Tell whether pods of that tier and flavor are queued."""
        waits = self.on_exceed == "Hold" or any(row.has_queue and row.counts(tier, flavor) for row in self.rows)
        return waits and not self.charged_elsewhere

    @property
    def above_quota(self) -> str:
        """Return the action above the quota, with the rows that have another one: "Deny, on gpu-batch Hold"."""
        if self.charged_elsewhere:
            return "charged elsewhere"
        queues = () if self.on_exceed == "Hold" else (f"on {row.label} Hold" for row in self.rows if row.has_queue)
        return ", ".join((self.on_exceed, *queues))

    def bounding_every_tier(self) -> Self:
        """Return the tenant with only those rows that no lower tier avoids."""
        return replace(self, rows=tuple(row for row in self.rows if row.tier is None))

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
    """Return the tenant of a namespace: the first that selects it, which is the oldest if they are ranked by age."""
    return next((each for each in ranked if each.selects(namespace_labels)), None)
