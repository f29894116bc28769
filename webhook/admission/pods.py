"""Reviews of pods: mutated and validated at CREATE, held to their tier label at UPDATE."""

from dataclasses import replace

from webhook.admission import patch
from webhook.admission.facts import Examined, examine, whole
from webhook.admission.ports import Cluster, Ledger
from webhook.admission.quota import book, demoted
from webhook.admission.review import Operation, Request
from webhook.admission.verdict import Verdict
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import read
from webhook.policy.assignment.consistency import disagreement, drift, live_class
from webhook.policy.assignment.reinvocation import settle
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookDecision, decide
from webhook.policy.checkpoint.hook_warnings import Subject, hook_warnings
from webhook.policy.values.tier_policy import Mode, TierPolicy


async def mutate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A pod's tier and hook as a patch. What may not be is left as it is: the validating webhook refuses it."""
    pod = read(request.object, Pod)
    try:
        seen = await examine(pod, request.namespace, cluster, policy)
        if seen is None:
            return Verdict()
        whole(pod)
        assignment = demoted(settle(seen.ask), seen, ledger)
        return _answer(seen, assignment, tuple(_patch(pod, seen, assignment, _hook(pod, seen, assignment))))
    except Refused:
        return Verdict()


def _hook(pod: Pod, seen: Examined, assignment: Assignment) -> HookDecision:
    evidence, tier = assignment.evidence, assignment.tier
    kind = evidence.type if evidence else None
    return decide(pod, kind, seen.ask.facts.owners, seen.ask.policy, tier.name if tier else None)


def _patch(pod: Pod, seen: Examined, assignment: Assignment, hook: HookDecision) -> list[Operation]:
    operations: list[Operation] = []
    if assignment.tier is None:
        operations += patch.marks(pod.metadata, assignment)
    else:
        operations += patch.tier_of_pod(pod, assignment, live_class(assignment.tier, seen.ask))
    if hook.plan is not None:
        operations += patch.hook(pod, hook.plan)
    return operations


async def validate(request: Request, mode: Mode, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """Whether a pod's tier, class and priority agree, lie within the ceiling, and fit the quota; then it is booked.

    In Audit nothing was patched, so the pod is judged as if it had been, and nothing is booked.
    """
    pod = read(request.object, Pod)
    seen = await examine(pod, request.namespace, cluster, policy)
    if seen is None:
        return Verdict()
    whole(pod)
    assignment, patched = settle(seen.ask), mode is not Mode.Audit
    if not patched:
        assignment = demoted(assignment, seen, ledger)
    hook = _hook(pod, seen, assignment)
    _patch(pod, seen, assignment, hook)  # raises what kept the mutating webhook from patching
    verdict = _answer(seen, assignment)
    verdict = replace(verdict, hook=hook.plan, warnings=verdict.warnings + _warnings(pod, seen, hook))
    problem = disagreement(pod, assignment, seen.ask) if patched else None
    if problem is not None:
        return replace(verdict, refusal=problem)
    uid = pod.metadata.uid or request.uid if patched and not request.dry_run else None
    sentence, warning = await book(uid, seen, assignment, ledger)
    return replace(verdict, refusal=sentence, warnings=verdict.warnings + warning)


def _warnings(pod: Pod, seen: Examined, hook: HookDecision) -> tuple[str, ...]:
    """What a person should know of the hook; where a workload makes the pod, it was said when that was applied."""
    if any(owner.members for owner in seen.ask.facts.owners):
        return ()
    return hook_warnings(Subject(pod, hook, seen.ask.policy.checkpoint, bare=pod.metadata.controller is None))


def validate_update(request: Request, policy: TierPolicy) -> Verdict:
    """Whether a changed tier label still says what the pod's class says: labels are mutable, classes are not."""
    return Verdict(refusal=drift(read(request.old_object, Pod), read(request.object, Pod), policy))


def _answer(seen: Examined, assignment: Assignment, operations: tuple[Operation, ...] = ()) -> Verdict:
    tenant = seen.ask.facts.tenant
    return Verdict(assignment, operations, assignment.warnings, tenant=tenant.name if tenant else None)
