"""Decides on a pod. Begin here; decide_workload.py and decide_group.py continue.

Each decision asks: is it ours, which tier, which checkpoint hook, which PriorityClass, which charge. All inputs are
values. Every function raises Refused if a person asks for something impossible.
"""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal

import msgspec
from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Phrase
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.assignment.kueue import QUEUE_NAME, class_of_pod
from webhook.policy.assignment.limits import demoted, demoted_to, open_tiers
from webhook.policy.assignment.request import Assignment, TierRequest, concerns, require_metadata_and_spec, tier_request
from webhook.policy.assignment.steps import assign, earlier_assignment, type_given, type_warnings
from webhook.policy.autoscaler import NO_PLAN, AutoscalerPlan, plan_autoscaler
from webhook.policy.checkpoint.hook_plan import HookDecision, plan_hook
from webhook.policy.checkpoint.hook_warnings import hook_warnings
from webhook.policy.classification.classify import classify
from webhook.policy.devices import evicts_others, without_eviction
from webhook.policy.metadata_keys import unknown_keys
from webhook.policy.placement import (
    UNNAMED,
    PlacementPlan,
    SchedulingPlan,
    plan_placement,
    plan_scheduling,
    with_node_selector,
)
from webhook.policy.preemption.node_state import ReservedNodesAccess, reserved_nodes_access
from webhook.policy.quota.charges import (
    Charge,
    GangPart,
    QuotaVerdict,
    Shortfall,
    flavor_of,
    flavor_on,
    must_queue,
    never_fits,
    row_usage,
    shortfall,
    tier_counted,
)
from webhook.policy.quota.demand import demand_of, gpus_of_pods, refuse_unlisted, shared_by, unlisted_warnings
from webhook.policy.quota.native_quotas import NativeQuota, NativeRoom, native_rooms
from webhook.policy.quota.refusals import NOWHERE, POD, beyond_budgets, fit_over_quota, over_quota
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import OnExceed, Tenant, Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier, live_class
from webhook.policy.workloads.pod_groups import PodsTogether
from webhook.policy.workloads.workload import Member


class Decision(msgspec.Struct, frozen=True):
    """The decision on one pod, or on all pods of one template.

    `charge` counts all of them, `least` those that a gang needs. `live` is the PriorityClass of its tier, None for a
    class outside the tiers. `hook` and `charge` are None for a PodGroup, which holds and runs nothing. `queue_class` is
    the value of Kueue's label, None if the pod needs none. `placement` and `scheduling` are None if the policy has none
    for its tier.
    `reserved_nodes` is which of them a pod may use, None where nodes are not reserved.
    `disruption_mode` is what is written on a PodGroup; None where it keeps its own.
    """

    tier_request: TierRequest
    assignment: Assignment
    live: PriorityClass | None
    hook: HookDecision | None = None
    charge: Charge | None = None
    least: GangPart | None = None
    queue_class: str | None = None
    placement: PlacementPlan | None = None
    scheduling: SchedulingPlan | None = None
    autoscaler: AutoscalerPlan = NO_PLAN
    reserved_nodes: ReservedNodesAccess | None = None
    disruption_mode: object | None = None

    @property
    def saves(self) -> bool:
        """Tell whether a hook lets its pods save before they end."""
        return self.hook is not None and self.hook.plan is not None and self.hook.plan.kind != "sleep"

    @property
    def on_exceed(self) -> OnExceed | None:
        """Return what happens to its pods if a row that counts them is full; None without such a row."""
        asked, charge = self.tier_request, self.charge
        tenant = asked.facts.tenant
        if tenant is None or charge is None or not tenant.charges(charge.gpus) or not charge.rows(tenant):
            return None
        if asked.facts.together is None and must_queue(asked.pod, tenant, charge):
            return "Hold"
        return "Deny" if tenant.on_exceed == "Hold" else tenant.on_exceed


def decide_pod(
    pod: Pod, facts: Facts, policy: TierPolicy, usage: Usage | None = None, gang_tier: str = ""
) -> Decision | None:
    """Return the decision on a pod; None if it is not ours. It is demoted only by a `usage` of the tenant's rows.

    `usage` leaves out the ResourceClaims that the pod shares. A pod of a gang that was demoted runs at `gang_tier`.
    """
    demand = demand_of(pod, facts.devices, policy)
    if not concerns(pod, demand, facts, policy):
        return None
    require_metadata_and_spec(pod)
    if policy.uncounted == "Refuse":
        refuse_unlisted(pod, policy)
    evidence = classify(pod, facts.owners, policy.kinds)
    asked = tier_request(pod, facts, policy, evidence, holds_gpus=demand > 0)
    assignment = assignment_of(asked)
    if usage is not None:
        count = facts.together.count if facts.together else 1
        assignment = demoted(assignment, _charge(asked, assignment, demand, count), usage, asked)
    elif gang_tier:
        assignment = demoted_to(gang_tier, assignment, asked)
    decision = decision_with(asked, assignment, demand)
    return (
        structs.replace(decision, queue_class=class_of_pod(pod.metadata, assignment, facts, policy))
        if policy.kueue
        else decision
    )


def pod_warnings(decision: Decision) -> tuple[AdmissionWarning, ...]:
    """Return the warnings about a pod's labels, type, GPUs and hook; those of a workload come when it is applied."""
    asked = decision.tier_request
    if decision.hook is None or any(owner.members for owner in asked.facts.owners):
        return ()
    bare = asked.pod.metadata.controller is None
    of_hook = hook_warnings(asked.pod, decision.hook, asked.policy.checkpoint, bare=bare)
    of_gpus = unlisted_warnings(asked.pod, asked.policy)
    of_keys = unknown_keys((asked.pod.metadata,))
    of_eviction, charge, tenant = eviction_warnings(decision), decision.charge, asked.facts.tenant
    of_hours = beyond_budgets([charge], tenant) if charge is not None and tenant is not None else ()
    return (*of_keys, *of_hours, *type_warnings(asked, decision.assignment), *of_gpus, *of_eviction, *of_hook)


def eviction_warnings(decision: Decision) -> tuple[AdmissionWarning, ...]:
    """Warn of a tier that relies on eviction if kube-scheduler evicts nobody for the GPUs of its pods.

    Kueue and other schedulers evict by their own rules.
    """
    asked, tier = decision.tier_request, decision.assignment.tier
    scheduler = (decision.scheduling and decision.scheduling.scheduler) or asked.pod.spec.scheduler_name
    queued = any(
        QUEUE_NAME in each for each in (asked.pod.metadata.labels, *(owner.labels for owner in asked.facts.owners))
    )
    if tier is None or queued or scheduler not in UNNAMED or not evicts_others(tier, decision.live, asked.policy):
        return ()
    names = without_eviction(asked.pod, asked.facts.devices, asked.facts.eviction, asked.policy)
    return (AdmissionWarning("evicts-nobody", tier=tier.name, name=names[0]),) if names else ()


def without_room(decision: Decision, short: Shortfall, native: Iterable[NativeQuota], group: str = "") -> QuotaVerdict:
    """Return the refusal of a pod whose charge falls short, or a warning if its tenant wants only that.

    `group` is the name of the group that is booked with the pod. `native` are the ResourceQuotas of its namespace,
    which may leave less than the tenant's rows do.
    """
    asked, tenant = decision.tier_request, decision.tier_request.facts.tenant
    if tenant is None:
        return QuotaVerdict()
    rooms = native_rooms(asked.pod, short.charge.gpus, native, asked.policy)
    is_whole = group and decision.charge is not None and short.charge.gpus > decision.charge.gpus
    return pod_fit(short, tenant, open_tiers(asked, short.charge), rooms, f"group {group}" if is_whole else POD)


def queued_pod_fit(decision: Decision, usage: Usage, reserved: Usage) -> QuotaVerdict:
    """Return the refusal of a queued pod that never fits, or a warning of the row that has no room for it now.

    `reserved` is the part of the usage that is reserved for the queue.
    """
    asked, charge, tenant = decision.tier_request, decision.charge, decision.tier_request.facts.tenant
    if charge is None or tenant is None:
        return QuotaVerdict()
    # 1. A row may be too small for it, even if nothing else uses the row.
    small = never_fits(charge, tenant)
    fit = pod_fit(Shortfall(charge, small, usage), tenant, open_tiers(asked, charge)) if small else QuotaVerdict()
    short = shortfall((charge,), tenant, usage)
    if fit.refusal or short is None:
        return fit

    # 2. A person who makes a pod is warned of the row; other pods are covered when their workload is applied.
    if asked.pod.metadata.controller is not None:
        return structs.replace(fit, queued=True)
    row = short.row
    warning = AdmissionWarning(
        "pod-waits",
        tenant=tenant.name,
        row=row_usage(row, usage, reserved),
        gpus=short.charge.gpus,
        queued=Phrase("pod-queued"),
    )
    return QuotaVerdict(None, (*fit.warnings, warning), queued=True)


def whole_charge(charge: Charge, group: PodsTogether | None) -> Charge:
    """Return the charge of a pod's whole group; a single pod's own charge."""
    return structs.replace(charge, gpus=gpus_of_pods(group.count, charge.gpus, charge.shared)) if group else charge


def pod_fit(
    short: Shortfall,
    tenant: Tenant,
    tiers: Collection[Tier],
    native: Mapping[str, NativeRoom] = NOWHERE,
    what: Phrase | str = POD,
) -> QuotaVerdict:
    """Return the refusal of a pod whose charge falls short, with those of the tiers in which it would fit."""
    return fit_over_quota(over_quota(short, tenant, tiers, what, native), tenant, short.row)


def request_of_member(member: Member, facts: Facts, policy: TierPolicy, *, holds_gpus: bool) -> TierRequest:
    """Return the request of the pods that a template makes; its workload is the first of the facts' owners."""
    facts = structs.replace(facts, devices=member.devices, owners=(*member.makers, *facts.owners))
    evidence = classify(member.template, [each for each in facts.owners if not each.place], policy.kinds)
    return tier_request(member.template, facts, policy, evidence, holds_gpus=holds_gpus)


def assignment_of(asked: TierRequest) -> Assignment:
    """Return the assignment of our earlier pass, or that of the steps, so that every pass gives the same answer."""
    written = read_assigned_by(asked.pod.metadata.annotations)
    return (earlier_assignment(asked, written, class_borne(asked.pod)) if written else None) or assign(asked)


def decision_with(
    asked: TierRequest, assignment: Assignment, demand: Decimal, count: int = 1, least: int = 0
) -> Decision:
    """Return the decision with this assignment on so many pods with so many GPUs each."""
    pod, policy, tier = asked.pod, asked.policy, assignment.tier.name if assignment.tier else None
    hook = plan_hook(pod, type_given(asked, assignment), asked.facts, policy, tier)
    wanted, protection = policy.placement.get(tier or ""), policy.autoscaler.get(tier or "")
    placement = plan_placement(pod, asked.facts, policy.kinds, wanted) if wanted else None
    needed = GangPart(least, demand, _charge(asked, assignment, demand, least)) if least and demand else None
    charge, live = _charge(asked, assignment, demand, count), _live(assignment, asked)
    # The policy has something for the tier, or a scheduler with queues places the pod.
    placed = assignment.tier and (tier in policy.scheduling or pod.spec.scheduler_name in policy.systems)
    scheduling = plan_scheduling(pod, asked.facts, policy, assignment.tier) if assignment.tier and placed else None
    return Decision(
        asked,
        assignment,
        live,
        hook,
        charge,
        needed,
        placement=placement,
        scheduling=scheduling,
        autoscaler=plan_autoscaler(pod, asked.facts, protection) if protection else NO_PLAN,
        reserved_nodes=reserved_nodes_access(assignment.tier, policy) if policy.device_preemption == "On" else None,
    )


def decision_on_group(asked: TierRequest, assignment: Assignment) -> Decision:
    """Return the decision with this assignment on a group, which holds and runs nothing."""
    return Decision(asked, assignment, _live(assignment, asked))


def _charge(asked: TierRequest, assignment: Assignment, demand: Decimal, count: int = 1) -> Charge:
    """Return the charge of so many pods. A class outside the tiers counts in the rows of a tier, by its value."""
    shared, live = shared_by(asked.facts.devices, asked.policy), asked.facts.classes.get(asked.class_name)
    counted_in = tier_counted(asked.class_name, live.value if live else None, asked.policy.tiers)
    tier = assignment.tier.name if assignment.tier else counted_in
    # The flavor is that of the pod's node, or the one that it is bound to with its tier's node selector.
    facts, policy, flavor = asked.facts, asked.policy, None
    if policy.flavors:
        placement = policy.placement.get(assignment.tier.name) if assignment.tier else None
        bound = with_node_selector(asked.pod, facts, placement)
        flavor = flavor_on(facts.node_labels, policy.flavors) or flavor_of(bound, policy)
    return Charge(gpus_of_pods(count, demand, shared), tier, flavor, shared if count else {})


def _live(assignment: Assignment, asked: TierRequest) -> PriorityClass | None:
    if assignment.tier is None:
        return None
    return live_class(assignment.tier, asked.facts.classes, adoption=asked.policy.adoption)
