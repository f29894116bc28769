"""The steps in which somebody asks for a tier by name: a group, a label, a rule, a class.

Each takes what is asked and returns an assignment, or None where nobody asks. A person's mistake is Refused.
"""

from collections.abc import Callable, Iterator

from webhook.objects.phrase import AdmissionWarning, Phrase
from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest, class_asked, found, named
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts, Group
from webhook.policy.values.tier_policy import Match
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload import Member, Workload


def by_group(asked: TierRequest) -> Assignment | None:
    """The PodGroup's tier: the scheduler refuses a group whose pods differ from it in priority (1.37)."""
    group = asked.facts.group
    if group is None or _keeps_its_class(group, asked):
        return None
    tier = asked.policy.tiers.of_class(group.priority_class_name)
    if tier is None and not group.prioritized:
        return None
    if tier is None:
        raise Refused(
            Reason.CONTRADICTION,
            "group-without-tier",
            "spec.schedulingGroup",
            group=group.name,
            class_name=group.priority_class_name,
            label=TIER_LABEL,
            tiers=asked.policy.tiers.names(),
        )
    if asked.label not in (None, tier.name, group.demoted_from or None):
        raise _unlike(group, tier, f"metadata.labels[{TIER_LABEL}]", asked.label)
    if not _class_gives_way(tier, group, asked):
        raise _unlike(group, tier, "spec.priorityClassName", asked.class_name)
    return found(tier, Phrase("group-is", group=group.name, tier=tier.name), asked="spec.schedulingGroup")


def _keeps_its_class(group: Group, asked: TierRequest) -> bool:
    """Tells whether group and pod share a class outside the tiers, as where the Job controller makes both."""
    shared = asked.class_name != "" and asked.class_name == group.priority_class_name
    return shared and asked.policy.tiers.of_class(asked.class_name) is None


def _class_gives_way(tier: Tier, group: Group, asked: TierRequest) -> bool:
    """Tells whether a pod's class is its group's tier's, or gives way: to a demotion, to a rule, or as no tier's."""
    own = asked.policy.tiers.of_class(asked.class_name)
    if not asked.class_name or own == tier or (own is not None and own.name == group.demoted_from):
        return True
    ruled = by_rule(asked)
    return (ruled is not None and ruled.tier == tier) or (own is None and asked.policy.unmanaged_classes == "Replace")


def _unlike(group: Group, tier: Tier, field: str, written: str) -> Refused:
    return Refused(Reason.CONTRADICTION, "unlike-group", field, written=written, group=group.name, tier=tier.name)


def by_label(asked: TierRequest) -> Assignment | None:
    """The label on the pod, then on its owners, the nearest first; for a member without GPUs, its gang's templates."""
    bearer = next(_labels(asked), None)
    if bearer is None:
        return None
    where, name, owner = bearer
    field = f"{where}metadata.labels[{TIER_LABEL}]"
    tier = named(name, field, asked.policy)
    if asked.class_name and asked.policy.tiers.of_class(asked.class_name) != tier:
        raise Refused(Reason.CONTRADICTION, "label-unlike-class", field, tier=tier.name, class_name=asked.class_name)
    says = Phrase("label-says", bearer=where.rstrip(".") or "the pod", tier=tier.name)
    return found(tier, says, asked=field, bearer=owner)


def _labels(asked: TierRequest) -> Iterator[tuple[str, str, Workload | None]]:
    """Where each stands, with the owner that bears it itself."""
    if asked.label is not None:
        yield "", asked.label, None
    for owner in asked.facts.owners:
        for where, name in _said_in_gang(owner, asked, lambda template: template.metadata.labels.get(TIER_LABEL)):
            yield where, name, None
        if TIER_LABEL in owner.labels:
            yield f"{owner}.", owner.labels[TIER_LABEL], owner


def _said_in_gang(owner: Workload, asked: TierRequest, said: Callable[[Pod], str | None]) -> Iterator[tuple[str, str]]:
    """What templates of its gang say that hold GPUs, if the pod itself holds none: a launcher, a Ray head."""
    for member in owner.members if not asked.holds_gpus else ():
        name = said(member.template)
        if name is not None and _holds_gpus(member, asked):
            yield f"{owner}.{member.path}.", name


def _holds_gpus(member: Member, asked: TierRequest) -> bool:
    known = asked.facts.holders
    if id(member) not in known:
        known[id(member)] = hold_gpus((member,), asked.policy)
    return known[id(member)]


def by_rule(asked: TierRequest) -> Assignment | None:
    for index, rule in enumerate(asked.policy.rules):
        if matches(rule.match, asked.pod, asked.facts):
            rule_name = f"rules[{index}] of the policy"
            says = Phrase("rule-says", rule=rule_name, tier=rule.tier)
            return found(named(rule.tier, "policy", asked.policy), says, asked=rule_name)
    return None


def matches(match: Match, pod: Pod, facts: Facts) -> bool:
    """Tells whether every part of the match that is given holds. Kinds match any owner, labels the pod or an owner."""
    carriers = (pod.metadata.labels, *(owner.labels for owner in facts.owners))
    return (
        (not match.kinds or any(owner.kind in match.kinds for owner in facts.owners))
        and (not match.labels or any(match.labels.items() <= dict(labels).items() for labels in carriers))
        and (not match.namespaces or facts.namespace.name in match.namespaces)
        and (not match.service_accounts or _account(pod, facts) in match.service_accounts)
    )


def _account(pod: Pod, facts: Facts) -> str:
    return f"{facts.namespace.name}:{pod.spec.service_account_name or 'default'}"


def by_class(asked: TierRequest) -> Assignment | None:
    """The class on the pod; where it has none, a tier's class that an owner names for all of its pods.

    For a member without GPUs also one on its gang's templates.
    """
    for where, name, owner in _classes(asked):
        tier = asked.policy.tiers.of_class(name)
        if tier is not None:
            field = f"{where}spec.priorityClassName"
            reason = Phrase("class-is", field=field if where else "priorityClassName", tier=tier.name)
            return found(tier, reason, asked=field, bearer=owner)
        if where == "":
            return _by_unmanaged_class(asked)
    return None


def _classes(asked: TierRequest) -> Iterator[tuple[str, str, Workload | None]]:
    """Where each stands, with the owner that bears it itself."""
    if asked.class_name:
        yield "", asked.class_name, None
    for owner in asked.facts.owners:
        if owner.class_name:  # Volcano before 1.11 does not write it on its pods
            yield f"{owner}.", owner.class_name, owner
        for where, name in _said_in_gang(owner, asked, lambda template: class_asked(template) or None):
            yield where, name, None


def _by_unmanaged_class(asked: TierRequest) -> Assignment | None:
    name, field = asked.class_name, "spec.priorityClassName"
    match asked.policy.unmanaged_classes:
        case "Deny":
            tiers = asked.policy.tiers.names()
            raise Refused(Reason.FOREIGN_CLASS, "class-of-no-tier", field, name=name, tiers=tiers)
        case "Keep":
            reason, warning = Phrase("class-kept", name=name), AdmissionWarning("class-kept", name=name)
            return Assignment(None, "", reason, asked=field, warnings=(warning,))
    return None
