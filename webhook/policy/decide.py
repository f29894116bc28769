"""What policy says of a pod, a PodGroup or a workload: the chapter to begin with.

Each decision asks: is it ours, which tier, which checkpoint hook, which PriorityClass, which charge. All that it rests
on comes in as values. Every function raises Refused where a person asks for what can't be had.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from webhook.objects.pods import Pod, PodGroup, PodSpec, require_metadata_and_spec
from webhook.policy.assignment.demotion import demoted
from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.reinvocation import earlier_assignment
from webhook.policy.assignment.request import ASSIGNED_BY, Assignment, TierRequest, tier_request
from webhook.policy.assignment.scope import concerns, group_concerns
from webhook.policy.assignment.steps import assign
from webhook.policy.checkpoint.hook_plan import HookDecision, plan_hook
from webhook.policy.checkpoint.hook_warnings import HookSubject, hook_warnings
from webhook.policy.checkpoint.job_failures import job_warnings
from webhook.policy.quota.charges import Charge, tier_counted
from webhook.policy.quota.demand import demand_of, flavor_of
from webhook.policy.quota.whole_workload import WholeFit, whole_fit
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, live_class
from webhook.policy.workloads.workload_types import WorkloadType


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided of one pod, or of all pods of one template: a `charge` counts them all.

    `live` is the PriorityClass of its tier as it is now, None where a class outside the tiers is kept. `hook` and
    `charge` are None for a PodGroup, which holds nothing and runs nothing.
    """

    request: TierRequest
    assignment: Assignment
    live: PriorityClass | None
    hook: HookDecision | None = None
    charge: Charge | None = None


@dataclass(frozen=True, slots=True)
class WorkloadDecision:
    """What is decided of a workload: of each template that is ours, and of all together against the quota."""

    decisions: tuple[Decision, ...]
    fit: WholeFit
    warnings: tuple[str, ...]

    @property
    def assignment(self) -> Assignment:
        """What is said of the whole: of what holds most; of a pipeline's like steps, of the one that trains."""
        return max(self.decisions, key=_weight).assignment


def decide_pod(pod: Pod, facts: Facts, policy: TierPolicy) -> Decision | None:
    """The decision on a pod; None where it is not ours. It is demoted only where the facts have the tenant's usage."""
    demand = demand_of(pod, facts.devices, policy)
    if not concerns(pod, demand, facts, policy):
        return None
    require_metadata_and_spec(pod)
    request = tier_request(pod, facts, policy, holds_gpus=demand > 0)
    return _decided(request, demoted(assigned(request), demand, request), demand)


def decide_group(group: PodGroup, facts: Facts, policy: TierPolicy) -> Decision | None:
    """The decision on a PodGroup; None where its owner holds no GPUs and it names no tier itself.

    It asks as a pod would. Since it holds nothing itself, it takes the tier that its gang's templates name.
    """
    if not group_concerns(group, facts, policy):
        return None
    require_metadata_and_spec(group)
    wish = Pod(metadata=group.metadata, spec=PodSpec(priority_class_name=group.spec.priority_class_name))
    request = tier_request(wish, facts, policy, holds_gpus=False)
    assignment = assigned(request)
    return Decision(request, assignment, _live(assignment, request))


def decide_workload(tree: dict[str, Any], facts: Facts, policy: TierPolicy) -> WorkloadDecision | None:
    """The decision on a workload, which is the first of the facts' owners; None where none of its templates is ours."""
    decisions = tuple(_of_templates(facts, policy))
    if not decisions:
        return None
    told = [warning for each in decisions for warning in each.assignment.warnings]
    told += _hook_warnings(tree, decisions, facts)
    return WorkloadDecision(decisions, _fit(decisions, facts), tuple(dict.fromkeys(told)))


def pod_warnings(decision: Decision) -> tuple[str, ...]:
    """What a person should know of a pod's hook. Of a workload's pods it was said when that was applied."""
    request = decision.request
    if decision.hook is None or any(owner.members for owner in request.facts.owners):
        return ()
    bare = request.pod.metadata.controller is None
    return hook_warnings(HookSubject(request.pod, decision.hook, request.policy.checkpoint, bare=bare))


def assigned(request: TierRequest) -> Assignment:
    """The assignment of an earlier pass of ours, else that of the steps: the answer is the same at every pass."""
    assigned_by = request.pod.metadata.annotations.get(ASSIGNED_BY)
    return (earlier_assignment(request, assigned_by) if assigned_by else None) or assign(request)


def _decided(request: TierRequest, assignment: Assignment, demand: Decimal) -> Decision:
    pod, policy = request.pod, request.policy
    workload_type = assignment.evidence.type if assignment.evidence else None
    tier = assignment.tier.name if assignment.tier else None
    hook = plan_hook(pod, workload_type, request.facts.owners, policy, tier)
    charge = Charge(demand, tier or _tier_of_kept_class(request), flavor_of(pod, policy.flavors))
    return Decision(request, assignment, _live(assignment, request), hook, charge)


def _live(assignment: Assignment, request: TierRequest) -> PriorityClass | None:
    if assignment.tier is None:
        return None
    return live_class(assignment.tier, request.facts.classes, adoption=request.policy.adoption)


def _tier_of_kept_class(request: TierRequest) -> str | None:
    """The tier in whose rows a kept class counts, by its value."""
    live = request.facts.classes.get(request.class_name)
    return tier_counted(request.class_name, live.value if live else None, request.policy.tiers)


def _of_templates(facts: Facts, policy: TierPolicy) -> Iterator[Decision]:
    """The templates that are ours, as their pods will be judged."""
    members = facts.owners[0].members
    demands = [demand_of(member.template, (), policy) for member in members]
    for member, demand in zip(members, demands, strict=True) if any(demands) else ():
        request = tier_request(member.template, facts, policy, holds_gpus=demand > 0)
        yield _decided(request, assigned(request), demand * member.count)


def _weight(decision: Decision) -> tuple[Decimal, bool]:
    evidence = decision.assignment.evidence
    held = decision.charge.gpus if decision.charge else Decimal(0)
    return held, evidence is not None and evidence.type is WorkloadType.TRAINING


def _hook_warnings(tree: dict[str, Any], decisions: tuple[Decision, ...], facts: Facts) -> Iterator[str]:
    """What a person should know of the hooks. Where another workload makes this one, it was said of that."""
    own, *above = facts.owners
    if any(owner.members for owner in above):
        return
    hooks = [(each, each.hook) for each in decisions if each.hook]
    for each, hook in hooks:
        yield from hook_warnings(HookSubject(each.request.pod, hook, each.request.policy.checkpoint))
    if any(hook.plan is not None for _, hook in hooks):
        yield from job_warnings(tree, own.kind)


def _fit(decisions: tuple[Decision, ...], facts: Facts) -> WholeFit:
    own, tenant = facts.owners[0], facts.tenant
    if tenant is None or tenant.charged_elsewhere:
        return WholeFit()
    charges = [each.charge for each in decisions if each.charge]
    tiers = acceptable(decisions[0].request)
    return whole_fit(charges, tenant, tiers, f"this {own.kind}", at_once=own.row.at_once, usage=facts.usage)
