"""Reviews of PodGroups at CREATE: what they say is immutable, and their pods must share it (KEP-4671, KEP-5710)."""

from webhook.admission import patch
from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import facts_of
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Ledger
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import Reason, Refused, Unreadable
from webhook.objects.scheduling_workloads import PodGroupTemplate
from webhook.objects.view import read
from webhook.policy.assignment.consistency import group_disagreement
from webhook.policy.assignment.limits import class_within_ceiling
from webhook.policy.assignment.scope import group_concerns
from webhook.policy.decide import Decision
from webhook.policy.decide_group import decide_group, group_warnings
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Usage
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.workload import gang_among


async def mutate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """The group's tier and its disruptionMode as a patch."""
    group = read(request.object, PodGroup)
    facts = await facts_of(group.metadata, request.namespace, cluster, policy)
    template = await _template(group, request.namespace, facts, cluster, policy)
    decided = decide_group(group, facts, policy, template, *await _demoting(facts, ledger))
    return group_verdict(decided.decision, operations=tuple(patch.of_group(group, decided))) if decided else Verdict()


async def validate(request: Request, mode: Mode, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """Whether a group bears its tier and may have it. Its pods are booked, not the group. Audit has patched nothing."""
    group = read(request.object, PodGroup)
    facts = await facts_of(group.metadata, request.namespace, cluster, policy)
    template = await _template(group, request.namespace, facts, cluster, policy)
    decided = decide_group(group, facts, policy, template)
    if decided is None:
        class_within_ceiling(Pod(spec=PodSpec(priority_class_name=group.spec.priority_class_name)), facts, policy)
        return Verdict()
    tier, live = decided.decision.assignment.tier, decided.decision.live
    problem = group_disagreement(group, tier, live) if tier and live and mode is not Mode.Audit else None
    return group_verdict(decided.decision, tuple(group_warnings(group, decided.decision)), refusal=problem)


def group_verdict(
    decision: Decision,
    warnings: tuple[str, ...] = (),
    operations: patch.Operations = (),
    refusal: str | None = None,
) -> Verdict:
    """The verdict on what holds nothing itself."""
    tenant, assignment = decision.tier_request.facts.tenant, decision.assignment
    told = assignment.warnings + warnings
    name = tenant.name if tenant else None
    return Verdict(assignment, operations, told, refusal, name, reason=Reason.CONTRADICTION)


async def _template(
    group: PodGroup, namespace: str, facts: Facts, cluster: Cluster, policy: TierPolicy
) -> PodGroupTemplate | None:
    """The template that a group is made of. Of one that a controller made, it only matters where it is ours."""
    if group.template is None or (group.metadata.controller and not group_concerns(group, facts, policy)):
        return None
    try:
        return await cluster.group_template(namespace, group.template)
    except Unreadable as problem:
        raise Refused(f"{problem}; without it gpu-tiers can't choose a tier", Reason.UNREADABLE) from problem


async def _demoting(facts: Facts, ledger: Ledger) -> tuple[Usage | None, str]:
    """By what a group is demoted: its tenant's usage, or the tier of its gang, which was demoted as it was applied."""
    gang, tenant = gang_among(facts.owners), facts.tenant
    if tenant is None or not tenant.demotes:
        return None, ""
    tier = await ledger.gang_tier(tenant, facts.namespace.name, gang.uid) if gang else None
    members = (member for owner in facts.owners for member in owner.members)
    shared = {each.claim for member in members for each in member.devices if each.claim}
    return (ledger.usage(tenant, shared), "") if tier is None else (None, tier)
