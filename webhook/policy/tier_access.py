"""Tells which tier somebody named: with `tierAccess: RBAC`, that takes the right to use it.

Nobody names the tier that a rule, a workload type or a default gives.
"""

from collections.abc import Iterator
from contextlib import suppress

from msgspec import structs

from webhook.objects.refusal import Refused
from webhook.policy.assignment.limits import EXPLICIT
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest, names_a_tier
from webhook.policy.assignment.steps import assign
from webhook.policy.decide import assignment_of, request_of_member
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy


def named_tier(asked: TierRequest, assignment: Assignment) -> str:
    """Return the tier that somebody named for a pod or a group, perhaps on an owner; "" if nobody did."""
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

    A workload that asks for no GPUs names none, even with the label: the webhook does not see it before it asks.
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
    """Tell whether a workload above names the tier: whoever applied that was asked about it then."""
    above = (structs.replace(facts, owners=facts.owners[index:], group=None) for index in range(len(facts.owners)))
    return any(tier == each for owner in above for each in tiers_named_in(owner, policy))
