"""The usage in a TenantQuota's status: a row for each of its quotas, and all in one line for `kubectl get`."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Self

import msgspec

from webhook.objects.quantities import written
from webhook.policy.quota.charges import StrandedGang
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

LONGEST_SUMMARY = 1024
NOTHING = Decimal(0)

Status = dict[str, Any]


class Count(msgspec.Struct, frozen=True):
    """GPUs on a tenant's rows: used by pods that exist, reserved for pods not seen yet, and reserved for the queue.

    `stale` says why the pods can't be followed now; the usage shown then stays as it was written last. `repairing` says
    why nothing is known of them: the account is rebuilt. `stranded` are gangs that can't run within the quota.
    """

    used: Usage = msgspec.field(default_factory=dict)
    reserved: Usage = msgspec.field(default_factory=dict)
    for_queue: Usage = msgspec.field(default_factory=dict)
    stale: str = ""
    repairing: str = ""
    stranded: tuple[StrandedGang, ...] = ()

    @classmethod
    def of(cls, booked: Usage, used: Usage, for_queue: Usage, stale: str = "") -> Self:
        """Return the count of an account: reservations are what is booked beyond what is used."""
        return cls(used, {row: gpus - used[row] for row, gpus in booked.items()}, for_queue, stale)

    def on(self, row: QuotaRow) -> Decimal:
        """GPUs that pods of the tenant have or will have. Those for the queue are nobody's yet."""
        return self.used.get(row, NOTHING) + self.reserved.get(row, NOTHING)


def usage_status(tenant: Tenant | None, count: Count, before: Status) -> Status:
    """The fields of the status that tell of usage; `before` is the whole status as it was."""
    if tenant is None or tenant.charged_elsewhere:
        return {"usage": [], "summary": "charged elsewhere" if tenant else ""}
    if count.stale:
        return {key: before[key] for key in ("usage", "summary") if key in before}
    summary = ", ".join(_summary(row, count) for row in tenant.rows)
    return {"usage": [_row(row, count) for row in tenant.rows], "summary": summary[:LONGEST_SUMMARY]}


def over_quota_rows(tenant: Tenant | None, count: Count) -> Iterator[str]:
    """The rows on which more is booked than they allow, in words."""
    for row in tenant.rows if tenant and not tenant.charged_elsewhere else ():
        if count.on(row) > row.hard:
            yield f"{row.subject} is at {written(count.on(row))} of {written(row.hard)}"


def _summary(row: QuotaRow, count: Count) -> str:
    """Used of hard; what is reserved only where there is some."""
    parts = (count.reserved.get(row, NOTHING), "reserved"), (count.for_queue.get(row, NOTHING), "for the queue")
    more = ", ".join(f"+{written(gpus)} {what}" for gpus, what in parts if gpus)
    return f"{row.label} {written(count.used.get(row, NOTHING))}/{written(row.hard)}" + (f" ({more})" if more else "")


def _row(row: QuotaRow, count: Count) -> Status:
    bounds = {"tier": row.tier, "resourceFlavor": row.flavor}
    numbers = {
        "hard": row.hard,
        "used": count.used.get(row, NOTHING),
        "reserved": count.reserved.get(row, NOTHING),
    }
    if for_queue := count.for_queue.get(row):
        numbers["reservedForQueue"] = for_queue
    return {name: text for name, text in bounds.items() if text} | {
        name: written(number) for name, number in numbers.items()
    }
