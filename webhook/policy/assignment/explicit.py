"""The steps in which somebody asks for a tier by name: a group, a label, a rule, a class.

Each takes the request and returns an assignment, or None where nobody asks. A person's mistake is Refused.
"""

from collections.abc import Iterator

from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused, shown
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest, class_asked, found, named
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts, Group
from webhook.policy.values.tier_policy import Match
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload import Workload


def by_group(request: TierRequest) -> Assignment | None:
    """The PodGroup's tier: the scheduler refuses a group whose pods differ from it in priority (1.37)."""
    group = request.facts.group
    if group is None or _keeps_its_class(group, request):
        return None
    tier = request.policy.tiers.of_class(group.priority_class_name)
    if tier is None and not group.prioritized:
        return None
    if tier is None:
        raise Refused(
            f"spec.schedulingGroup: PodGroup/{group.name} has no tier (priorityClassName "
            f'"{group.priority_class_name}"); create it again with the label {TIER_LABEL}, whose value is one of '
            f"{request.policy.tiers.names()}",
            Reason.CONTRADICTION,
        )
    if request.label not in (None, tier.name, group.demoted_from or None):
        raise _unlike(group, tier, f"metadata.labels[{TIER_LABEL}]: {shown(request.label)}")
    if not _class_gives_way(tier, group, request):
        raise _unlike(group, tier, f"spec.priorityClassName: {shown(request.class_name)}")
    return found(tier, f"PodGroup/{group.name} is {tier.name}", asked="spec.schedulingGroup")


def _keeps_its_class(group: Group, request: TierRequest) -> bool:
    """Whether group and pod share a class outside the tiers, as where the Job controller makes both."""
    shared = request.class_name != "" and request.class_name == group.priority_class_name
    return shared and request.policy.tiers.of_class(request.class_name) is None


def _class_gives_way(tier: Tier, group: Group, request: TierRequest) -> bool:
    """Whether a pod's class is its group's tier's, or gives way: to a demotion, to a rule, or since it is no tier's."""
    own = request.policy.tiers.of_class(request.class_name)
    if not request.class_name or own == tier or (own is not None and own.name == group.demoted_from):
        return True
    ruled = by_rule(request)
    return (ruled is not None and ruled.tier == tier) or (own is None and request.policy.unmanaged_classes == "Replace")


def _unlike(group: Group, tier: Tier, written: str) -> Refused:
    return Refused(
        f"{written}, but its PodGroup/{group.name} is {tier.name}; a group and its pods share one tier: "
        "write the group's, or leave it out",
        Reason.CONTRADICTION,
    )


def by_label(request: TierRequest) -> Assignment | None:
    """The label on the pod, then on its owners, the nearest first; for a member without GPUs, its gang's templates."""
    where, name = next(_labels(request), ("", None))
    if name is None:
        return None
    field = f"{where}metadata.labels[{TIER_LABEL}]"
    tier = named(name, field, request.policy)
    if request.class_name and request.policy.tiers.of_class(request.class_name) != tier:
        raise Refused(
            f"{field}: {tier.name} contradicts spec.priorityClassName: {shown(request.class_name)}; "
            "write one of the two, or the same in both",
            Reason.CONTRADICTION,
        )
    return found(tier, f"the label on {where.rstrip('.') or 'the pod'} says {tier.name}", asked=field)


def _labels(request: TierRequest) -> Iterator[tuple[str, str]]:
    if request.label is not None:
        yield "", request.label
    for owner in request.facts.owners:
        for where, template in _gang_of(owner, request):
            if TIER_LABEL in template.metadata.labels:
                yield where, template.metadata.labels[TIER_LABEL]
        if TIER_LABEL in owner.labels:
            yield f"{owner}.", owner.labels[TIER_LABEL]


def _gang_of(owner: Workload, request: TierRequest) -> Iterator[tuple[str, Pod]]:
    """The templates of its gang that hold GPUs, if the pod itself holds none: a launcher, a Ray head."""
    for member in owner.members if not request.holds_gpus else ():
        if hold_gpus((member,), request.policy):
            yield f"{owner}.{member.path}.", member.template


def by_rule(request: TierRequest) -> Assignment | None:
    """The first rule of the policy that matches."""
    for index, rule in enumerate(request.policy.rules):
        if matches(rule.match, request.pod, request.facts):
            rule_name = f"rules[{index}] of the policy"
            return found(named(rule.tier, "policy", request.policy), f"{rule_name} says {rule.tier}", asked=rule_name)
    return None


def matches(match: Match, pod: Pod, facts: Facts) -> bool:
    """Whether every part of the match that is given holds. Kinds match any owner, labels the pod or an owner."""
    return (
        (not match.kinds or any(owner.kind in match.kinds for owner in facts.owners))
        and (not match.labels or _labelled(match, pod, facts))
        and (not match.namespaces or facts.namespace.name in match.namespaces)
        and (not match.service_accounts or _account(pod, facts) in match.service_accounts)
    )


def _labelled(match: Match, pod: Pod, facts: Facts) -> bool:
    carriers = [pod.metadata.labels, *(owner.labels for owner in facts.owners)]
    return any(match.labels.items() <= dict(labels).items() for labels in carriers)


def _account(pod: Pod, facts: Facts) -> str:
    return f"{facts.namespace.name}:{pod.spec.service_account_name or 'default'}"


def by_class(request: TierRequest) -> Assignment | None:
    """The class on the pod; where it has none, a tier's class that an owner names for all of its pods.

    For a member without GPUs also one on its gang's templates.
    """
    for where, name in _classes(request):
        tier = request.policy.tiers.of_class(name)
        if tier is not None:
            field = f"{where}spec.priorityClassName"
            return found(tier, f"{field.removeprefix('spec.')} is {tier.name}", asked=field)
        if where == "":
            return _by_unmanaged_class(request)
    return None


def _classes(request: TierRequest) -> Iterator[tuple[str, str]]:
    if request.class_name:
        yield "", request.class_name
    for owner in request.facts.owners:
        if owner.class_name:  # Volcano before 1.11 does not write it on its pods
            yield f"{owner}.", owner.class_name
        for where, template in _gang_of(owner, request):
            yield where, class_asked(template)


def _by_unmanaged_class(request: TierRequest) -> Assignment | None:
    name = shown(request.class_name)
    match request.policy.unmanaged_classes:
        case "Deny":
            raise Refused(
                f"spec.priorityClassName: {name} is no tier's class; write one of {request.policy.tiers.names()}",
                Reason.FOREIGN_CLASS,
            )
        case "Keep":
            warning = f"priorityClassName {name} is no tier's class and is kept; this pod gets no tier"
            reason = f"priorityClassName {name} is outside the tiers and kept"
            return Assignment(None, "", reason, asked="spec.priorityClassName", warnings=(warning,))
    return None
