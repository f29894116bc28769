"""Decides on a pod. Begin here; decide_workload.py and decide_group.py continue.

Each decision asks: is it ours, which tier, which checkpoint hook, which PriorityClass, which charge. All inputs are
values. A function raises Refused if a person asks for something impossible.
"""

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal

import msgspec
from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Refused
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.assignment.kueue import QUEUE_NAME, class_due, is_queued, require_one_tier
from webhook.policy.assignment.limits import EXPLICIT, demoted, demoted_to
from webhook.policy.assignment.request import (
    TIER_LABEL,
    Assignment,
    TierRequest,
    concerns,
    gang_with_gpus,
    names_a_tier,
    require_metadata_and_spec,
    tier_request,
)
from webhook.policy.assignment.steps import assign, earlier_assignment, type_given, type_warnings
from webhook.policy.checkpoint.hook_plan import HookDecision, plan_hook
from webhook.policy.checkpoint.hook_warnings import hook_warnings
from webhook.policy.classification.classify import classify
from webhook.policy.devices import evicts_others, without_eviction
from webhook.policy.metadata_keys import unknown_keys
from webhook.policy.placement import (
    NO_PLAN,
    UNNAMED,
    AutoscalerPlan,
    PlacementPlan,
    SchedulingPlan,
    missing_node_selector,
    plan_autoscaler,
    plan_placement,
    plan_scheduling,
)
from webhook.policy.preemption.node_state import ReservedNodesAccess, reserved_nodes_access
from webhook.policy.quota.charges import Charge, GangPart, flavor_of, flavor_on, tier_counted
from webhook.policy.quota.demand import demand_of, gpus_of_pods, refuse_unlisted, shared_by, unlisted_warnings
from webhook.policy.quota.refusals import beyond_budgets
from webhook.policy.values.facts import Facts, selecting
from webhook.policy.values.tenants import OnExceed, Tenant, Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, live_class
from webhook.policy.workloads.pod_groups import PodsTogether
from webhook.policy.workloads.workload import Member, gang_among


class Decision(msgspec.Struct, frozen=True):
    """The decision on one pod, or on all pods of one template.

    `charge` counts all of them, `least` those that a gang needs. `live` is the PriorityClass of its tier, None for a
    class outside the tiers. `hook` and `charge` are None for a PodGroup, which has no containers. `queue_class` is the
    value of Kueue's label, None if the pod needs none. `placement` and `scheduling` are None if the policy has none for
    its tier. `reserved_nodes` says which nodes a pod may use that are reserved for preemptors; None unless
    `preemption.dra` is On. `disruption_mode` is what is written on a PodGroup; None if its own stays.
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
        tenant, charge = self.charged or (None, None)
        if tenant is None or charge is None or not charge.rows(tenant):
            return None
        if self.gets_gate:
            return "Hold"
        return "Deny" if tenant.on_exceed == "Hold" else tenant.on_exceed

    @property
    def asks_for_gpus(self) -> bool:
        return self.charge is not None and self.charge.gpus > 0

    @property
    def gets_gate(self) -> bool:
        """Tell whether a pod gets our gate: with `onExceed: Hold` every charged pod does, even with room.

        A group of pods that no workload makes is admitted as a whole or refused. A pod without GPUs is queued with its
        gang's GPU pods, because it would start without them. The API server accepts no gate on a pod that names its
        node.
        """
        pod, facts, charge = self.tier_request.pod, self.tier_request.facts, self.charge
        if facts.tenant is None or charge is None or pod.spec.node_name:
            return False
        if not facts.tenant.holds_on(charge.tier, charge.flavor):
            return False
        if charge.gpus > 0:
            return facts.together is None
        return gang_among(facts.owners) is not None and gang_with_gpus(facts, self.tier_request.policy) is not None

    @property
    def charged(self) -> tuple[Tenant, Charge] | None:
        """Return the tenant that its pods are charged to, and their charge; None if nothing is booked for them."""
        tenant, charge = self.tier_request.facts.tenant, self.charge
        return (tenant, charge) if tenant and charge and tenant.charges(charge.gpus) else None


def decide_pod(
    pod: Pod, facts: Facts, policy: TierPolicy, usage: Usage | None = None, gang_tier: str = ""
) -> Decision | None:
    """Return the decision on a pod; None if it is not ours. A pod without room in the tenant's `usage` may be demoted.

    `usage` leaves out the ResourceClaims that the pod shares. Without `usage`, the pod runs at the `gang_tier` to which
    its gang was demoted.
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
    if policy.kueue is None or not is_queued(pod.metadata):
        return decision
    # A controller can't correct the class of another tier, but the person who made the pod can.
    if pod.metadata.controller is None:
        require_one_tier(pod.metadata, assignment, policy)
    return structs.replace(decision, queue_class=class_due(pod.metadata, assignment, facts.selects))


def pod_warnings(decision: Decision) -> tuple[AdmissionWarning, ...]:
    """Return the warnings about a pod's labels, used up budgets, type, GPUs, evictions and hook.

    A pod of a workload with templates gets none, because the author of the workload got them when it was applied.
    """
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
    labels = (asked.pod.metadata.labels, *(owner.labels for owner in asked.facts.owners))
    queued = any(QUEUE_NAME in each for each in labels)
    if tier is None or queued or scheduler not in UNNAMED or not evicts_others(tier, decision.live, asked.policy):
        return ()
    names = without_eviction(asked.pod, asked.facts.devices, asked.facts.eviction, asked.policy)
    return (AdmissionWarning("evicts-nobody", tier=tier.name, name=names[0]),) if names else ()


def whole_charge(charge: Charge, group: PodsTogether | None) -> Charge:
    """Return the charge of a pod's whole group; without a group, the pod's own charge."""
    return structs.replace(charge, gpus=gpus_of_pods(group.count, charge.gpus, charge.shared)) if group else charge


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
    """Return the decision with this assignment on `count` pods with `demand` GPUs each, of which a gang needs `least`.

    Raises Refused for an impossible hook, or if the tier's PriorityClass is missing or differs.
    """
    pod, policy, tier = asked.pod, asked.policy, assignment.tier.name if assignment.tier else None
    hook = plan_hook(pod, type_given(asked, assignment), asked.facts, policy, tier)
    wanted, protection = policy.placement.get(tier or ""), policy.autoscaler.get(tier or "")
    placement = plan_placement(pod, asked.facts, policy.kinds, wanted) if wanted else None
    needed = GangPart(least, demand, _charge(asked, assignment, demand, least)) if least and demand else None
    charge, live = _charge(asked, assignment, demand, count), _live(assignment, asked)
    # The policy has something for the tier, or a scheduler with queues places the pod.
    placed = assignment.tier and (tier in policy.scheduling or pod.spec.scheduler_name in policy.systems)
    scheduling = plan_scheduling(pod, asked.facts, policy, assignment.tier) if assignment.tier and placed else None
    autoscaler = plan_autoscaler(pod, asked.facts, protection) if protection else NO_PLAN
    access = reserved_nodes_access(assignment.tier, policy) if policy.device_preemption == "On" else None
    of_tier = placement, scheduling, autoscaler, access
    return Decision(asked, assignment, live, hook, charge, needed, None, *of_tier)


def decision_on_group(asked: TierRequest, assignment: Assignment) -> Decision:
    """Return the decision with this assignment on a PodGroup, which has no hook and no charge."""
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
        more = missing_node_selector(asked.pod, facts, placement.node_selector) if placement else {}
        flavor = flavor_on(facts.node_labels, policy.flavors) or flavor_of(selecting(asked.pod, more), policy)
    return Charge(gpus_of_pods(count, demand, shared), tier, flavor, shared if count else {})


def _live(assignment: Assignment, asked: TierRequest) -> PriorityClass | None:
    if assignment.tier is None:
        return None
    return live_class(assignment.tier, asked.facts.classes, adoption=asked.policy.adoption)


def named_tier(asked: TierRequest, assignment: Assignment) -> str:
    """Return the tier that somebody named for a pod or a group, perhaps on an owner; "" if nobody did.

    Nobody names the tier that a rule, a workload type or a default gives. With `tierAccess: RBAC`, a user who names a
    tier needs the right to use it.
    """
    group = asked.facts.group
    if assignment.tier is None or assignment.step not in EXPLICIT:
        return ""
    if assignment.step != "group" or group is None:
        return assignment.demoted_from or assignment.tier.name
    # Whoever joins a group names its tier, unless the pod would get the same without the group.
    name = group.demoted_from or assignment.tier.name
    alone = structs.replace(asked, label=None, class_name="", facts=structs.replace(asked.facts, group=None))
    with suppress(Refused):
        otherwise = assign(alone)
        if otherwise.step not in EXPLICIT and otherwise.tier and otherwise.tier.name == name:
            return ""
    return name


def tiers_named_in(facts: Facts, policy: TierPolicy) -> Iterator[str]:
    """Yield the tiers that somebody named in a workload, the first of the facts' owners, or above it.

    A template whose tier nobody named yields "". A workload that asks for no GPUs names none, even with the label: the
    webhook does not see it before it asks.
    """
    own = facts.owners[0]
    members = [(each, demand_of(each.template, each.devices, policy)) for each in own.members]
    if members and not any(demand or names_a_tier(each.template, policy) for each, demand in members):
        return
    if labelled := policy.tiers.get(own.labels.get(TIER_LABEL, "")):
        yield labelled.name
    for member, demand in members:
        with suppress(Refused):  # its pods are refused
            asked = request_of_member(member, facts, policy, holds_gpus=demand > 0)
            yield named_tier(asked, assignment_of(asked))


def is_named_by_owner(tier: str, facts: Facts, policy: TierPolicy) -> bool:
    """Tell whether an owner names the tier. The right of the user who applied the owner was checked then."""
    above = (structs.replace(facts, owners=facts.owners[index:], group=None) for index in range(len(facts.owners)))
    return any(tier == each for owner in above for each in tiers_named_in(owner, policy))
