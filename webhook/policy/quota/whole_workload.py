"""Whether a whole workload fits its tenant's rows, now or ever. Its pods are booked, the workload is not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from webhook.policy.quota.charges import Charge, Fit, together
from webhook.policy.quota.refusals import no_room_for_more, no_room_now, too_large
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.policy.values.tiers import Tier


def whole_fit(
    charges: Sequence[Charge],
    tenant: Tenant,
    tiers: Iterable[Tier],
    what: str,
    *,
    at_once: bool,
    usage: Usage | None,
) -> Fit:
    """Refused where a row could never hold all charges; a warning where a row can't hold them now.

    A tenant that demotes or warns gets only warnings. `at_once`: the pods of all templates run together. Without
    `usage`, which is that without the claims that they share, only the limits count: at an update the workload's own
    pods are among those that use the row.
    """
    warnings: list[str] = []
    for row, charge in _drawn(charges, tenant, at_once=at_once):
        if charge.gpus > row.hard:
            sentence = too_large(row, charge, tenant, tiers, what)
            if tenant.on_exceed == "Deny":
                return Fit(sentence, tuple(warnings), charge.gpus)
            warnings.append(sentence)
        elif usage is not None and usage.get(row, Decimal(0)) + charge.gpus > row.hard:
            warnings.append(no_room_now(row, usage.get(row, Decimal(0)), charge, tenant, what))
    return Fit(None, tuple(warnings))


def growth_warnings(
    charges: Sequence[Charge], before: Sequence[Charge], tenant: Tenant, usage: Usage, what: str
) -> Iterator[str]:
    """Warnings of rows that could hold all charges, and have no room now for what is more in them than before."""
    for row, charge in _drawn(charges, tenant, at_once=True):
        more = charge.gpus - together(each for each in before if row.counts(each.tier, each.flavor))
        used = usage.get(row, Decimal(0))
        if more > 0 and charge.gpus <= row.hard < used + more:
            yield no_room_for_more(row, used, more, tenant, what)


def _drawn(charges: Sequence[Charge], tenant: Tenant, *, at_once: bool) -> Iterator[tuple[QuotaRow, Charge]]:
    """What is drawn on each row, under tier and flavor of the first charge; steps draw one after another."""
    for row in tenant.rows:
        drawing = [each for each in charges if each.gpus and row.counts(each.tier, each.flavor)]
        if drawing:
            gpus = together(drawing) if at_once else max(each.gpus for each in drawing)
            yield row, replace(drawing[0], gpus=gpus)
