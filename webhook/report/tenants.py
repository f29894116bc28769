"""Tenants as their TenantQuotas show them: what each row allows, what is in use, and what is wrong."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.report.shown import Gpus, Shown, as_number
from webhook.sentences.sentence import sentence

_CONDITIONS = ("Ready", "Exact", "GangsWhole")


class RowShown(Shown, frozen=True):
    """A row of a quota, in GPUs. `free` is what is neither used nor reserved."""

    subject: str
    hard: Gpus
    used: Gpus
    reserved: Gpus
    free: Gpus

    @property
    def numbers(self) -> tuple[str, str, str, str]:
        return str(self.used), str(self.reserved), str(self.hard), str(self.free)

    @property
    def is_full(self) -> bool:
        """Nothing is free of it, and something could be."""
        return bool(self.hard) and not self.free

    @property
    def shares(self) -> tuple[float, float]:
        return (self.used / self.hard, self.reserved / self.hard) if self.hard else (0.0, 0.0)


class TenantShown(Shown, frozen=True):
    """A tenant. `problems` are sentences of conditions that are not as they should be."""

    name: str
    rows: tuple[RowShown, ...]
    on_exceed: str
    problems: tuple[str, ...] = ()


def tenant_shown(found: TenantQuota) -> TenantShown:
    """A TenantQuota as it says of itself; one that nobody has counted yet has no rows."""
    usage = found.status.get("usage")
    elsewhere = found.tenant is not None and found.tenant.charged_elsewhere
    return TenantShown(
        name=found.name,
        rows=tuple(_row(each) for each in usage or () if isinstance(each, dict)),
        on_exceed="charged elsewhere" if elsewhere else found.tenant.on_exceed if found.tenant else "-",
        problems=tuple(dict.fromkeys(_problems(found))),
    )


def _row(usage: dict[str, Any]) -> RowShown:
    named = [str(usage[key]) for key in ("tier", "resourceFlavor") if usage.get(key)]
    hard, used, reserved = (_gpus(usage.get(key)) for key in ("hard", "used", "reserved"))
    free = max(hard - used - reserved, Decimal(0))
    return RowShown(" on ".join(named) or "total", *map(as_number, (hard, used, reserved, free)))


def _gpus(text: object) -> Decimal:
    """0 for what nobody of ours wrote."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return Decimal(0)
    return number if number.is_finite() else Decimal(0)


def _problems(found: TenantQuota) -> Iterator[str]:
    if found.problem is not None:
        yield sentence(found.problem)
    told = found.status.get("conditions")
    by_type = {each.get("type"): each for each in told or () if isinstance(each, dict)}
    for kind in _CONDITIONS:
        each = by_type.get(kind, {})
        if each.get("status") != "True" or each.get("reason") == "OverQuota":
            yield from _sentence(kind, each)


def _sentence(kind: str, condition: dict[str, Any]) -> Iterator[str]:
    if condition.get("message"):
        yield f"{condition.get('reason', kind)}: {condition['message']}"
    elif not condition and kind == "Ready":
        yield "NotCounted: no replica of gpu-tiers that leads has looked at it yet"
