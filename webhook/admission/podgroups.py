"""Reviews of PodGroups at CREATE: their class and priority are immutable, and their pods must share them (KEP-4671)."""

from webhook.admission import patch
from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import facts_of
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.view import read
from webhook.policy.assignment.consistency import group_disagreement
from webhook.policy.assignment.limits import class_within_ceiling
from webhook.policy.decide import Decision, decide_group
from webhook.policy.values.tier_policy import Mode, TierPolicy


async def mutate(request: Request, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """The group's tier as a patch."""
    group = read(request.object, PodGroup)
    decision = decide_group(group, await facts_of(group.metadata, request.namespace, cluster, policy), policy)
    return _verdict(decision, operations=tuple(patch.of_group(group, decision))) if decision else Verdict()


async def validate(request: Request, mode: Mode, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """Whether a group bears its tier and may have it. Its pods are booked, not the group. Audit has patched nothing."""
    group = read(request.object, PodGroup)
    facts = await facts_of(group.metadata, request.namespace, cluster, policy)
    decision = decide_group(group, facts, policy)
    if decision is None:
        class_within_ceiling(Pod(spec=PodSpec(priority_class_name=group.spec.priority_class_name)), facts, policy)
        return Verdict()
    tier, live = decision.assignment.tier, decision.live
    problem = group_disagreement(group, tier, live) if tier and live and mode is not Mode.Audit else None
    return _verdict(decision, refusal=problem)


def _verdict(decision: Decision, operations: patch.Operations = (), refusal: str | None = None) -> Verdict:
    tenant, assignment = decision.tier_request.facts.tenant, decision.assignment
    return Verdict(assignment, operations, assignment.warnings, refusal, tenant.name if tenant else None)
