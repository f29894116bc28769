"""Reviews of PodGroups at CREATE: their class and priority are immutable, and their pods must share them (KEP-4671)."""

from webhook.admission import patch
from webhook.admission.facts import owners_of, whole
from webhook.admission.ports import Cluster
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.objects.pods import Pod, PodGroup, PodSpec
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import read
from webhook.policy.assignment.consistency import live_class
from webhook.policy.assignment.reinvocation import settle
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest, tier_request
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import tenant_of
from webhook.policy.values.tier_policy import Mode, TierPolicy


async def mutate(request: Request, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """The group's tier as a patch. What may not be is left as it is: the validating webhook refuses it."""
    group = read(request.object, PodGroup)
    try:
        ask = await _ask(group, request.namespace, cluster, policy)
        assignment = settle(ask) if ask else None
        if ask is None or assignment is None or assignment.tier is None:
            return Verdict(assignment)
        whole(group)
        live = live_class(assignment.tier, ask)
        operations = tuple(patch.tier_of_group(group, assignment, live))
        return Verdict(assignment, operations, assignment.warnings, tenant=_tenant(ask))
    except Refused:
        return Verdict()


async def validate(request: Request, mode: Mode, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """Whether a group bears the tier it was assigned and may have it. GPUs are booked by its pods."""
    group = read(request.object, PodGroup)
    ask = await _ask(group, request.namespace, cluster, policy)
    if ask is None:
        return Verdict()
    whole(group)
    assignment = settle(ask)
    problem = _disagreement(group, assignment, ask)
    refusal = problem if mode is not Mode.Audit else None  # in Audit nothing was patched
    return Verdict(assignment, warnings=assignment.warnings, refusal=refusal, tenant=_tenant(ask))


async def _ask(group: PodGroup, namespace: str, cluster: Cluster, policy: TierPolicy) -> TierRequest | None:
    """What the group asks for, read as a pod's wish; None where its owner holds no GPUs and itself names no tier."""
    try:
        home = await cluster.namespace(namespace)
        owners = await owners_of(group.metadata.controller, namespace, cluster, policy)
    except Unreadable as problem:
        raise Refused(f"{problem}; without it the tier of the group cannot be told") from problem
    holds = any(hold_gpus(owner.members, policy) for owner in owners)
    named = TIER_LABEL in group.metadata.labels or policy.tiers.of_class(group.spec.priority_class_name) is not None
    if not holds and not named:
        return None
    wish = Pod(metadata=group.metadata, spec=PodSpec(priority_class_name=group.spec.priority_class_name))
    facts = Facts(home, cluster.classes(), owners, tenant_of(home.labels, cluster.tenants()))
    # a group itself holds nothing: like a launcher, it takes the tier that its gang's templates name
    return tier_request(wish, facts, policy, holds_gpus=False)


def _disagreement(group: PodGroup, assignment: Assignment, ask: TierRequest) -> str | None:
    if assignment.tier is None:
        return None
    live = live_class(assignment.tier, ask)
    if (group.spec.priority_class_name, group.spec.priority) == (live.name, live.value):
        return None
    return (
        f"tier {assignment.tier.name} was not applied to this PodGroup (spec.priorityClassName is "
        f'"{group.spec.priority_class_name}", spec.priority is {group.spec.priority}): the mutating webhook was not '
        "reached. Create it again; if it stays, tell your platform team"
    )


def _tenant(ask: TierRequest) -> str | None:
    return ask.facts.tenant.name if ask.facts.tenant else None
