"""A workload's templates, each as its pods will be judged; books nothing and refuses only as those would be."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.admission.quota import tier_counted
from webhook.objects.pods import Pod
from webhook.policy.assignment.consistency import live_class
from webhook.policy.assignment.reinvocation import settle
from webhook.policy.assignment.request import Assignment, TierRequest, tier_request
from webhook.policy.checkpoint.hook_plan import HookDecision, decide
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.demand import demand_of, flavor_of
from webhook.policy.values.facts import Facts, Workload
from webhook.policy.values.tier_policy import TierPolicy


@dataclass(frozen=True, slots=True)
class Part:
    """The pods of one template: what they ask for, their tier, their hook, and the GPUs they hold together."""

    ask: TierRequest
    assignment: Assignment
    hook: HookDecision
    charge: Charge


def parts_of(facts: Facts, policy: TierPolicy) -> Iterator[Part]:
    """The workload's templates that are ours, as their pods will be judged. Raises Refused as those would be."""
    own: Workload = facts.owners[0]
    demands = [demand_of(member.template, (), policy) for member in own.members]
    if not any(demands):
        return
    for member, demand in zip(own.members, demands, strict=True):
        ask = tier_request(member.template, facts, policy, holds_gpus=demand > 0)
        assignment = settle(ask)
        hook = _could_be_patched(member.template, assignment, ask)
        flavor = flavor_of(member.template, policy.flavors)
        yield Part(ask, assignment, hook, Charge(demand * member.count, tier_counted(assignment, ask), flavor))


def _could_be_patched(template: Pod, assignment: Assignment, ask: TierRequest) -> HookDecision:
    """The hook; raises Refused where the template's pods would be: no class for them, or a hook that there is not."""
    if assignment.tier is not None:
        live_class(assignment.tier, ask)
    kind = assignment.evidence.type if assignment.evidence else None
    return decide(template, kind, ask.facts.owners, ask.policy, assignment.tier.name if assignment.tier else None)
