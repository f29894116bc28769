"""The steps in which somebody asked for a tier by name: a group, a label, a rule, a class; never what we choose.

Each is a function from what was asked and what is known to a finding, or None. A mistake is Refused.
"""

from collections.abc import Iterator

from webhook.policy.assignment import TIER_LABEL, Ask, Assignment, found, named
from webhook.policy.demand import hold_gpus
from webhook.policy.facts import Group, Workload
from webhook.policy.objects import Pod
from webhook.policy.refusal import Refused, shown
from webhook.policy.rules import matches
from webhook.policy.tiers import Tier


def by_group(ask: Ask) -> Assignment | None:
    """The scheduler refuses a group whose pods differ from it in priority (1.37), so its tier is no choice."""
    group = ask.facts.group
    if group is None:
        return None
    tier = ask.policy.tiers.of_class(group.priority_class_name)
    if tier is None:
        raise Refused(
            f"spec.schedulingGroup: PodGroup/{group.name} has no tier (priorityClassName "
            f'"{group.priority_class_name}"); make it again with the label {TIER_LABEL}, one of '
            f"{ask.policy.tiers.names()}"
        )
    named_by_class = ask.policy.tiers.of_class(ask.class_name)
    if ask.label not in (None, tier.name):
        raise _unlike(group, tier, f"metadata.labels[{TIER_LABEL}]: {shown(ask.label)}")
    if ask.class_name and named_by_class != tier:
        raise _unlike(group, tier, f"spec.priorityClassName: {shown(ask.class_name)}")
    return found(tier, f"PodGroup/{group.name} is {tier.name}", asked="spec.schedulingGroup")


def _unlike(group: Group, tier: Tier, written: str) -> Refused:
    return Refused(
        f"{written}, but its PodGroup/{group.name} is {tier.name}; a group and its pods share one tier: "
        "write the group's, or leave it out"
    )


def by_label(ask: Ask) -> Assignment | None:
    """The label on the pod, then on its owners, the nearest first; for a member without GPUs, its gang's templates."""
    where, name = next(_labels(ask), ("", None))
    if name is None:
        return None
    field = f"{where}metadata.labels[{TIER_LABEL}]"
    tier = named(name, field, ask.policy)
    if ask.class_name and ask.policy.tiers.of_class(ask.class_name) != tier:
        raise Refused(
            f"{field}: {tier.name} contradicts spec.priorityClassName: {shown(ask.class_name)}; "
            "write one of the two, or the same in both"
        )
    return found(tier, f"the label on {where.rstrip('.') or 'the pod'} says {tier.name}", asked=field)


def _labels(ask: Ask) -> Iterator[tuple[str, str]]:
    if ask.label is not None:
        yield "", ask.label
    for owner in ask.facts.owners:
        for where, template in _gang_of(owner, ask):
            if TIER_LABEL in template.metadata.labels:
                yield where, template.metadata.labels[TIER_LABEL]
        if TIER_LABEL in owner.labels:
            yield f"{owner}.", owner.labels[TIER_LABEL]


def _gang_of(owner: Workload, ask: Ask) -> Iterator[tuple[str, Pod]]:
    """The templates that hold GPUs, where the pod itself holds none and goes with them: a launcher, a Ray head."""
    for member in owner.members if not ask.holds_gpus else ():
        if hold_gpus((member,), ask.policy):
            yield f"{owner}.{member.path}.", member.template


def by_rule(ask: Ask) -> Assignment | None:
    """The first rule of the policy that matches."""
    for index, rule in enumerate(ask.policy.rules):
        if matches(rule.match, ask.pod, ask.facts):
            rule_name = f"rules[{index}] of the policy"
            return found(named(rule.tier, "policy", ask.policy), f"{rule_name} says {rule.tier}", asked=rule_name)
    return None


def by_class(ask: Ask) -> Assignment | None:
    """The class on the pod; for a member without GPUs that has none, a tier's class on its gang's templates."""
    for where, name in _classes(ask):
        tier = ask.policy.tiers.of_class(name)
        if tier is not None:
            field = f"{where}spec.priorityClassName"
            return found(tier, f"{field.removeprefix('spec.')} is {tier.name}", asked=field)
        if where == "":
            return _by_unmanaged_class(ask)
    return None


def _classes(ask: Ask) -> Iterator[tuple[str, str]]:
    if ask.class_name:
        yield "", ask.class_name
    for owner in ask.facts.owners:
        for where, template in _gang_of(owner, ask):
            yield where, template.spec.priority_class_name


def _by_unmanaged_class(ask: Ask) -> Assignment | None:
    name = shown(ask.class_name)
    match ask.policy.unmanaged_classes:
        case "Deny":
            raise Refused(f"spec.priorityClassName: {name} is no tier's class; write one of {ask.policy.tiers.names()}")
        case "Keep":
            warning = f"priorityClassName {name} is no tier's class and is kept; this pod gets no tier"
            reason = f"priorityClassName {name} is outside the tiers and kept"
            return Assignment(None, "", reason, asked="spec.priorityClassName", warnings=(warning,))
    return None
