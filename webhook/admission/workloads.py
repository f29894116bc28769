"""Reviews of workloads, so that their author sees the refusal that otherwise only the pods' controller would get.

A gang is booked as a whole. A mistake that the old object had is no reason to refuse an update.

At its CREATE a workload's tier is written where others read it: Kueue's label, the class of its pod templates, and the
rank and queue of a Volcano Job. A class is written only if a second `kubectl apply` of the same manifest leaves it
alone, so only below maps. An apply replaces a list as a whole, so it would remove the class, and a JobSet, whose spec
is immutable, could not be applied twice. So a workload with a template in a list keeps all of its templates.

With `tierAccess: RBAC` a user who names a tier needs the right to use it. The chart then sends every workload here,
also those that controllers have made, and updates of owners. Otherwise a person could write an owner into a workload
that names a tier, and the pods that a controller makes for it would get the tier.
"""

from contextlib import suppress
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.admission import patch
from webhook.admission.facts import WorkloadFacts, facts_of_workload, usage_met
from webhook.admission.review import Operation, Request
from webhook.admission.reviewer import Reviewer, Verdict, gang_booking, not_ours, with_free_name
from webhook.ledger.protocol import Booked, Ledger
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.refusal import OBJECT, AdmissionWarning, Reason, Refusal, Refused
from webhook.objects.view import Tree, item_at, read, steps
from webhook.policy.assignment import kueue
from webhook.policy.checkpoint.job_failures import LOST_NODE, fields_due
from webhook.policy.decide import request_of_member, tiers_named_in
from webhook.policy.decide_workload import WorkloadDecision, decide_workload, made_by_another, unlisted_in
from webhook.policy.quota.charges import GangDemand, QuotaVerdict, Shortfall, by_tier_and_flavor, shortfall
from webhook.policy.quota.refusals import beyond_budgets
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tier_policy import Mode
from webhook.policy.values.tiers import live_class
from webhook.policy.workloads.workload import has_ended, is_suspended


class Judged(msgspec.Struct, frozen=True):
    """The verdict on a workload as it is, or as it was. `refused`: the GPUs for which its quota refuses it.

    `runs`: it is neither suspended nor managed elsewhere. `whole` is the object with the templates of its runtime.
    """

    verdict: Verdict
    refused: Decimal = Decimal(0)
    decision: WorkloadDecision | None = None
    tenant: Tenant | None = None
    runs: bool = True
    whole: Tree = {}

    @property
    def gang(self) -> GangDemand | None:
        gang = self.decision.gang if self.decision else None
        charged = gang and self.tenant and any(self.tenant.charges(each.gpus) for each in gang.charges)
        return gang if charged else None

    @property
    def templates(self) -> list[object]:
        members = self.decision.own.members if self.decision else ()
        return [item_at(self.whole, steps(member.path)) for member in members]


class WorkloadReviewer(Reviewer, frozen=True):
    """Judges a workload, at its CREATE and at each UPDATE."""

    async def mutate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - the same in every mode
        """Return the patch that writes a workload's tier for Kueue, Volcano and readers of templates.

        With `podFailurePolicy: Add`, a Job that saves also gets podFailurePolicy and podReplacementPolicy, and its
        author a warning. Raises Refused for a person's mistake, and BadReview for an update.
        """
        if request.operation != "CREATE":
            raise not_ours(request)

        # 1. Look nothing up if nobody reads the tier there.
        kind, policy = request.kind.group_kind, self.policy
        forgives = kind == _JOB and policy.checkpoint.pod_failure_policy == "Add"
        if policy.kueue is None and policy.templates != "Mutate" and kind != _VOLCANO_JOB and not forgives:
            return Verdict()

        # 2. Decide.
        known = await self._known(request.object, request)
        tree, facts = known.sent, known.facts
        decision = decide_workload(known.whole, facts, policy)
        if decision is None:
            return Verdict()

        # 3. Write it for each reader: Kueue, readers of templates, the Job controller, Volcano.
        applied, rank, more = known.metadata.controller is None, "", tuple[Operation, ...]()
        warnings: tuple[AdmissionWarning, ...] = ()
        if forgives and decision.saving:
            fields = fields_due(tree, decision.saving)
            more = tuple(patch.add(f"/spec/{field}", value) for field, value in fields.items())
            if fields and not made_by_another(facts) and await self._would_be_admitted(decision, known.whole, request):
                warnings = (LOST_NODE,)
        if kind == _VOLCANO_JOB:
            more = tuple(patch.volcano_queue(tree, decision, policy))
            rank = await _volcano_rank(request, decision, self.ledger)
        queued = applied or kind == _JOB
        written = patch.of_workload(tree, decision, policy, queued=queued, applied=applied, rank=rank)
        tenant = facts.tenant.name if facts.tenant else None
        return Verdict(decision.assignment, (*more, *written), warnings, tenant=tenant)

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        """Judge a workload, and book a gang. On an update, a mistake that the old object had too is only a warning.

        It stays refused if it asks for more GPUs than before, or if a gang begins to run.
        """
        # 1. Ask for the right to its tiers. A workload that a controller made is judged further only if it is a gang
        #    and its controller is not, because without tierAccess the chart sends only those.
        row = self.policy.kinds.by_kind[request.kind.group_kind]
        if self.policy.tier_access == "RBAC":
            if (problem := await self._unentitled(request)) is not None:
                return Verdict(refusal=problem)
            controller = read(request.object, Named).metadata.controller
            gangs = {each.kind for each in self.policy.kinds.by_kind.values() if each.gang}
            if controller and (not row.gang or controller.kind in gangs):
                return Verdict()

        # 2. Judge the object by itself. This request may not give Kueue's label the class of another tier.
        judged, updated = await self._judged(request.object, request), request.operation == "UPDATE"
        assigned = judged.verdict.assignment
        if self.policy.kueue is not None and judged.verdict.refusal is None and assigned is not None:
            was = read(request.old_object, Named).metadata.labels if updated else {}
            labels = read(request.object, Named).metadata.labels
            problem = kueue.changed_class(was, labels, assigned.tier, self.policy)
            judged = replace(judged, verdict=replace(judged.verdict, refusal=problem))

        # 3. Check that the name is free before booking.
        if judged.gang is not None:
            judged = replace(judged, verdict=await with_free_name(judged.verdict, request, row.plural, self.cluster))

        # 4. Book a create, and an update without a readable old object.
        verdict = judged.verdict
        if not updated or not (verdict.refusal or verdict.warnings or judged.decision):
            return await self._book(judged, None, request, mode)

        # 5. Compare an update with the old object. A warning that the old object had is not repeated, because
        #    controllers update what they reconcile all the time.
        before = await self._judged(request.old_object, request)
        fresh = tuple(each for each in verdict.warnings if each not in before.verdict.warnings)
        decision, tenant = judged.decision, judged.tenant
        if decision is not None and tenant is not None and not tenant.charged_elsewhere and judged.runs:
            # without room now
            fresh += decision.growth(before.decision if before.runs else None, *self._usage(decision, tenant))
        judged = replace(judged, verdict=replace(verdict, warnings=fresh))

        # 6. Accept a mistake that was there before, unless it grows or begins to run.
        refusal, earlier = verdict.refusal, before.verdict.refusal
        as_before = refusal is not None and earlier is not None and refusal.same_mistake(earlier)
        released = judged.gang is not None and before.gang is None
        if as_before and not released and judged.refused <= before.refused:
            warning = AdmissionWarning("let-in", refusal=refusal)
            return replace(judged.verdict, refusal=None, warnings=(*fresh, warning))

        # 7. Book the increase. A changed template replaces the pods of most kinds that may change theirs.
        booked, old = await self._book(judged, before.gang, request, mode), before.decision
        admitted = booked.refusal is None and booked.assignment == assigned
        if not admitted or decision is None or old is None or not before.runs or has_ended(before.whole):
            return booked
        stay = tuple(decision.relabelled(old))
        unchanged = bool(stay) and judged.templates == before.templates
        return replace(booked, warnings=booked.warnings + stay) if unchanged else booked

    async def _unentitled(self, request: Request) -> Refusal | None:
        """Return the refusal of a user who names a tier that the old object did not name; None if the user may.

        Raises Refused if an owner can't be read, because the owner may be readable again when the pods come. An invalid
        workload passes here, because it makes no pods.
        """
        before = frozenset[str]()
        try:
            new = (await self._known(request.object, request)).facts
        except Refused as refused:
            if refused.refusal.reason is Reason.UNREADABLE:
                raise
            return None
        with suppress(Refused):  # at a create there is no old object
            old = (await self._known(request.old_object, request)).facts
            before = frozenset(tiers_named_in(old, self.policy))
        named = [each for each in tiers_named_in(new, self.policy) if each not in before]
        pods = (request_of_member(each, new, self.policy, holds_gpus=True) for each in new.owners[0].members)
        return await self.unentitled(request, named, replace(new, owners=new.owners[1:]), pods)

    async def _known(self, raw: msgspec.Raw, request: Request) -> WorkloadFacts:
        """Return a workload as its author sent it, without Kueue's default class, and the facts about it.

        Raises Refused if it is not an object, or if a fact can't be read.
        """
        tree, row = msgspec.json.decode(raw), self.policy.kinds.by_kind[request.kind.group_kind]
        if not isinstance(tree, dict):
            raise Refused(Reason.INVALID, "no-object", OBJECT)
        tree, metadata = kueue.without_default_classes(tree), read(raw, Named).metadata
        return await facts_of_workload(tree, row, metadata, request.namespace, self.cluster, self.policy)

    async def _judged(self, raw: msgspec.Raw, request: Request) -> Judged:
        """Judge the object by itself. Present usage counts only at the CREATE of a workload that runs.

        At an update it includes the workload's own pods.
        """
        policy = self.policy
        try:
            known = await self._known(raw, request)
            facts, decision = known.facts, decide_workload(known.whole, known.facts, policy)
        except Refused as refused:
            return Judged(Verdict(refusal=refused.refusal))
        # a claim may be applied after the workload, so an unreadable one is a warning here; the pods need it
        notes = tuple(AdmissionWarning("claim-unread", problem=problem) for problem in facts.unread_claims)
        if known.unread_runtime:
            notes = (AdmissionWarning("runtime-unread", runtime=known.unread_runtime), *notes)
        if decision is None:
            return Judged(Verdict(warnings=(*unlisted_in(facts, policy), *notes)))
        tenant, runs = facts.tenant, not (decision.elsewhere or is_suspended(known.whole))
        name = tenant.name if tenant else None
        fit = self._fit(decision, starts=request.operation == "CREATE" and runs)
        if decision.waits:
            notes += tuple(decision.counted_while_queued(await self.cluster.lookups.native_quotas(request.namespace)))
        if (problem := decision.contradiction()) is not None:
            return Judged(Verdict(decision.assignment, refusal=problem, tenant=name))
        own = Verdict(decision.assignment, warnings=decision.warnings, tenant=name)
        verdict = own.fitted(replace(fit, warnings=fit.warnings + notes))
        return Judged(verdict, fit.refused, decision, tenant, runs, known.whole)

    async def _would_be_admitted(self, decision: WorkloadDecision, tree: Tree, request: Request) -> bool:
        """Tell whether validation will admit the workload, by this decision and the quota. Nothing is booked.

        kubectl prints the warnings of mutation also before a refusal, and a refused object needs none.
        """
        if decision.contradiction() is not None:
            return False
        fit = self._fit(decision, starts=not (decision.elsewhere or is_suspended(tree)))
        judged = Judged(Verdict(refusal=fit.refusal), decision=decision, tenant=decision.facts.tenant)
        return (await self._book(judged, None, request, Mode.Audit)).refusal is None

    def _fit(self, decision: WorkloadDecision, *, starts: bool) -> QuotaVerdict:
        """Return how a workload fits its tenant's quota. Present usage counts only if the workload `starts` now."""
        tenant = decision.facts.tenant
        if tenant is None or decision.elsewhere:
            return QuotaVerdict()
        fit = decision.fit(*self._usage(decision, tenant), starts=starts)
        return replace(fit, warnings=(*fit.warnings, *beyond_budgets(decision.charges, tenant)))

    def _usage(self, decision: WorkloadDecision, tenant: Tenant) -> tuple[Usage, Usage]:
        """Return the usage that counts against a workload, and the part that is reserved for the queue."""
        rank = self.policy.tiers.rank(decision.leading.charge.tier if decision.leading.charge else None)
        return usage_met(self.ledger, tenant, rank, decision.shared)

    async def _book(self, judged: Judged, before: GangDemand | None, request: Request, mode: Mode) -> Verdict:
        """Book the gang, if it asks for more than `before` and is not queued.

        Without room it is booked at a lower tier if the tenant demotes; otherwise it is refused, or warned of. In Audit
        and for a dry run, only check the room.
        """
        gang, decision, tenant, verdict = judged.gang, judged.decision, judged.tenant, judged.verdict
        if gang is None or decision is None or tenant is None or verdict.refusal:
            return verdict
        was = by_tier_and_flavor(before.charges) if before else {}
        if all(gpus <= was.get(row, Decimal(0)) for row, gpus in by_tier_and_flavor(gang.charges).items()):
            return verdict  # an admitted gang needs no room again
        if mode is Mode.Enforce and decision.waits:
            return verdict  # its pods are gated, and the leader books it when it is the head of the queue
        booking, dry_run = gang_booking(request, gang, tenant, self.policy.tiers), request.dry_run or mode is Mode.Audit
        answer = await self.ledger.book(booking, dry_run=dry_run)
        if isinstance(answer, Booked) or decision.waits:
            return verdict
        is_new = request.operation == "CREATE"
        # In a lower tier only the rows of every tier bound what an elastic gang asks for beyond its least.
        in_any = replace(decision, facts=replace(decision.facts, tenant=tenant.bounding_every_tier()))
        own, lower = (self._fit(each, starts=is_new).warnings for each in (decision, in_any))
        for tier in decision.lower_tiers(answer):
            charges = tuple(replace(each, tier=tier.name) for each in gang.charges)
            demoted = replace(booking, charges=charges, tier=tier.name, rank=tier.value)
            if isinstance(await self.ledger.book(demoted, dry_run=dry_run), Booked):
                assigned = decision.assignment.lowered_to(tier, decision.leading.tier_request, answer.row)
                warning = AdmissionWarning(
                    "gang-demoted" if is_new else "new-pods-demoted",
                    lacks=assigned.lacks,
                    kind=request.kind.kind,
                    tier=tier.name,
                    evicted=assigned.evicted,
                )
                others = tuple(each for each in verdict.warnings if each not in own)
                lowered = replace(verdict, warnings=others).fitted(QuotaVerdict(None, (warning, *lower)))
                return replace(lowered, assignment=assigned)
        return verdict.fitted(decision.gang_fit(gang, tenant, self.in_each_tier(answer, tenant)))


_VOLCANO_JOB = GroupKind("batch.volcano.sh", "Job")
_JOB = GroupKind("batch", "Job")
"""The kind for which Kueue's label is written even if a controller made it, as a CronJob's Jobs are queued by Kueue.
Controllers of other kinds would remove the label, which Kueue refuses."""


async def _volcano_rank(request: Request, decision: WorkloadDecision, ledger: Ledger) -> str:
    """Return the class by which Volcano is to rank a Job; "" if the Job names a class, or has no tier.

    Volcano ranks Jobs only by the class of their PodGroups, which it takes from the Job's `spec.priorityClassName`. A
    Job without a class has the priority of the cluster's default class, whatever class its pods have (Volcano's
    priority plugin). If the quota demotes the Job by the present usage, it gets the class of the lower tier.
    """
    live, of_pods, tenant = decision.leading.live, decision.leading.tier_request, decision.facts.tenant
    if live is None or decision.own.class_name:
        return ""
    short: Booked | Shortfall | None = None
    if tenant and tenant.demotes and decision.gang is not None:
        booking = gang_booking(request, decision.gang, tenant, of_pods.policy.tiers)
        short = await ledger.book(booking, dry_run=True)
    elif tenant and tenant.demotes and (charge := decision.leading.charge):
        # the first pod of a workload that is no gang
        of_one = decision.leading.least
        one_pod = replace(charge, gpus=of_one.gpus) if of_one else charge
        short = shortfall([one_pod], tenant, ledger.usage(tenant, decision.shared))
    lower = next(decision.lower_tiers(short), None) if isinstance(short, Shortfall) else None
    if lower is None:
        return live.name
    return live_class(lower, of_pods.facts.classes, adoption=of_pods.policy.adoption).name
