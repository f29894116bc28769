"""Reviews of workloads: the person who applies one reads the refusal that its pods would get out of sight.

A gang is booked as a whole. What was wrong before is no reason to refuse an update.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec

from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import facts_of_workload
from webhook.admission.gang_booking import gang_booking
from webhook.admission.lone_releases import looked_at
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.admission.workload_marks import held_to_class
from webhook.ledger.protocol import Booked, Ledger
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused
from webhook.objects.view import read
from webhook.policy.decide_workload import (
    WorkloadDecision,
    decide_workload,
    fit_of,
    gang_fit,
    growth_told,
    lower_tiers,
    uncounted_in,
)
from webhook.policy.quota.charges import Charge, Fit, Shortfall
from webhook.policy.quota.gangs import GangDemand
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.warning_texts import said
from webhook.policy.workloads.lifecycle import is_suspended


@dataclass(frozen=True, slots=True)
class Judged:
    """A workload as it is, or as it was. `refused`: the GPUs for which its quota refuses it. `runs`: not suspended."""

    verdict: Verdict
    refused: Decimal = Decimal(0)
    decision: WorkloadDecision | None = None
    tenant: Tenant | None = None
    runs: bool = True

    @property
    def gang(self) -> GangDemand | None:
        """The gang that is charged to its tenant."""
        gang = self.decision.gang if self.decision else None
        charged = gang and self.tenant and any(self.tenant.charges(each.gpus) for each in gang.charges)
        return gang if charged else None


def _is_let_run(request: Request) -> bool:
    """Whether an update lets run a workload that was suspended."""
    return (
        request.operation == "UPDATE"
        and is_suspended(_tree(request.old_object))
        and not is_suspended(_tree(request.object))
    )


async def validate(request: Request, mode: Mode, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A workload's verdict; on an update, a refusal of the same mistake that the old object had is only a warning.

    It stays refused where it asks for more GPUs than before. A warning that the old object had is not repeated:
    controllers update what they reconcile all the time.
    """
    judged = await _judged(request.object, request, cluster, ledger, policy)
    judged = replace(judged, verdict=held_to_class(request, judged.verdict, policy))
    verdict, updated = judged.verdict, request.operation == "UPDATE"
    if judged.decision and not judged.decision.gang and not verdict.refusal and _is_let_run(request):
        verdict = await looked_at(verdict, judged.decision, request, ledger, policy)
        judged = replace(judged, verdict=verdict)
    if not updated or not (verdict.refusal or verdict.warnings or judged.decision):
        return await _booked(judged, None, request, mode, ledger)
    before = await _judged(request.old_object, request, cluster, ledger, policy)
    fresh = tuple(each for each in verdict.warnings if each not in before.verdict.warnings)
    fresh += _no_room(judged, before, ledger)
    judged = replace(judged, verdict=replace(verdict, warnings=fresh))
    released = judged.gang is not None and before.gang is None
    if not released and judged.refused <= before.refused and _alike(verdict.refusal, before.verdict.refusal):
        return replace(judged.verdict, refusal=None, warnings=(*fresh, verdict.refusal or ""))
    return await _booked(judged, before.gang, request, mode, ledger)


def _alike(refusal: str | None, before: str | None) -> bool:
    """Whether it is the same mistake, but for its numbers: a workload that is too large may be scaled down in steps."""
    return refusal is not None and before is not None and _mistake(refusal) == _mistake(before)


def _mistake(refusal: str) -> str:
    return re.sub(r"[0-9.]+", "", refusal.partition(" Would fit: ")[0])


async def _judged(raw: msgspec.Raw, request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Judged:
    """The verdict on the object by itself. At an update usage counts its own pods, so it is left out."""
    try:
        row = policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)]
        known = await facts_of_workload(_tree(raw), row, read(raw, Named).metadata, request.namespace, cluster, policy)
        facts, decision = known.facts, decide_workload(known.whole, known.facts, policy)
    except Refused as refused:
        return Judged(Verdict(refusal=refused.sentence, reason=refused.reason))
    notes = tuple(_uncounted(problem) for problem in facts.unread)
    if known.unread:
        notes = (said("runtime-unread", runtime=known.unread), *notes)
    if decision is None:
        return Judged(Verdict(warnings=(*uncounted_in(facts, policy), *notes)))
    tenant = facts.tenant
    runs = not is_suspended(known.whole)
    starts = request.operation == "CREATE" and runs
    usage = ledger.usage(tenant, decision.shared) if tenant and not tenant.charged_elsewhere and starts else None
    fit = fit_of(decision, usage)
    name = tenant.name if tenant else None
    verdict = Verdict(assignment=decision.assignment, warnings=decision.warnings, tenant=name)
    return Judged(verdict.fitted(replace(fit, warnings=fit.warnings + notes)), fit.refused, decision, tenant, runs)


def _no_room(judged: Judged, before: Judged, ledger: Ledger) -> tuple[str, ...]:
    """What is said of a change by which it asks for more than has room now."""
    decision, tenant = judged.decision, judged.tenant
    if decision is None or tenant is None or tenant.charged_elsewhere or not judged.runs:
        return ()
    return growth_told(decision, before.decision if before.runs else None, ledger.usage(tenant, decision.shared))


async def _booked(judged: Judged, before: GangDemand | None, request: Request, mode: Mode, ledger: Ledger) -> Verdict:
    """The verdict once the gang is booked, if it asks for more than `before`; at a lower tier if the tenant demotes."""
    gang, decision, tenant, verdict = judged.gang, judged.decision, judged.tenant, judged.verdict
    if gang is None or decision is None or tenant is None or verdict.refusal or not _grown(gang, before):
        return verdict
    booking, dry_run = gang_booking(request, gang, tenant), request.dry_run or mode is Mode.Audit
    answer = await ledger.book(booking, dry_run=dry_run)
    if isinstance(answer, Booked):
        return verdict
    for tier in lower_tiers(decision, answer):
        charges = tuple(replace(each, tier=tier.name) for each in gang.charges)
        lower = await ledger.book(replace(booking, charges=charges, tier=tier.name), dry_run=dry_run)
        if isinstance(lower, Booked):
            assigned = replace(decision.assignment, tier=tier, demoted_from=answer.charge.tier)
            told = _demoted(request, tenant, answer, tier.name)
            return replace(verdict.fitted(Fit(None, (told,))), assignment=assigned)
    return verdict.fitted(gang_fit(decision, gang, answer))


def _grown(gang: GangDemand, before: GangDemand | None) -> bool:
    """Whether it asks for more of anything than it did: what was let in needs no room again."""
    was = _by_row(before.charges) if before else {}
    return any(gpus > was.get(key, Decimal(0)) for key, gpus in _by_row(gang.charges).items())


def _by_row(charges: tuple[Charge, ...]) -> dict[tuple[str | None, str | None], Decimal]:
    sums: dict[tuple[str | None, str | None], Decimal] = {}
    for each in charges:
        key = each.tier, each.flavor
        sums[key] = sums.get(key, Decimal(0)) + each.gpus
    return sums


def _demoted(request: Request, tenant: Tenant, short: Shortfall, tier: str) -> str:
    what = f"all pods of this {request.kind.kind} run as {tier}"
    return f"tenant {tenant.name} is over its quota of {short.charge.tier}: {what}"


def _uncounted(problem: str) -> str:
    """The warning on a claim that can't be read. It may be applied after the workload; its pods can't do without."""
    return f"{problem}, so its GPUs are not counted; the pods are refused until it can be read"


def _tree(raw: msgspec.Raw) -> dict[str, Any]:
    tree = msgspec.json.decode(raw)
    if not isinstance(tree, dict):
        raise Refused("object: not an object")
    return tree
