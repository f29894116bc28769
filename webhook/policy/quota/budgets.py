"""GPU-hours per period (budgets) and more GPUs until a date (grants): those of a tenant that apply at a time.

The leader integrates the hours and notes in the TenantQuota's status what is used and which grants apply. All replicas
read them there, so that one clock decides: the leader's, which is set by the API server.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.objects.quantities import written
from webhook.objects.refusal import AdmissionWarning, Phrase
from webhook.objects.times import calendar_period, date_text, rfc3339, unix_seconds
from webhook.objects.view import listed
from webhook.policy.quota.charges import what_renews
from webhook.policy.values.tenants import Budget, Grant, QuotaRow, SpentBudget, Tenant, row_name

HOUR = 3600
LONGEST_SUMMARY = 1024
MANY = 100
"""Hours from which fractions of an hour are not shown."""
Status = dict[str, Any]
NOTHING = Decimal(0)
SOON_SECONDS = 24 * HOUR
"""Seconds before the end of a grant at which an event is due."""
WARNED_AT = (Decimal("0.8"), Decimal("0.95"))
"""The fractions of a budget at which an event is due before it is used up."""


class Span(msgspec.Struct, frozen=True):
    """The time to which the hours of a budget belong, in seconds since 1970; `until` is None without an end."""

    begins: float
    until: float | None


def span_at(budget: Budget, now: float) -> Span:
    """Return the period of a budget at a time. A day, week, month or quarter begins at midnight in its time zone.

    Without `per`, the budget has one period, from its `begins` to its `until`.
    """
    return Span(*calendar_period(budget.per, budget.zone, now)) if budget.per else Span(budget.begins, budget.until)


class Used(msgspec.Struct, frozen=True):
    """The use of a budget in its period, as the leader has noted it.

    `gpu_seconds` were used from `since`, when the `span` began or the budget was added, to `until`. `gpus` are in use
    at `until`. `unsure` are the GPU-seconds of pods that were gone when a leader looked again, and may have ended
    before.
    """

    span: Span
    since: float
    until: float
    gpu_seconds: Decimal = NOTHING
    gpus: Decimal = NOTHING
    unsure: Decimal = NOTHING

    def is_on(self, now: float) -> bool:
        """Tell whether its period has begun and has not ended. If up to date, a budget with `per` is always on."""
        return self.span.begins <= now and (self.span.until is None or now < self.span.until)

    def runs_out(self, budget: Budget) -> float | None:
        """Return when the budget is used up at the rate of the GPUs in use, in seconds since 1970.

        None if it is used up already, if no GPU is in use, or if it lasts for its period.
        """
        left = budget.gpu_hours * HOUR - self.gpu_seconds
        if left <= 0 or not self.gpus:
            return None
        when = self.until + float(left / self.gpus)
        return when if self.span.until is None or when < self.span.until else None


def in_force(tenant: Tenant, status: Mapping[str, Any]) -> Tenant:
    """Return a tenant with the grants and the used up budgets that apply now, as the leader has noted in the status."""
    if not tenant.budgets and not tenant.grants:
        return tenant
    noted_now, of_spec = noted_grants(status), tenant.rows_of_spec or tenant.rows
    applying = [((each.tier, each.flavor), each.gpus) for each in tenant.grants if each in noted_now]
    rows = tuple(
        replace(row, hard=row.hard + sum(gpus for of, gpus in applying if of == (row.tier, row.flavor)))
        for row in of_spec
    )
    found = ((each, noted(status, each)) for each in tenant.budgets)
    over = [(each, used) for each, used in found if used and is_used_up(each, used)]
    # Whoever waits for several budgets waits for the last of them.
    over.sort(key=lambda each: each[1].span.until or float("inf"), reverse=True)
    spent = (
        replace(each.row, spent=SpentBudget(each.gpu_hours, used_hours(each, used), _until(each, used), each.per or ""))
        for each, used in over
    )
    return replace(tenant, rows=rows, spent=tuple(spent), rows_of_spec=of_spec)


def is_used_up(budget: Budget, used: Used) -> bool:
    return used.gpu_seconds >= budget.gpu_hours * HOUR


def state_of(budget: Budget, used: Used) -> Phrase:
    """Return the words for the use of a budget: how much, when there are new hours, and when it is used up."""
    name, out, when = row_name(budget.tier, budget.flavor), used.runs_out(budget), _until(budget, used)
    of, renews = f" of {name}" if name else "", what_renews(when, budget.per or "")
    share: Phrase | str = ""
    if not is_used_up(budget, used):
        share = Phrase("percent", percent=int(100 * used.gpu_seconds / HOUR / budget.gpu_hours))
    ends = Phrase("runs-out", when=date_text(out, budget.zone)) if out is not None else ""
    hours, total = used_hours(budget, used), budget.gpu_hours
    return Phrase("hours-used", used=hours, hours=total, of=of, share=share, renews=renews, out=ends)


def within_budgets(
    tenant: Tenant, status: Status, is_active: Callable[[QuotaRow], bool]
) -> tuple[str, str, Phrase] | None:
    """Return the condition WithinBudgets: its status, its reason, and the words on the fullest budget.

    A budget whose tier or flavor the policy has lost counts nothing and stops nobody, whatever was used of it before.
    If all budgets are such, the reason is Inactive. None for a tenant without budgets, and before the leader has
    counted.
    """
    active = [each for each in tenant.budgets if is_active(each.row)]
    if tenant.budgets and not active:
        rows = tuple(dict.fromkeys(row_name(each.tier, each.flavor) for each in tenant.budgets))
        return "True", "Inactive", Phrase("budgets-inactive", rows=rows)
    found = [(each, used) for each in active if (used := noted(status, each))]
    if not found:
        return None
    budget, used = max(found, key=lambda each: each[1].gpu_seconds / max(each[0].gpu_hours * HOUR, Decimal(1)))
    if is_used_up(budget, used):
        return "False", "UsedUp", state_of(budget, used)
    nearly = used.gpu_seconds >= WARNED_AT[0] * budget.gpu_hours * HOUR
    return "True", "NearlyUsed" if nearly else "Within", state_of(budget, used)


def budget_warnings(tenant: Tenant, status: Status) -> Iterator[AdmissionWarning]:
    """Warn the author of a TenantQuota of budgets that are used up, or will be before their period ends."""
    for nth, budget in enumerate(tenant.budgets):
        used = noted(status, budget)
        if used is not None and (is_used_up(budget, used) or used.runs_out(budget) is not None):
            yield AdmissionWarning("budget-ends", field=f"spec.budgets[{nth}]", state=state_of(budget, used))


def hours_summary(found: Iterable[tuple[Budget, Used]]) -> str:
    """Return the use of all budgets for `kubectl get`: gpu-training 4312.5/5000."""
    parts = (
        f"{row_name(budget.tier, budget.flavor) or 'total'} "
        f"{written(used_hours(budget, used))}/{written(budget.gpu_hours)}"
        for budget, used in found
    )
    return ", ".join(parts)[:LONGEST_SUMMARY]


def used_hours(budget: Budget, used: Used) -> Decimal:
    """Return the used hours with as many digits as people need: 4,200, 64.8, 0.021.

    They are rounded down, so they equal the hours of the budget only once it is used up.
    """
    exact = used.gpu_seconds / HOUR
    digits = Decimal(1) if exact >= MANY else Decimal("0.1") if exact >= 1 else Decimal("0.001")
    hours = exact.quantize(digits, ROUND_FLOOR)
    return max(hours, budget.gpu_hours) if is_used_up(budget, used) else hours


def _until(budget: Budget, used: Used) -> str:
    return date_text(used.span.until, budget.zone) if used.span.until else ""


# --- What the leader notes in the status.


def note_of(budget: Budget, used: Used) -> Status:
    """Return the entry of a budget in the status: its identity, its period, what is used, and when it runs out."""
    out = used.runs_out(budget)
    return {
        **_named(budget.tier, budget.flavor),
        **({"per": budget.per, "timeZone": budget.zone} if budget.per else {}),
        "from": rfc3339(used.span.begins),
        **({"until": rfc3339(used.span.until)} if used.span.until is not None else {}),
        "gpuHours": written(budget.gpu_hours),
        "usedHours": written(used_hours(budget, used)),
        "usedGpuSeconds": written(used.gpu_seconds.quantize(Decimal("0.001"))),
        "gpus": written(used.gpus),
        "asOf": rfc3339(used.until, exact=True),
        "since": rfc3339(used.since),
        **({"unsureGpuSeconds": written(used.unsure.quantize(Decimal("0.001")))} if used.unsure else {}),
        **({"runsOut": rfc3339(out)} if out is not None else {}),
    }


def noted(status: Mapping[str, Any], budget: Budget) -> Used | None:
    """Return what the leader has noted of a budget; None if nothing was, or if it can't be read.

    Right after a budget's time zone has changed, its note has the period in the old zone. The period in the new zone is
    returned, and the noted use.
    """
    for each in _entries(status, "budgets"):
        named = each.get("tier"), each.get("resourceFlavor"), each.get("per")
        began = budget.per is not None or unix_seconds(each.get("from")) == budget.begins
        if named != (budget.tier, budget.flavor, budget.per) or not began:
            continue
        begins, until, since, as_of = (unix_seconds(each.get(name)) for name in ("from", "until", "since", "asOf"))
        if begins is None or since is None or as_of is None:
            return None
        same = budget.per is not None and each.get("timeZone") == budget.zone
        try:
            used, gpus, unsure = (Decimal(each.get(name, "0")) for name in _NUMBERS)
            span = Span(begins, until) if same else span_at(budget, as_of)
        except (ArithmeticError, TypeError, ValueError):
            return None
        return Used(span, since, as_of, used, gpus, unsure)
    return None


_NUMBERS = "usedGpuSeconds", "gpus", "unsureGpuSeconds"


def note_of_grant(grant: Grant) -> Status:
    """Return the entry in the status of a grant that applies."""
    return {
        **_named(grant.tier, grant.flavor),
        "gpus": written(grant.gpus),
        **({"from": rfc3339(grant.begins)} if grant.begins else {}),
        "until": rfc3339(grant.until),
        **({"reason": grant.reason} if grant.reason else {}),
    }


def grants_at(tenant: Tenant, now: float) -> list[Grant]:
    """Return the grants that apply at a time."""
    return [each for each in tenant.grants if each.begins <= now < each.until]


def noted_grants(status: Mapping[str, Any]) -> list[Grant]:
    """Return the grants that apply, as the leader has noted in the status."""
    found = list[Grant]()
    for each in _entries(status, "grants"):
        begins, until = unix_seconds(each.get("from")) or 0.0, unix_seconds(each.get("until"))
        try:
            gpus = Decimal(each.get("gpus", "0"))
        except (ArithmeticError, TypeError, ValueError):
            continue
        if until is not None:
            reason = str(each.get("reason", ""))
            found.append(Grant(gpus, begins, until, each.get("tier"), each.get("resourceFlavor"), reason))
    return found


def granted(status: Mapping[str, Any]) -> Iterator[Phrase]:
    """Yield the words for each grant that applies."""
    for each in noted_grants(status):
        row = row_name(each.tier, each.flavor) or "the total"
        yield Phrase("granted", row=row, gpus=each.gpus, until=date_text(each.until, "UTC"))


def _entries(status: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in listed(status.get(name)) if isinstance(each, dict))


def _named(tier: str | None, flavor: str | None) -> Status:
    return {name: text for name, text in (("tier", tier), ("resourceFlavor", flavor)) if text}
