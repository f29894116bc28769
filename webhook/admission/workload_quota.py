"""Whether a whole workload fits its tenant's rows, now or ever; books nothing: its pods do."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from webhook.admission.parts import Part
from webhook.admission.ports import Ledger
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.objects.quantities import written
from webhook.policy.assignment.limits import acceptable
from webhook.policy.quota.charges import Charge, too_large
from webhook.policy.values.tenants import QuotaRow, Tenant


def against_quota(verdict: Verdict, parts: list[Part], request: Request, ledger: Ledger) -> Verdict:
    """Refused where a row of the tenant could never hold it; at CREATE, warned about where one can't hold it now.

    A tenant that demotes or warns is only told. At an update the pods that run already are among those that use the
    row, so that nothing is known of now.
    """
    tenant = parts[0].ask.facts.tenant
    if tenant is None or tenant.charged_elsewhere:
        return verdict
    what, usage = f"this {request.kind.kind}", ledger.usage(tenant)
    for row, charge in _drawn(parts, tenant):
        if charge.gpus > row.hard:
            sentence = too_large(row, charge, tenant, acceptable(parts[0].ask), what)
            if tenant.on_exceed == "Deny":
                return replace(verdict, refusal=sentence)
            verdict = replace(verdict, warnings=(*verdict.warnings, sentence))
            continue
        used = usage.get(row, Decimal(0))
        if request.operation == "CREATE" and used + charge.gpus > row.hard:
            verdict = replace(verdict, warnings=(*verdict.warnings, no_room_now(row, used, charge, tenant, what)))
    return verdict


def _drawn(parts: list[Part], tenant: Tenant) -> Iterator[tuple[QuotaRow, Charge]]:
    """What the parts draw on each row, under tier and flavor of the first that does; steps draw one after another."""
    together = parts[0].ask.facts.owners[0].row.at_once
    for row in tenant.rows:
        charges = [
            part.charge for part in parts if part.charge.gpus and row.counts(part.charge.tier, part.charge.flavor)
        ]
        if charges:
            held = [each.gpus for each in charges]
            yield row, replace(charges[0], gpus=sum(held, Decimal(0)) if together else max(held))


def no_room_now(row: QuotaRow, used: Decimal, charge: Charge, tenant: Tenant, what: str) -> str:
    """The warning for a workload whose pods will be refused until others of the tenant end."""
    return (
        f"tenant {tenant.name}: {row.subject} is at {written(used)} of {written(row.hard)} GPUs; {what} asks for "
        f"{written(charge.gpus)} in all, so that not all of its pods can start now"
    )
