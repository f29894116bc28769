"""The sentences that a person over quota reads. `what` asks for the GPUs: POD, "this PyTorchJob"."""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType

from webhook.objects.quantities import written
from webhook.policy.quota.charges import Charge, Shortfall, alternatives, never_fits
from webhook.policy.quota.native_quotas import NativeRoom
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tiers import Tier

POD = "this pod"
LET_IN = "It is let in, because the tenant's onExceed is Warn."

NOWHERE: Mapping[str, NativeRoom] = MappingProxyType({})


def over_quota(
    short: Shortfall, tenant: Tenant, tiers: Collection[Tier], what: str, native: Mapping[str, NativeRoom] = NOWHERE
) -> str:
    """No room now: what is used, what was asked for, and in which of the tiers it would fit, beside native quotas."""
    charge, used = short.charge, short.usage.get(short.row, Decimal(0))
    if charge.gpus > short.row.hard:
        return too_large(short.row, charge, tenant, tiers, what)
    own = dict(alternatives(charge, tenant, short.usage, tiers))
    bounds = {tier: room.left for tier, room in native.items()}
    offered = dict(alternatives(charge, tenant, short.usage, tiers, bounds))
    fits = ", ".join(f"{tier.name} ({left})" for tier, left in offered.items())
    lower = dict.fromkeys(native[tier.name].quota for tier, left in own.items() if offered.get(tier) != left)
    see = " and ".join([f"TenantQuota/{tenant.name}", *(f"ResourceQuota/{name}" for name in lower)])
    return (
        f"tenant {tenant.name}: {short.row.subject} is at {written(used)} of {_gpus(short.row.hard)}; "
        f"{what} asks for {written(charge.gpus)}. Would fit: {fits or 'no tier now'}. See {see}."
    )


def too_large(row: QuotaRow, charge: Charge, tenant: Tenant, tiers: Iterable[Tier], what: str) -> str:
    """No room ever: the row is smaller than what was asked for."""
    roomy = [tier.name for tier in tiers if never_fits(Charge(charge.gpus, tier.name, charge.flavor), tenant) is None]
    asked = f"asks for {written(charge.gpus)}" if what == POD else f"asks for {written(charge.gpus)} in all"
    return (
        f"tenant {tenant.name}: {row.subject} allows {_gpus(row.hard)}; {what} {asked}. "
        f"Would fit: {', '.join(roomy) or 'no tier'}. See TenantQuota/{tenant.name}."
    )


def no_room_now(row: QuotaRow, used: Decimal, charge: Charge, tenant: Tenant, what: str) -> str:
    """The warning for a workload whose pods will be refused until others of the tenant end."""
    return (
        f"tenant {tenant.name}: {row.subject} is at {written(used)} of {_gpus(row.hard)}; {what} asks for "
        f"{written(charge.gpus)} in all, so not all of its pods can start now"
    )


def no_room_for_more(row: QuotaRow, used: Decimal, more: Decimal, tenant: Tenant, what: str) -> str:
    """The warning for a workload that grows by more pods than have room now."""
    return (
        f"tenant {tenant.name}: {row.subject} is at {written(used)} of {_gpus(row.hard)}; {what} asks for "
        f"{written(more)} more, so not all of its pods can start now"
    )


def _gpus(number: Decimal) -> str:
    return f"{written(number)} {'GPU' if number == 1 else 'GPUs'}"
