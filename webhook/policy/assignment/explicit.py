"""The steps in which somebody asks for a tier by name: a group, a label, a rule, a class.

Each takes what is asked and returns an assignment, or None where nobody asks. A person's mistake is Refused.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from webhook.objects.phrase import AdmissionWarning, Phrase
from webhook.objects.pods import Metadata, Pod
from webhook.objects.refusal import Reason, Refused
from webhook.policy.assignment.request import TIER_LABEL, Assignment, TierRequest, class_asked, found, named
from webhook.policy.quota.claimed import gpus_of
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts, Group
from webhook.policy.values.tier_policy import Match
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload import Member, Workload


def by_group(asked: TierRequest) -> Assignment | None:
    """The PodGroup's tier: the scheduler refuses a group whose pods differ from it in priority (1.37)."""
    group = asked.facts.group
    if group is None:
        return None
    _require_own_claims(group, asked)
    if _keeps_its_class(group, asked):
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


def _require_own_claims(group: Group, asked: TierRequest) -> None:
    """Raises Refused for GPUs of a claim that the group has for its pods.

    It may be of a template that had more GPUs when the group was made, and it keeps its devices when the pods are gone.
    Kubernetes gives a pod the group's claim if all fields of the two entries are equal.
    """
    tenant, devices = asked.facts.tenant, asked.facts.devices
    for index, claim in enumerate(asked.pod.spec.resource_claims if tenant and group.claims else ()):
        gpus = gpus_of([each for each in devices if each.entry == claim.name], asked.policy)
        if claim in group.claims and tenant and tenant.charges(gpus):
            field = f"spec.resourceClaims[{index}].name"
            raise Refused(Reason.INVALID, "claim-of-group", field, claim=claim.name, group=group.name)


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


class _Said(NamedTuple):
    """A label or a class that names a tier: by what it stands on, the place of its field, and its value.

    `owner` is the owner whose own field that is, and `template` the template of the pod's gang in which it stands.
    """

    on: str
    field: str
    text: str
    owner: Workload | None = None
    template: str = ""


def by_label(asked: TierRequest) -> Assignment | None:
    """The label on the pod, then on what makes it, the nearest first. The templates of a gang speak for each other."""
    said = next(_labels(asked), None)
    if said is None:
        return None
    tier = named(said.text, said.field, asked.policy)
    if asked.class_name and asked.policy.tiers.of_class(asked.class_name) != tier:
        raise Refused(
            Reason.CONTRADICTION, "label-unlike-class", said.field, tier=tier.name, class_name=asked.class_name
        )
    says = Phrase("label-says", bearer=said.on, tier=tier.name)
    return found(tier, says, asked=said.field, bearer=said.owner, template=said.template)


def _labels(asked: TierRequest) -> Iterator[_Said]:
    """Where each stands, the nearest first."""
    if asked.label is not None:
        yield _Said("the pod", f"metadata.labels[{TIER_LABEL}]", asked.label)
    for owner in asked.facts.owners:
        yield from _in_gang(owner, asked, _labels_on)
        if TIER_LABEL in owner.labels:
            yield _said(owner.metadata_place, owner.labels[TIER_LABEL], owner=None if owner.place else owner)


def _said(place: str, text: str, *, owner: Workload | None = None, template: str = "") -> _Said:
    return _Said(place.removesuffix(".metadata"), f"{place}.labels[{TIER_LABEL}]", text, owner, template)


def _labels_on(member: Member, whole: str) -> Iterator[_Said]:
    """Those of a template, and of what lies between it and its workload."""
    bearers: list[tuple[str, Metadata | Workload]] = [(f"{whole}.metadata", member.template.metadata)]
    bearers += ((each.metadata_place, each) for each in member.makers)
    for place, bearer in bearers:
        if TIER_LABEL in bearer.labels:
            yield _said(place, bearer.labels[TIER_LABEL], template=member.path)


def _classes_on(member: Member, whole: str) -> Iterator[_Said]:
    field, name = f"{whole}.spec.priorityClassName", class_asked(member.template)
    if name:
        yield _Said(field, field, name, template=member.path)


def _in_gang(owner: Workload, asked: TierRequest, says: Callable[[Member, str], Iterator[_Said]]) -> Iterator[_Said]:
    """What other templates of an owner say for a pod that names no tier itself; first those whose pods hold GPUs.

    A gang is of use only as a whole and runs in one tier, so each template that it needs speaks for all: people label
    the Worker of a PyTorchJob and leave its Master out. A pod without GPUs, such as a Ray head, follows any template
    that holds some.
    """
    if asked.class_name or (asked.holds_gpus and not owner.row.gang):
        return
    known, key = asked.facts.holders, (id(owner), says.__name__)
    if key not in known:
        spoken = [(member, each) for member in owner.members for each in says(member, f"{owner}.{member.path}")]
        known[key] = sorted(spoken, key=lambda pair: not _holds_gpus(pair[0], asked))
    for member, each in known[key]:
        if (owner.row.gang and member.least) or (not asked.holds_gpus and _holds_gpus(member, asked)):
            yield each


def _holds_gpus(member: Member, asked: TierRequest) -> bool:
    known = asked.facts.holders
    if id(member) not in known:
        known[id(member)] = hold_gpus((member,), asked.policy)
    return bool(known[id(member)])


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
    """The class on the pod; where it has none, a tier's class that an owner or a template of its gang names."""
    for said in _classes(asked):
        tier = asked.policy.tiers.of_class(said.text)
        if tier is not None:
            reason = Phrase("class-is", field=said.on, tier=tier.name)
            return found(tier, reason, asked=said.field, bearer=said.owner, template=said.template)
        if said.text is asked.class_name:
            return _by_unmanaged_class(asked)
    return None


def _classes(asked: TierRequest) -> Iterator[_Said]:
    """Where each stands, the nearest first."""
    if asked.class_name:
        yield _Said("priorityClassName", "spec.priorityClassName", asked.class_name)
    for owner in asked.facts.owners:
        if owner.class_name:  # Volcano before 1.11 does not write it on its pods
            field = f"{owner}.spec.priorityClassName"
            yield _Said(field, field, owner.class_name, owner)
        yield from _in_gang(owner, asked, _classes_on)


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
