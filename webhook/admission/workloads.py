"""Reviews of workloads: the person who applies one reads the refusal that its pods would get out of sight.

A gang is booked as a whole. What was wrong before is no reason to refuse an update.
"""

from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import cannot_tell, facts_of_workload, usage_met, workload_as_sent
from webhook.admission.review import GroupVersionKind, Request
from webhook.admission.reviewer import Reviewer, Verdict, gang_booking, not_ours, with_free_name
from webhook.admission.workload_marks import marks
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Booked
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import AdmissionWarning, Missing, Refused, Unreadable
from webhook.objects.view import Tree, View, at, read, view, with_at
from webhook.policy.assignment.consistency import outranked_workload
from webhook.policy.assignment.kueue import changed_class
from webhook.policy.decide_workload import (
    WorkloadDecision,
    counted_while_held,
    decide_workload,
    fit_of,
    gang_fit,
    gang_in_two_tiers,
    growth_told,
    lower_tiers,
    unlisted_in,
)
from webhook.policy.quota.charges import Charge, Fit, GangDemand
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.workload import is_suspended


class Judged(msgspec.Struct, frozen=True):
    """A workload as it is, or as it was. `refused`: the GPUs for which its quota refuses it.

    `runs`: it is neither suspended nor managed elsewhere.
    """

    verdict: Verdict
    refused: Decimal = Decimal(0)
    decision: WorkloadDecision | None = None
    tenant: Tenant | None = None
    runs: bool = True

    @property
    def gang(self) -> GangDemand | None:
        gang = self.decision.gang if self.decision else None
        charged = gang and self.tenant and any(self.tenant.charges(each.gpus) for each in gang.charges)
        return gang if charged else None


class WorkloadReviewer(Reviewer, frozen=True):
    """Judges a workload, at its CREATE and at each UPDATE."""

    async def mutate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - the same in every mode
        if request.operation != "CREATE":
            raise not_ours(request)
        return await marks(request, self.cluster, self.ledger, self.policy)

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        """Judge a workload. On an update, a mistake that the old object had too is only a warning.

        It stays refused where it asks for more GPUs than before.
        """
        # 1. Judge the object by itself, and what this request writes for Kueue.
        judged = await self._judged(request.object, request)
        judged = replace(judged, verdict=_held_to_class(request, judged.verdict, self.policy))

        # 2. Of what will be booked ask whether the name is free.
        if judged.gang is not None:
            plural = self.policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)].plural
            judged = replace(judged, verdict=await with_free_name(judged.verdict, request, plural, self.cluster))

        # 3. Book a create; and an update of which nothing can be said.
        verdict, updated = judged.verdict, request.operation == "UPDATE"
        if not updated or not (verdict.refusal or verdict.warnings or judged.decision):
            return await self._booked(judged, None, request, mode)

        # 4. Compare an update with what was there. A warning that the old object had is not repeated: controllers
        #    update what they reconcile all the time.
        before = await self._judged(request.old_object, request)
        fresh = tuple(each for each in verdict.warnings if each not in before.verdict.warnings)
        fresh += self._no_room(judged, before)
        judged = replace(judged, verdict=replace(verdict, warnings=fresh))

        # 5. Let the mistake stay that was there before, unless it grows or begins to run.
        refusal, earlier = verdict.refusal, before.verdict.refusal
        as_before = refusal is not None and earlier is not None and refusal.same_mistake(earlier)
        released = judged.gang is not None and before.gang is None
        if as_before and not released and judged.refused <= before.refused:
            told = AdmissionWarning("let-in", refusal=refusal)
            return replace(judged.verdict, refusal=None, warnings=(*fresh, told))

        # 6. Book what is more than before.
        return await self._booked(judged, before.gang, request, mode)

    async def _judged(self, raw: msgspec.Raw, request: Request) -> Judged:
        """Judge the object by itself. At an update usage counts its own pods, so usage is left out."""
        cluster, policy = self.cluster, self.policy
        try:
            row = policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)]
            known = await facts_of_workload(
                workload_as_sent(raw), row, read(raw, Named).metadata, request.namespace, cluster, policy
            )
            facts, decision = known.facts, decide_workload(known.whole, known.facts, policy)
        except Refused as refused:
            return Judged(Verdict(refusal=refused.refusal))
        # a claim that can't be read may be applied after the workload; its pods can't do without
        notes = tuple(AdmissionWarning("claim-unread", problem=problem) for problem in facts.unread_claims)
        if known.unread_runtime:
            notes = (AdmissionWarning("runtime-unread", runtime=known.unread_runtime), *notes)
        if decision is None:
            return Judged(Verdict(warnings=(*unlisted_in(facts, policy), *notes)))
        tenant = facts.tenant
        runs = not decision.elsewhere and not is_suspended(known.whole)
        starts = request.operation == "CREATE" and runs
        usage, reserved = (
            self._usage(decision, tenant) if tenant and not tenant.charged_elsewhere and starts else (None, {})
        )
        fit = fit_of(decision, usage, reserved)
        if decision.waits:
            notes += tuple(counted_while_held(decision, await cluster.lookups.native_quotas(request.namespace)))
        name = tenant.name if tenant else None
        problem = gang_in_two_tiers(decision) or outranked_workload(decision.own, decision.leading.live, facts)
        if problem is not None:
            return Judged(Verdict(decision.assignment, refusal=problem, tenant=name))
        verdict = Verdict(assignment=decision.assignment, warnings=decision.warnings, tenant=name)
        return Judged(verdict.fitted(replace(fit, warnings=fit.warnings + notes)), fit.refused, decision, tenant, runs)

    def _no_room(self, judged: Judged, before: Judged) -> tuple[AdmissionWarning, ...]:
        """Return the warnings of a change that asks for more than has room now."""
        decision, tenant = judged.decision, judged.tenant
        if decision is None or tenant is None or tenant.charged_elsewhere or not judged.runs:
            return ()
        return growth_told(decision, before.decision if before.runs else None, *self._usage(decision, tenant))

    def _usage(self, decision: WorkloadDecision, tenant: Tenant) -> tuple[Usage, Usage]:
        """Usage that counts against a workload, and what of it is reserved for the queue."""
        charge = decision.leading.charge
        rank = self.policy.tiers.rank(charge.tier if charge else None)
        return usage_met(self.ledger, tenant, rank, decision.shared)

    async def _booked(self, judged: Judged, before: GangDemand | None, request: Request, mode: Mode) -> Verdict:
        """Book the gang, if it asks for more than `before`.

        It is booked at a lower tier if the tenant demotes.
        """
        gang, decision, tenant, verdict = judged.gang, judged.decision, judged.tenant, judged.verdict
        if gang is None or decision is None or tenant is None or verdict.refusal or not _grown(gang, before):
            return verdict
        if mode is Mode.Enforce and decision.waits:
            return verdict  # its pods wait behind our gate, and the leader books it when it is its turn
        booking, dry_run = gang_booking(request, gang, tenant, self.policy.tiers), request.dry_run or mode is Mode.Audit
        answer = await self.ledger.book(booking, dry_run=dry_run)
        if isinstance(answer, Booked):
            return verdict
        is_new = request.operation == "CREATE"
        for tier in lower_tiers(decision, answer):
            charges = tuple(replace(each, tier=tier.name) for each in gang.charges)
            demoted = replace(booking, charges=charges, tier=tier.name, rank=tier.value)
            lower = await self.ledger.book(demoted, dry_run=dry_run)
            if isinstance(lower, Booked):
                chosen = answer.charge.tier
                assigned = decision.assignment.demoted_to(tier, decision.leading.tier_request)
                told = AdmissionWarning(
                    "gang-demoted" if is_new else "new-pods-demoted",
                    tenant=tenant.name,
                    chosen=chosen,
                    kind=request.kind.kind,
                    tier=tier.name,
                    evicted=assigned.evicted or "",
                )
                return replace(verdict.fitted(Fit(None, (told,))), assignment=assigned)
        return verdict.fitted(gang_fit(decision, gang, self.with_reserved(answer, tenant)))


def _held_to_class(request: Request, verdict: Verdict, policy: TierPolicy) -> Verdict:
    """The verdict on a workload; refused where this request writes the class of another tier into Kueue's label."""
    if policy.kueue is None or verdict.refusal is not None or verdict.assignment is None:
        return verdict
    before = read(request.old_object, Named).metadata.labels if request.operation == "UPDATE" else {}
    after = read(request.object, Named).metadata.labels
    problem = changed_class(before, after, verdict.assignment.tier, policy)
    return replace(verdict, refusal=problem)


def _grown(gang: GangDemand, before: GangDemand | None) -> bool:
    """Tell whether it asks for more of anything than it did: what was admitted needs no room again."""
    was = _by_row(before.charges) if before else {}
    return any(gpus > was.get(key, Decimal(0)) for key, gpus in _by_row(gang.charges).items())


def _by_row(charges: tuple[Charge, ...]) -> dict[tuple[str | None, str | None], Decimal]:
    sums: dict[tuple[str | None, str | None], Decimal] = {}
    for each in charges:
        key = each.tier, each.flavor
        sums[key] = sums.get(key, Decimal(0)) + each.gpus
    return sums


SCALE = "scale"


class _ScaleSpec(View, frozen=True):
    """The wished number of replicas; zero is absent on the wire."""

    replicas: Any = None


class _Scale(View, frozen=True):
    """An object of autoscaling/v1."""

    metadata: Metadata = Metadata()
    spec: _ScaleSpec = _ScaleSpec()


async def as_update(request: Request, cluster: Cluster, policy: TierPolicy) -> Request:
    """The update of the workload that a scale makes; the request itself where no row has such a scale.

    A Scale tells the number of replicas, and of the workload name and uid. Raises Refused where that can't be read.
    Source: custom-resource-definitions/#scale-subresource of the Kubernetes documentation.
    """
    row = policy.kinds.by_scaled.get((request.resource.group, request.resource.resource))
    if row is None:
        return request
    scale = read(request.object, _Scale)
    replicas = 0 if scale.spec.replicas is None else scale.spec.replicas
    stored = await _stored(request, scale.metadata.uid, row, cluster)
    return replace(
        request,
        kind=GroupVersionKind(row.group, request.resource.version, row.kind),
        sub_resource="",
        object=msgspec.Raw(msgspec.json.encode(_scaled(stored, row, replicas))),
        old_object=msgspec.Raw(msgspec.json.encode(stored)),
    )


async def _stored(request: Request, uid: str, row: KindRow, cluster: Cluster) -> Tree:
    """The workload as it is now: the API server compares what it writes with that, or asks again."""
    shown = f"{row.kind}/{request.name[:63]}"
    try:
        found = await cluster.lookups.stored_workload(request.namespace, request.name, row)
        if view(found, Named).metadata.uid != uid:
            raise Missing(f"{shown} has another UID than its scale: it was deleted and made anew")
    except Unreadable as problem:
        raise Refused.of(cannot_tell(problem, "tell what is scaled")) from problem
    return found


def _scaled(stored: Tree, row: KindRow, replicas: object) -> Tree:
    """The workload with so many replicas. A change of its spec is its next generation."""
    after = with_at(stored, row.scale, replicas)
    if at(stored, row.scale) == replicas:
        return after
    return with_at(after, "metadata.generation", (view(stored, Named).metadata.generation or 1) + 1)
