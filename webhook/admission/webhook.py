"""The two webhooks: from a request to an answer, by the shape of its object and the mode of its namespace."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from webhook.admission import (
    podgroups,
    pods,
    review,
    scales,
    scheduling_workloads,
    tenantquotas,
    workload_marks,
    workloads,
)
from webhook.admission.cluster_protocol import Cluster
from webhook.admission.review import BadReview, Request
from webhook.admission.told_owner import with_told_owner
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Ledger, TryAgain
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD, GroupKind
from webhook.objects.refusal import Reason, Refused, Unreadable
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.values.tier_policy import Mode, TierPolicy

MODE_LABEL = "gpu-tiers.dev/mode"
LONGEST_REASON = 160

Record = Callable[[str, Request, Verdict, Mode], None]
"""Told of every verdict: the webhook ("mutate", "validate"), the request, the verdict before the mode, the mode."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Answers reviews. `policy` gives the policy in force, which may change between two reviews."""

    cluster: Cluster
    ledger: Ledger
    policy: Callable[[], TierPolicy]
    record: Record

    async def mutate(self, request: Request) -> bytes:
        """The mutating webhook's answer: allowed, with a patch where the object is ours."""
        return await self._answer("mutate", request)

    async def validate(self, request: Request) -> bytes:
        """The validating webhook's answer: allowed, or refused with a sentence."""
        if _is_tenant_quota(request):
            return self._about_tenant(request)
        return await self._answer("validate", request)

    async def _answer(self, webhook: str, request: Request) -> bytes:
        policy = self.policy()
        mode = await self._mode(request.namespace, policy)
        judged, verdict = await self._judged(webhook, request, mode, policy, tells=request.dry_run)
        if verdict.refusal is not None and verdict.tenant is None:
            verdict = replace(verdict, tenant=await self._tenant(request.namespace))
        self.record(webhook, judged, verdict, mode)
        return _on_the_wire(request, verdict, mode)

    def _about_tenant(self, request: Request) -> bytes:
        """Warnings in every mode: who writes a TenantQuota sets gpu-tiers up."""
        policy = self.policy()
        verdict = tenantquotas.validate(request, self.cluster, self.ledger, policy)
        self.record("validate", request, verdict, policy.mode)
        return review.allow(request, warnings=verdict.warnings)

    async def judge(self, webhook: str, request: Request, mode: Mode, policy: TierPolicy) -> Verdict:
        """The verdict before the mode softens it. A person's mistake is a refusal; ours is any other exception.

        No owner that the object tells of counts: here `dry_run` may be said of an object that is stored.
        """
        return (await self._judged(webhook, request, mode, policy))[1]

    async def _judged(
        self, webhook: str, request: Request, mode: Mode, policy: TierPolicy, *, tells: bool = False
    ) -> tuple[Request, Verdict]:
        """The verdict, and the request that it is on: of a scale, the update of the workload."""
        try:
            cluster = with_told_owner(self.cluster, request) if tells else self.cluster
            if webhook == "mutate":
                return request, await self._mutated(request, cluster, policy)
            if request.sub_resource == scales.SUBRESOURCE and request.operation == "UPDATE":
                request = await scales.as_update(request, cluster, policy)
            return request, await self._validated(request, mode, cluster, policy)
        except Refused as refused:
            return request, _refused(webhook, refused.sentence, refused.reason)
        except TryAgain as problem:
            told = f"gpu-tiers can't decide now, try again: {problem}"
            return request, Verdict(refusal=told, undecided=True)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return request, _refused(webhook, f"object: can't be read: {error}"[:LONGEST_REASON])

    async def _mutated(self, request: Request, cluster: Cluster, policy: TierPolicy) -> Verdict:
        match _shape(request, policy), request.operation:
            case "pod", "CREATE":
                return await pods.mutate(request, cluster, self.ledger, policy)
            case "podgroup", "CREATE":
                return await podgroups.mutate(request, cluster, self.ledger, policy)
            case "scheduling workload", "CREATE":
                return await scheduling_workloads.mutate(request, cluster, policy)
            case "workload", "CREATE":
                return await workload_marks.mutate(request, cluster, self.ledger, policy)
        raise _not_ours(request)

    async def _validated(self, request: Request, mode: Mode, cluster: Cluster, policy: TierPolicy) -> Verdict:
        match _shape(request, policy), request.operation:
            case "pod", "CREATE":
                return await pods.validate(request, mode, cluster, self.ledger, policy)
            case "pod", "UPDATE":
                return await pods.validate_update(request, mode, cluster, self.ledger, policy)
            case "podgroup", "CREATE":
                return await podgroups.validate(request, mode, cluster, policy)
            case "scheduling workload", "CREATE":
                return await scheduling_workloads.validate(request, cluster, policy)
            case "workload", "CREATE" | "UPDATE":
                return await workloads.validate(request, mode, cluster, self.ledger, policy)
        raise _not_ours(request)

    async def _tenant(self, namespace: str) -> str | None:
        """The tenant whose object is refused, for logs and metrics."""
        try:
            tenant = self.cluster.tenant(await self.cluster.namespace(namespace))
        except Unreadable:
            return None
        return tenant.name if tenant else None

    async def _mode(self, namespace: str, policy: TierPolicy) -> Mode:
        try:
            return mode_in(policy, (await self.cluster.namespace(namespace)).labels.get(MODE_LABEL, ""))
        except Unreadable:
            return policy.mode  # the review itself refuses a pod whose namespace can't be read


def _refused(webhook: str, sentence: str, reason: Reason = Reason.INVALID) -> Verdict:
    """The validating webhook refuses a mistake; the mutating one leaves the object as it is."""
    return Verdict(refusal=sentence, reason=reason) if webhook == "validate" else Verdict()


def _shape(request: Request, policy: TierPolicy) -> str | None:
    kind = GroupKind(request.kind.group, request.kind.kind)
    if request.sub_resource:
        return None
    return _SHAPES.get(kind) or ("workload" if kind in policy.kinds.by_kind else None)


_SHAPES = {POD: "pod", POD_GROUP: "podgroup", SCHEDULING_WORKLOAD: "scheduling workload"}


def _is_tenant_quota(request: Request) -> bool:
    written = request.operation in ("CREATE", "UPDATE") and not request.sub_resource
    return written and GroupKind(request.kind.group, request.kind.kind) == TENANT_QUOTA


def _not_ours(request: Request) -> BadReview:
    name = "/".join(filter(None, (request.kind.group, request.kind.kind, request.sub_resource)))
    return BadReview(
        f"{request.operation[:20]} of {name[:60]} is not reviewed here: this webhook takes pods, PodGroups, Workloads, "
        "TenantQuotas and the workloads of its table; correct the rules of the webhook configuration"
    )


def mode_in(policy: TierPolicy, label: str) -> Mode:
    """The mode in a namespace: its own label may be stricter than the installation, not milder."""
    return max(policy.mode, Mode.__members__.get(label.capitalize(), Mode.Audit))


def under(mode: Mode, verdict: Verdict) -> Verdict:
    """What a mode lets through: Audit patches, refuses and says nothing; Warn turns a refusal to a warning."""
    match mode:
        case Mode.Audit:
            return Verdict(assignment=verdict.assignment, tenant=verdict.tenant)
        case Mode.Warn if verdict.refusal is not None:
            return replace(verdict, refusal=None, warnings=(*verdict.warnings, f"would be refused: {verdict.refusal}"))
    return verdict


def _on_the_wire(request: Request, verdict: Verdict, mode: Mode) -> bytes:
    shown, audit = under(mode, verdict), audit_annotations(verdict, mode)
    if shown.refusal is not None:
        return review.deny(request, shown.refusal, for_now=shown.undecided, audit=audit)
    return review.allow(request, patch=shown.patch, warnings=shown.warnings, audit=audit)


def audit_annotations(verdict: Verdict, mode: Mode) -> dict[str, str]:
    """What the API server's audit log keeps; the same at every pass of one request."""
    notes = {}
    if verdict.assignment is not None:
        assignment = verdict.assignment
        notes["tier"] = assignment.tier.name if assignment.tier else "none"
        notes["assigned-by"] = str(assignment)
    if verdict.refusal is not None and mode is not Mode.Enforce:
        notes["would-refuse"] = verdict.refusal
    return notes
