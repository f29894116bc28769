"""Reviews of pods: patched and validated at CREATE, held to their tier label at UPDATE."""

from dataclasses import replace

from webhook.admission import patch
from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import charged_facts, facts_of, gang_of_pod, gang_uid, queued_group
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Booked, Booking, GangBooking, Ledger
from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Unreadable
from webhook.objects.view import read
from webhook.policy.assignment.consistency import disagreement, drift
from webhook.policy.assignment.kueue import changed_class
from webhook.policy.assignment.limits import allowed_tiers, class_within_ceiling
from webhook.policy.assignment.scope import may_concern
from webhook.policy.decide import Decision, decide_pod, pod_fit, pod_warnings, without_room
from webhook.policy.quota.charges import Charge, charge_of
from webhook.policy.quota.demand import flavor_of, held_by
from webhook.policy.quota.shares import changed_share
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.pod_groups import PodsTogether


async def mutate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A pod's tier and hook as a patch."""
    pod = read(request.object, Pod)
    decision = await _decision(pod, request.namespace, cluster, policy, demoting=ledger)
    if decision is None:
        return Verdict()
    operations = tuple(patch.of_pod(pod, decision))
    return _verdict(decision, operations)


async def validate(request: Request, mode: Mode, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """Whether a pod bears its tier, may have it, and fits the quota; then it is booked.

    In Audit nothing was patched, so the pod is judged as if it had been, and nothing is booked.
    """
    pod, patched = read(request.object, Pod), mode is not Mode.Audit
    decision = await _decision(pod, request.namespace, cluster, policy, demoting=None if patched else ledger)
    if decision is None:
        await _bound(pod, request.namespace, cluster, policy)
        return Verdict()
    verdict = _verdict(decision, warnings=pod_warnings(decision))
    problem = _disagreement(pod, decision) if patched else None
    if problem is not None:
        return replace(verdict, refusal=problem, reason=Reason.CHANGED)
    return await _booked(verdict, decision, request, cluster, ledger, dry_run=request.dry_run or not patched)


async def validate_update(
    request: Request, mode: Mode, cluster: Cluster, ledger: Ledger, policy: TierPolicy
) -> Verdict:
    """Whether a changed label, of tier or queue, still says what the pod's class says, and its GPUs are what they were.

    Labels and annotations are mutable, classes and charges are not; but a pod that waits behind a scheduling gate may
    get a node selector, and then counts on the flavor that this names.
    """
    old, new = read(request.old_object, Pod), read(request.object, Pod)
    tier = policy.tiers.of_class(new.spec.priority_class_name)
    verdict = Verdict(
        refusal=drift(old, new, policy)
        or changed_share(old, new, policy)
        or changed_class(old.metadata.labels, new.metadata.labels, tier, policy),
        reason=Reason.CHANGED,
    )
    if verdict.refusal or flavor_of(old, policy.flavors) == flavor_of(new, policy.flavors):
        return verdict
    return await _moved(
        new,
        flavor_of(old, policy.flavors),
        request,
        cluster,
        ledger,
        policy,
        dry_run=request.dry_run or mode is Mode.Audit,
    )


async def _decision(
    pod: Pod, namespace: str, cluster: Cluster, policy: TierPolicy, *, demoting: Ledger | None
) -> Decision | None:
    """The decision; nothing is looked up for a pod that isn't ours. A pod is demoted only if a ledger is given.

    A pod that had to be demoted has been before it is validated.
    """
    if not may_concern(pod, policy):
        return None
    facts = await facts_of(pod, namespace, cluster, policy)
    tenant = facts.tenant
    shared = {each.claim for each in facts.devices if each.claim}
    if demoting is None or tenant is None or not tenant.demotes:
        return decide_pod(pod, facts, policy)
    gang = gang_of_pod(facts)
    gang_tier = await demoting.gang_tier(tenant, namespace, gang.uid) if gang else None
    if gang_tier is not None:
        return decide_pod(pod, facts, policy, gang_tier=gang_tier)
    return decide_pod(pod, facts, policy, demoting.usage(tenant, shared))


async def _bound(pod: Pod, namespace: str, cluster: Cluster, policy: TierPolicy) -> None:
    """Raises Refused where a pod that isn't ours has a class above its tenant's ceiling.

    Where that can't be read the pod passes, as it does while we are down: nothing without GPUs waits for us.
    """
    if not pod.spec.priority_class_name:
        return
    try:
        home = await cluster.namespace(namespace)
    except Unreadable:
        return
    class_within_ceiling(pod, Facts(home, cluster.classes(), tenant=cluster.tenant(home)), policy)


async def _moved(
    pod: Pod,
    before: str | None,
    request: Request,
    cluster: Cluster,
    ledger: Ledger,
    policy: TierPolicy,
    *,
    dry_run: bool,
) -> Verdict:
    """The verdict once the charge has moved from one flavor to that which the pod names now, if there is room.

    A group of Kueue's moves with the first of its pods or not at all, as if all were like that one.
    """
    home, devices = await charged_facts(pod, request.namespace, cluster)
    tenant, charge = cluster.tenant(home), charge_of(pod, devices, policy)
    verdict = Verdict(tenant=tenant.name if tenant else None)
    if tenant is None or charge is None or not tenant.charges(charge.gpus):
        return verdict
    tiers, group = allowed_tiers(tenant, policy), await queued_group(pod, request.namespace, cluster, policy)
    if group is not None:
        whole = await ledger.book(_whole(group, charge, home.name, tenant), dry_run=True)
        if not isinstance(whole, Booked):
            return verdict.fitted(pod_fit(whole, tenant, tiers, what=f"group {group.name} of {group.count} pods"))
    name, moved_from = pod.metadata.name, replace(charge, flavor=before)
    uid, of = pod.metadata.uid, group.uid if group else ""
    booking = Booking(uid, home.name, tenant, (charge,), name=name, moved_from=moved_from, gang=of)
    answer = await ledger.book(booking, dry_run=dry_run)
    return verdict if isinstance(answer, Booked) else verdict.fitted(pod_fit(answer, tenant, tiers))


def _group_of(decision: Decision, charge: Charge, tenant: Tenant) -> GangBooking | None:
    """The group of a pod that no workload makes into a gang, as if all of its pods were like this one."""
    facts, assignment = decision.tier_request.facts, decision.assignment
    group = facts.together
    if group is None:
        return None
    tier = charge.tier if assignment.demoted_from and charge.tier else ""
    return _whole(group, charge, facts.namespace.name, tenant, tier)


def _whole(group: PodsTogether, charge: Charge, namespace: str, tenant: Tenant, tier: str = "") -> GangBooking:
    charges = (replace(charge, gpus=held_by(group.count, charge.gpus, charge.shared)),)
    return GangBooking(group.uid, group.kind.qualified, namespace, group.name, tenant, charges, tier=tier, of_pods=True)


def _verdict(decision: Decision, operations: patch.Operations = (), warnings: tuple[str, ...] = ()) -> Verdict:
    tenant, hook = decision.tier_request.facts.tenant, decision.hook
    return Verdict(
        decision.assignment,
        operations,
        decision.assignment.warnings + warnings,
        tenant=tenant.name if tenant else None,
        hook=hook.plan if hook else None,
        placement=decision.placement.neighbours.said if decision.placement else "",
    )


def _disagreement(pod: Pod, decision: Decision) -> str | None:
    tier, live = decision.assignment.tier, decision.live
    return disagreement(pod, tier, live) if tier and live else None


async def _booked(
    verdict: Verdict, decision: Decision, request: Request, cluster: Cluster, ledger: Ledger, *, dry_run: bool
) -> Verdict:
    """The verdict once the charge is booked, or refused for want of room; a tenant may want a warning instead."""
    facts, charge = decision.tier_request.facts, decision.charge
    tenant = facts.tenant
    if tenant is None or charge is None or not tenant.charges(charge.gpus):
        return verdict
    metadata = decision.tier_request.pod.metadata
    holder = metadata.uid or request.uid
    booking = Booking(
        holder,
        facts.namespace.name,
        tenant,
        (charge,),
        metadata.controller_uid,
        metadata.name,
        gang=gang_uid(metadata, facts),
        group=_group_of(decision, charge, tenant),
    )
    answer = await ledger.book(booking, dry_run=dry_run)
    if isinstance(answer, Booked):
        return verdict
    return verdict.fitted(without_room(decision, answer, await cluster.native_quotas(facts.namespace.name)))
