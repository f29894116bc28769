"""The two webhooks: from a request to an answer, by the kind of its object and the mode of its namespace."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec
from msgspec import structs

from webhook.admission import podgroups, review
from webhook.admission.facts import needed_to
from webhook.admission.pod_updates import PodUpdateReviewer, ResourceClaimReviewer
from webhook.admission.pods import PodReviewer
from webhook.admission.review import TOO_LARGE, BadReview, GroupVersionKind, Request, Truncated, judgeable
from webhook.admission.reviewer import LookupBudget, RecentDecisions, Reviewer, Verdict, not_ours
from webhook.admission.workloads import WorkloadReviewer
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Ledger, TryAgain
from webhook.objects import group_kind
from webhook.objects.pods import Named
from webhook.objects.refusal import OBJECT, AdmissionWarning, Missing, Phrase, Reason, Refusal, Refused, Unreadable
from webhook.objects.view import Tree, at, read, view, with_at
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.metadata_keys import namespace_warnings
from webhook.policy.quota.budgets import budget_warnings
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, checked_names, read_tenant, tenant_quota_of
from webhook.policy.quota.tenant_status import newly_unknown, tenant_warnings
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.sentences.sentence import sentence

LONGEST_REASON = 138
"""The most characters of a decoder's message, so that its whole sentence has 161 at most."""
LARGE = 50_000
"""Bytes of an object from which reading takes milliseconds, so that other reviews run first."""

CREATE, UPDATE = "CREATE", "UPDATE"

ByOperation = Mapping[str, type[Reviewer]]

TABLE: Mapping[group_kind.GroupKind, ByOperation] = {
    group_kind.POD: {CREATE: PodReviewer, UPDATE: PodUpdateReviewer},
    group_kind.POD_GROUP: {CREATE: podgroups.PodGroupReviewer},
    group_kind.COMPOSITE_POD_GROUP: {CREATE: podgroups.PodGroupReviewer},
    group_kind.SCHEDULING_WORKLOAD: {CREATE: podgroups.SchedulingWorkloadReviewer},
    group_kind.RESOURCE_CLAIM: {CREATE: ResourceClaimReviewer, UPDATE: ResourceClaimReviewer},
    **dict.fromkeys(podgroups.SCHEDULERS_GROUPS, dict.fromkeys((CREATE, UPDATE), podgroups.SchedulerGroupReviewer)),
}
"""The reviewer of each kind and operation. TenantQuotas and Namespaces are separate (`Webhooks._answer_setup`)."""
OF_WORKLOADS: ByOperation = {CREATE: WorkloadReviewer, UPDATE: WorkloadReviewer}
"""The reviewer of every kind in the table of workloads, and of those that the policy adds to it."""

Record = Callable[[str, Request, Verdict, Mode], None]
"""Called with every verdict: the webhook ("mutate", "validate"), the request, the verdict before the mode, the mode."""


class Webhooks(msgspec.Struct, frozen=True):
    """Answers reviews. `policy` returns the active policy, which may change between two reviews."""

    cluster: Cluster
    ledger: Ledger
    policy: Callable[[], TierPolicy]
    record: Record
    recent: RecentDecisions = msgspec.field(default_factory=RecentDecisions)
    budget: LookupBudget = msgspec.field(default_factory=LookupBudget)

    async def mutate(self, request: Request, seconds: float | None = None) -> bytes:
        """Answer with a patch. Refuse only a taken name, differing templates of a Workload, and undecided reviews."""
        return await self._answer("mutate", request, seconds)

    async def validate(self, request: Request, seconds: float | None = None) -> bytes:
        # the created or updated object itself
        if request.operation in (CREATE, UPDATE) and not request.sub_resource and not isinstance(request, Truncated):
            if request.kind.group_kind == TENANT_QUOTA:
                return self._answer_setup(request, self._judged_tenant)
            if request.kind.group_kind == group_kind.NAMESPACE:
                return self._answer_setup(request, self._judged_namespace)
        return await self._answer("validate", request, seconds)

    async def _answer(self, webhook: str, request: Request, seconds: float | None) -> bytes:
        """Answer within `seconds`, or refuse for now, because after a timeout failurePolicy might admit the object."""
        policy, clock = self.policy(), asyncio.timeout(seconds)
        mode, judged = policy.mode, request
        try:
            async with clock:
                with suppress(Unreadable):  # the review itself refuses a pod whose namespace can't be read
                    mode = policy.mode_in((await self.cluster.known.namespace(request.namespace)).labels)
                judged, verdict = await self.judge(webhook, request, mode, policy)
                if verdict.refusal is not None and verdict.tenant is None:
                    with suppress(Unreadable):  # logs and metrics name the tenant whose object is refused
                        tenant = self.cluster.known.tenant(await self.cluster.known.namespace(request.namespace))
                        verdict = structs.replace(verdict, tenant=tenant.name if tenant else None)
        except TimeoutError:
            if not clock.expired():
                raise
            verdict = _undecided(f"it took more than {seconds:.2f} s")
        self.record(webhook, judged, verdict, mode)
        shown, audit = under(mode, verdict), audit_annotations(verdict, mode)
        if shown.refusal is not None:
            # Controllers act on the reason AlreadyExists, so the refusal has to carry it.
            status = review.ALREADY_EXISTS if shown.refusal.reason is Reason.NAME_TAKEN else review.FORBIDDEN
            status = review.TRY_AGAIN if shown.undecided else status
            return review.deny(request, sentence(shown.refusal), status, audit)
        return review.allow(request, patch=shown.patch, warnings=[*map(sentence, shown.warnings)], audit=audit)

    def _answer_setup(self, request: Request, judge: Callable[[Request, TierPolicy], Verdict]) -> bytes:
        """Answer the same in every mode, because TenantQuotas and Namespaces are written to set up gpu-tiers."""
        policy = self.policy()
        verdict = judge(request, policy)
        self.record("validate", request, verdict, Mode.Enforce if verdict.refusal else policy.mode)
        if verdict.refusal is not None:
            return review.deny(request, sentence(verdict.refusal))
        return review.allow(request, warnings=[*map(sentence, verdict.warnings)])

    def _judged_tenant(self, request: Request, policy: TierPolicy) -> Verdict:
        """Refuse a TenantQuota that can't be read, or that has a new name that the policy does not know.

        The CRD refuses most unreadable ones. Other mistakes are warnings. If the old object was unreadable too, an
        update that can't be read gets only a warning. Raises BadReview for an object that is no JSON.
        """
        try:
            before = msgspec.json.decode(request.old_object)
            old = tenant_quota_of(before if isinstance(before, dict) else {})
            tree = msgspec.json.decode(request.object)
            tenant, coming = read_tenant(tree), checked_names(tree)
        except Refused as refused:
            if request.operation == CREATE or old.problem is None:
                return Verdict(refusal=refused.refusal)
            return Verdict(warnings=(AdmissionWarning("not-active", refusal=refused.refusal),))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadReview(f"object: can't be read: {error}") from None
        refusal = newly_unknown(tenant, old.tenant, policy, coming)
        if refusal is not None:
            return Verdict(refusal=refusal, tenant=tenant.name)
        others = [each for each in self.cluster.known.tenants() if each.name != tenant.name]
        namespaces = self.cluster.known.namespaces()
        warnings = tenant_warnings(tenant, others, namespaces, self.ledger.usage, policy, coming)
        return Verdict(warnings=(*warnings, *budget_warnings(tenant, tree.get("status") or {})), tenant=tenant.name)

    def _judged_namespace(self, request: Request, policy: TierPolicy) -> Verdict:
        try:
            labels = read(request.object, Named).metadata.labels
        except (Refused, msgspec.DecodeError, UnicodeDecodeError):
            return Verdict()  # the API server refuses it
        return Verdict(warnings=tuple(namespace_warnings(labels, policy, self.cluster.known.tenants())))

    async def judge(self, webhook: str, request: Request, mode: Mode, policy: TierPolicy) -> tuple[Request, Verdict]:
        """Return the request and the verdict before the mode softens it. A scale becomes the update of its workload.

        A person's mistake, or a temporary problem, is a refusal. A fault of gpu-tiers is an exception.
        """
        try:
            if isinstance(request, Truncated):
                unread = Refusal(Reason.INVALID, "unread", problem=request.problem)
                return request, _undecided(request.problem) if request.for_now else _refused(webhook, unread)
            small = judgeable(request)
            if small is None:
                return request, Verdict(warnings=(AdmissionWarning("let-in", refusal=TOO_LARGE),))
            if len(request.object) + len(request.old_object) > LARGE:
                await asyncio.sleep(0)  # let other reviews run between two stretches of work
            request = small
            cluster = structs.replace(self.cluster, lookups=self.cluster.lookups.fresh())
            if webhook == "validate" and request.sub_resource == "scale" and request.operation == "UPDATE":
                request = await as_update(request, cluster, policy)
            kind = request.kind.group_kind
            by_operation = TABLE.get(kind) or (OF_WORKLOADS if kind in policy.kinds.by_kind else {})
            if request.sub_resource or request.operation not in by_operation:
                raise not_ours(request)
            reviewer = by_operation[request.operation](cluster, self.ledger, policy, self.recent, self.budget)
            judged = reviewer.mutate if webhook == "mutate" else reviewer.validate
            return request, await judged(request, mode)
        except Refused as refused:
            return request, _refused(webhook, refused.refusal)
        except TryAgain as problem:
            return request, _undecided(str(problem))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            unparsable = Refusal(Reason.INVALID, "unparsable", OBJECT, error=str(error)[:LONGEST_REASON])
            return request, _refused(webhook, unparsable)


async def as_update(request: Request, cluster: Cluster, policy: TierPolicy) -> Request:
    """Return the update of the workload that a scale makes; the request itself if no row has such a scale.

    A Scale has the number of replicas, and the workload's name and uid. Raises Refused if the workload can't be read,
    or has another uid. Source: custom-resource-definitions/#scale-subresource of the Kubernetes documentation.
    """
    row = policy.kinds.by_scaled.get((request.resource.group, request.resource.resource))
    if row is None:
        return request
    scale: Tree = msgspec.json.decode(request.object)
    replicas = at(scale, "spec.replicas") or 0  # zero is absent on the wire

    # Read the workload as it is now. If it changes before the write, the API server retries and asks again.
    with needed_to("find what is scaled"):
        stored = await cluster.lookups.stored_workload(request.namespace, request.name, row)
        metadata = view(stored, Named).metadata
        if metadata.uid != at(scale, "metadata.uid"):
            shown = f"{row.kind}/{request.name[:63]}"
            raise Missing(f"{shown} has another UID than its scale: it was deleted and created again")

    # A change of its spec is its next generation.
    scaled = with_at(stored, row.scale, replicas)
    if at(stored, row.scale) != replicas:
        scaled = with_at(scaled, "metadata.generation", (metadata.generation or 1) + 1)
    return structs.replace(
        request,
        kind=GroupVersionKind(row.group, request.resource.version, row.kind),
        sub_resource="",
        object=msgspec.Raw(msgspec.json.encode(scaled)),
        old_object=msgspec.Raw(msgspec.json.encode(stored)),
    )


def _refused(webhook: str, refusal: Refusal) -> Verdict:
    """Return the verdict on a mistake: the validating webhook refuses, the mutating webhook changes nothing."""
    return Verdict(refusal=refusal) if webhook == "validate" else Verdict()


def _undecided(problem: str) -> Verdict:
    return Verdict(refusal=Refusal(Reason.INVALID, "undecided", problem=problem), undecided=True)


def under(mode: Mode, verdict: Verdict) -> Verdict:
    """Soften a verdict by the mode. Audit neither patches, refuses nor warns; Warn turns a refusal into a warning."""
    match mode:
        case Mode.Audit:
            return Verdict(assignment=verdict.assignment, tenant=verdict.tenant)
        case Mode.Warn:
            # Pods run without room, because only Enforce gives them a gate.
            ungated = [(each, _UNGATED.get(each.get("queued"))) for each in verdict.warnings]
            warnings = tuple(
                AdmissionWarning(each.id, **{**dict(each.fields), "queued": now}) if now else each
                for each, now in ungated
            )
            if verdict.refusal is not None:
                warnings += (AdmissionWarning("would-be-refused", refusal=verdict.refusal),)
            return structs.replace(verdict, refusal=None, warnings=warnings, queued=False)
    return verdict


_UNGATED: Mapping[object, Phrase] = {
    Phrase("pod-queued"): Phrase("pod-would-queue"),
    Phrase("all-queued"): Phrase("all-would-queue"),
    Phrase("some-queued"): Phrase("some-would-queue"),
}


def audit_annotations(verdict: Verdict, mode: Mode) -> dict[str, str]:
    """Return the audit annotations. They are equal in each call for one request (reinvocation)."""
    notes = {}
    if verdict.assignment is not None:
        assignment = verdict.assignment
        notes["tier"] = assignment.tier.name if assignment.tier else "none"
        notes["assigned-by"] = str(assigned_by(assignment))
    if verdict.refusal is not None and mode is not Mode.Enforce:
        notes["would-refuse"] = sentence(verdict.refusal)
    return notes
