"""Reads a TenantQuota. A broken spec is not active, and its first mistake is reported.

Source of the fields: the CustomResourceDefinition tenantquotas.gpu-tiers.dev, which rules most mistakes out.
"""

from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Reason, Refusal, Refused
from webhook.objects.times import is_time_zone, unix_seconds
from webhook.objects.view import View, at, view
from webhook.policy.quota.budgets import grants_at, in_force, note_of_grant
from webhook.policy.values.tenants import Budget, Grant, HoldOrder, OnExceed, Period, QuotaRow, Requirement, Tenant

API_VERSION = "gpu-tiers.dev/v1alpha1"
PLURAL = "tenantquotas"
TENANT_QUOTA = GroupKind("gpu-tiers.dev", "TenantQuota")
OURS = "gpu-tiers"
"""The quotaAuthority of tenants that gpu-tiers charges."""
CHECKED_NAMES = "gpu-tiers.dev/checked-names"
"""The chart's annotation with the tiers and flavors of the policy that came with a TenantQuota, separated by blanks.

That policy reaches the webhook up to a minute later.
"""
LATEST = 4_102_444_800.0
"""The year 2100, in seconds since 1970: times beyond it are mistakes, and the calendar ends somewhere."""
RESOURCE_QUOTA = "ResourceQuota"
"""The value of `spec.backstop` for which ResourceQuotas are rendered."""


class LabelSelector(View, frozen=True):
    """A label selector, as Kubernetes has it."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class _Quota(View, frozen=True):
    gpus: str | int | float
    tier: str | None = None
    resource_flavor: str | None = None
    on_exceed: Literal["Hold"] | None = None


class _Budget(View, frozen=True):
    gpu_hours: str | int | float
    tier: str | None = None
    resource_flavor: str | None = None
    per: Period | None = None
    time_zone: str = "UTC"
    begins: str | None = msgspec.field(default=None, name="from")
    until: str | None = None
    on_exhausted: OnExceed = "Deny"


class _Grant(View, frozen=True):
    gpus: str | int | float
    until: str
    begins: str | None = msgspec.field(default=None, name="from")
    tier: str | None = None
    resource_flavor: str | None = None
    reason: str = ""


class _Spec(View, frozen=True):
    namespace_selector: LabelSelector
    max_tier: str | None = None
    allowed_tiers: tuple[str, ...] | None = None
    default_tier: str | None = None
    quotas: tuple[_Quota, ...] = ()
    on_exceed: OnExceed = "Deny"
    demote_to: tuple[str, ...] = ()
    hold_order: HoldOrder = "Strict"
    reserve_seconds: Annotated[int, msgspec.Meta(ge=0)] | None = None
    quota_authority: str = OURS
    backstop: str = "None"
    budgets: tuple[_Budget, ...] = ()
    grants: tuple[_Grant, ...] = ()


class _TenantQuota(View, frozen=True):
    metadata: Metadata
    spec: _Spec
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class _Head(View, frozen=True):
    """The fields that can be read even if the spec is broken."""

    name: str = ""
    generation: int = 0
    uid: str = ""
    resource_version: str = ""


class TenantQuota(msgspec.Struct, frozen=True):
    """A TenantQuota: active as `tenant`, or broken as `problem` says. `status` is the last one seen.

    Both are set if the object was good before: the last good one stays active.
    """

    name: str
    generation: int
    tenant: Tenant | None
    problem: Refusal | None = None
    status: dict[str, Any] = msgspec.field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""


def read_tenant_quota(raw: msgspec.Raw | bytes) -> TenantQuota:
    return tenant_quota_of(msgspec.json.decode(raw))


def watched_tenant_quota(raw: msgspec.Raw | bytes) -> TenantQuota:
    """Read a TenantQuota, and from its account `Tenant.demoted_before`. A later version may write another account."""
    found = read_tenant_quota(raw)
    tenant, entries = found.tenant, at(found.status, "ledger.entries")
    if tenant is None or tenant.charged_elsewhere or tenant.demotes or not isinstance(entries, list):
        return found
    demoted = any(at(each, "tier") for each in entries)
    return replace(found, tenant=replace(tenant, demoted_before=demoted))


def tenant_quota_of(tree: dict[str, Any]) -> TenantQuota:
    head = view(tree.get("metadata") or {}, _Head)
    try:
        tenant, problem = read_tenant(tree), None
    except Refused as refused:
        tenant, problem = None, refused.refusal
    return TenantQuota(
        head.name, head.generation, tenant, problem, tree.get("status") or {}, head.uid, head.resource_version
    )


def read_tenant(tree: object) -> Tenant:
    """Return the tenant of a TenantQuota's tree, with the grants and used up budgets in its status.

    Raises Refused naming the field.
    """
    found = view(tree, _TenantQuota)
    spec = found.spec
    rows = (
        QuotaRow(_amount(each.gpus, f"spec.quotas[{nth}].gpus"), each.tier, each.resource_flavor, each.on_exceed)
        for nth, each in enumerate(spec.quotas)
    )
    tenant = Tenant(
        name=found.metadata.name,
        selector=tuple(requirements_of(spec.namespace_selector)),
        max_tier=spec.max_tier,
        allowed_tiers=spec.allowed_tiers,
        default_tier=spec.default_tier,
        rows=tuple(rows),
        on_exceed=spec.on_exceed,
        charged_elsewhere=spec.quota_authority != OURS,
        backstop=spec.backstop == RESOURCE_QUOTA,
        created=found.metadata.creation_timestamp or "",
        hold_order=spec.hold_order,
        reserve_seconds=spec.reserve_seconds,
        demote_to=spec.demote_to,
        budgets=tuple(_budget(each, f"spec.budgets[{nth}]") for nth, each in enumerate(spec.budgets)),
        grants=tuple(_grant(each, f"spec.grants[{nth}]") for nth, each in enumerate(spec.grants)),
    )
    return in_force(tenant, found.status)


def with_grants(tree: dict[str, Any], now: float) -> dict[str, Any]:
    """Return a TenantQuota's tree, and in its status the grants that apply at a time. Raises Refused naming a field."""
    notes = [note_of_grant(each) for each in grants_at(read_tenant(tree), now)]
    return {**tree, "status": {**(tree.get("status") or {}), "grants": notes}}


def _amount(value: str | float, where: str) -> Decimal:
    found = quantity(value, where)
    if found < 0:
        raise Refused(Reason.INVALID, "below-zero", where, value=str(value))
    return found


def _budget(found: _Budget, where: str) -> Budget:
    if not is_time_zone(found.time_zone):
        raise Refused(Reason.INVALID, "unknown-time-zone", f"{where}.timeZone", value=found.time_zone)
    begins, until = _seconds(found.begins, f"{where}.from"), _seconds(found.until, f"{where}.until")
    if found.per is None and (begins is None or until is None):
        raise Refused(Reason.INVALID, "budget-without-period", where)
    hours, of = _amount(found.gpu_hours, f"{where}.gpuHours"), (found.tier, found.resource_flavor)
    return Budget(hours, *of, found.per, found.time_zone, begins or 0.0, until, found.on_exhausted)


def _grant(found: _Grant, where: str) -> Grant:
    begins, until = _seconds(found.begins, f"{where}.from"), _seconds(found.until, f"{where}.until")
    gpus = _amount(found.gpus, f"{where}.gpus")
    return Grant(gpus, begins or 0.0, until or 0.0, found.tier, found.resource_flavor, found.reason)


def _seconds(time: str | None, where: str) -> float | None:
    found = unix_seconds(time)
    if time is not None and (found is None or not 0 <= found < LATEST):
        raise Refused(Reason.INVALID, "no-time", where, value=time)
    return found


def checked_names(tree: object) -> Collection[str]:
    """Return the names that helm has checked a TenantQuota against."""
    return view(tree, _TenantQuota).metadata.annotations.get(CHECKED_NAMES, "").split()


def requirements_of(selector: LabelSelector) -> Iterator[Requirement]:
    """Yield the requirements; matchLabels are short for In with one value."""
    for key, value in selector.match_labels.items():
        yield Requirement(key, "In", (value,))
    yield from selector.match_expressions
