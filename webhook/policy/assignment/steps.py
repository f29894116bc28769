"""The steps by which a pod gets its tier: the first that finds one decides.

Each step returns an assignment or None. First come the steps in which somebody names a tier: a group, a label, a rule,
a class. A person's mistake there is Refused. Then gpu-tiers chooses a tier, with warnings that name the label which
settles an unclear type. A pod that has passed the webhook before (reinvocationPolicy: IfNeeded, then validation) keeps
its tier.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refused
from webhook.policy.assignment.assigned_by import AssignedBy, assigned_by
from webhook.policy.assignment.limits import acceptable, within_limits
from webhook.policy.assignment.request import (
    DEFAULT_TIER_LABEL,
    TIER_LABEL,
    Assignment,
    TierRequest,
    class_asked,
    named,
)
from webhook.policy.classification.evidence import MOST_READ, Evidence
from webhook.policy.quota.demand import gpus_of, hold_gpus
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Grade, Match
from webhook.policy.values.tiers import NONPREEMPTING, Tier
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Member, Workload


def by_group(asked: TierRequest) -> Assignment | None:
    """Return the PodGroup's tier, because the scheduler refuses a group whose pods have another priority (1.37).

    None without a group, or if it has no tier and may have none. Raises Refused if group and pod contradict each other,
    or if the pod uses a claim of the group for GPUs.
    """
    group, policy, tenant = asked.facts.group, asked.policy, asked.facts.tenant
    if group is None:
        return None
    # 1. A claim that the PodGroup has for its pods has no GPUs. Its template may have had more when the group was
    #    created, and the claim keeps its devices when the pods are gone. Kubernetes gives a pod the group's claim if
    #    all fields of the two entries are equal.
    for index, claim in enumerate(asked.pod.spec.resource_claims if tenant and group.claims else ()):
        gpus = gpus_of([each for each in asked.facts.devices if each.entry == claim.name], policy)
        if claim in group.claims and tenant and tenant.charges(gpus):
            field = f"spec.resourceClaims[{index}].name"
            raise Refused(Reason.INVALID, "claim-of-group", field, claim=claim.name, group=group.name)

    # 2. The group's class is a tier's. Group and pod share another class if the Job controller makes both.
    name, field = group.priority_class_name, "spec.schedulingGroup"
    tier = policy.tiers.of_class(name)
    if tier is None and ((asked.class_name and asked.class_name == name) or not group.prioritized):
        return None
    if tier is None:
        tiers, of = policy.tiers.names(), group.name
        raise Refused(
            Reason.CONTRADICTION, "group-without-tier", field, group=of, class_name=name, label=TIER_LABEL, tiers=tiers
        )

    # 3. The pod's label and class are that tier's, too. Its class may yield to a demotion, a rule, or a policy
    #    that replaces classes outside the tiers.
    own, wrong, written = policy.tiers.of_class(asked.class_name), "", asked.label or ""
    if asked.label not in (None, tier.name, group.demoted_from or None):
        wrong = f"metadata.labels[{TIER_LABEL}]"
    elif asked.class_name and own != tier and (own is None or own.name != group.demoted_from):
        ruled = by_rule(asked)
        replaced = own is None and policy.unmanaged_classes == "Replace"
        if not replaced and (ruled is None or ruled.tier != tier):
            wrong, written = "spec.priorityClassName", asked.class_name
    if wrong:
        raise Refused(Reason.CONTRADICTION, "unlike-group", wrong, written=written, group=group.name, tier=tier.name)
    return Assignment(tier, "", Phrase("group-is", group=group.name, tier=tier.name), asked=field)


class _Said(NamedTuple):
    """A label or class that names a tier: the object with the field, the field's place, and its value.

    `owner` is the owner with that field, if it is the owner's own. `template` is the template of the pod's gang with
    it.
    """

    on: str
    field: str
    text: str
    owner: Workload | None = None
    template: str = ""


def by_label(asked: TierRequest) -> Assignment | None:
    """Return the tier of the label on the pod, or on the nearest owner. Templates of a gang share their labels."""
    said = next(_labels(asked), None)
    if said is None:
        return None
    tier, name = named(said.text, said.field, asked.policy, asked.facts.tenant), asked.class_name
    if name and asked.policy.tiers.of_class(name) != tier:
        raise Refused(Reason.CONTRADICTION, "label-unlike-class", said.field, tier=tier.name, class_name=name)
    says = Phrase("label-says", bearer=said.on, tier=tier.name)
    return Assignment(tier, "", says, asked=said.field, bearer=said.owner, template=said.template)


def _labels(asked: TierRequest) -> Iterator[_Said]:
    """Yield the labels with their places, the nearest first."""
    if asked.label is not None:
        yield _Said("the pod", f"metadata.labels[{TIER_LABEL}]", asked.label)
    for owner in asked.facts.owners:
        yield from _in_gang(owner, asked, _labels_on)
        if TIER_LABEL in owner.labels:
            place, own = owner.metadata_place, None if owner.place else owner
            field = f"{place}.labels[{TIER_LABEL}]"
            yield _Said(place.removesuffix(".metadata"), field, owner.labels[TIER_LABEL], own)


def _labels_on(member: Member, whole: str) -> Iterator[_Said]:
    """Yield the labels of a template, and of the objects between it and its workload."""
    makers = ((each.metadata_place, each.labels) for each in member.makers)
    for place, labels in ((f"{whole}.metadata", member.template.metadata.labels), *makers):
        if TIER_LABEL in labels:
            on, field = place.removesuffix(".metadata"), f"{place}.labels[{TIER_LABEL}]"
            yield _Said(on, field, labels[TIER_LABEL], template=member.path)


def _classes_on(member: Member, whole: str) -> Iterator[_Said]:
    field, name = f"{whole}.spec.priorityClassName", class_asked(member.template)
    if name:
        yield _Said(field, field, name, template=member.path)


def _in_gang(owner: Workload, asked: TierRequest, says: Callable[[Member, str], Iterator[_Said]]) -> Iterator[_Said]:
    """Yield what other templates of an owner say for a pod that names no tier itself, those with GPUs first.

    A gang needs all of its pods and runs in one tier, so each template that it needs speaks for all. People label the
    Worker of a PyTorchJob and leave out its Master. A pod without GPUs, such as a Ray head, follows any template with
    GPUs.
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
            return Assignment(named(rule.tier, "policy", asked.policy), "", says, asked=rule_name)
    return None


def matches(match: Match, pod: Pod, facts: Facts) -> bool:
    """Tell whether every given part of the match holds. Kinds match any owner, labels match the pod or an owner."""
    carriers = (pod.metadata.labels, *(owner.labels for owner in facts.owners))
    account = f"{facts.namespace.name}:{pod.spec.service_account_name or 'default'}"
    return (
        (not match.kinds or any(owner.kind in match.kinds for owner in facts.owners))
        and (not match.labels or any(match.labels.items() <= dict(labels).items() for labels in carriers))
        and (not match.namespaces or facts.namespace.name in match.namespaces)
        and (not match.service_accounts or account in match.service_accounts)
    )


def by_class(asked: TierRequest) -> Assignment | None:
    """Return the tier of the pod's class; without a class, that of an owner's or gang template's class.

    A pod's class outside the tiers is refused, kept or ignored, as `unmanagedClasses` says.
    """
    for said in _classes(asked):
        tier = asked.policy.tiers.of_class(said.text)
        if tier is not None:
            reason = Phrase("class-is", field=said.on, tier=tier.name)
            return Assignment(tier, "", reason, asked=said.field, bearer=said.owner, template=said.template)
        if said.text is not asked.class_name:
            continue
        name = said.text
        match asked.policy.unmanaged_classes:
            case "Deny":
                tiers = asked.policy.tiers.names()
                raise Refused(Reason.FOREIGN_CLASS, "class-of-no-tier", said.field, name=name, tiers=tiers)
            case "Keep":
                reason, warning = Phrase("class-kept", name=name), AdmissionWarning("class-kept", name=name)
                return Assignment(None, "", reason, asked=said.field, warnings=(warning,))
        break
    return None


def _classes(asked: TierRequest) -> Iterator[_Said]:
    """Yield the classes with their places, the nearest first."""
    if asked.class_name:
        yield _Said("priorityClassName", "spec.priorityClassName", asked.class_name)
    for owner in asked.facts.owners:
        if owner.class_name:  # Volcano before 1.11 does not write it on its pods
            field = f"{owner}.spec.priorityClassName"
            yield _Said(field, field, owner.class_name, owner)
        yield from _in_gang(owner, asked, _classes_on)


_WE_CHOSE = ("workload-type", "namespace-default", "policy-default")


def by_type(asked: TierRequest) -> Assignment | None:
    """Return the policy's tier for the workload type. Evidence below raiseBy may lower the tier, but not raise it."""
    evidence, tier = asked.evidence, _of_type(asked.evidence, asked)
    if evidence is None or tier is None:
        return None
    given = Assignment(tier, "", Phrase("type-is", evidence=str(evidence)))
    if evidence.grade >= asked.policy.raise_by:
        return given
    without = by_type(structs.replace(asked, evidence=evidence.otherwise))
    default = without or by_namespace(asked) or by_default(asked)
    return given if tier.value <= (default.tier or tier).value else without


def withheld_tier(asked: TierRequest) -> Tier | None:
    """Return the tier that the evidence is too weak for; None if there is no such tier."""
    evidence = asked.evidence
    if evidence is None or evidence.grade >= asked.policy.raise_by:
        return None
    tier, given = _of_type(evidence, asked), by_type(asked)
    return tier if tier and (given is None or given.tier != tier) else None


def _of_type(evidence: Evidence | None, asked: TierRequest) -> Tier | None:
    name = asked.policy.tier_of_type.get(evidence.type) if evidence else None
    return named(name, "policy", asked.policy) if name else None


def type_given(asked: TierRequest, assignment: Assignment) -> WorkloadType | None:
    """Return the workload type that brings the hook: the type whose evidence is good enough for its tier.

    Weaker evidence counts only if the pod got the same tier, because a person may have written the label that the
    warning names.
    """
    given = assignment.demoted_from or (assignment.tier.name if assignment.tier else "")
    evidence = asked.evidence
    while evidence is not None:
        tier = _of_type(evidence, asked)
        if evidence.grade >= asked.policy.raise_by or (tier and tier.name == given):
            return evidence.type
        evidence = evidence.otherwise
    return None


def by_namespace(asked: TierRequest) -> Assignment | None:
    """Return the tenant's default tier, or else that of the namespace's label; None without either."""
    tenant, namespace = asked.facts.tenant, asked.facts.namespace
    if tenant is not None and tenant.default_tier:
        tier = named(tenant.default_tier, f"TenantQuota/{tenant.name}: spec.defaultTier", asked.policy)
        return Assignment(tier, "", Phrase("default-of-tenant", tenant=tenant.name))
    if DEFAULT_TIER_LABEL in namespace.labels:
        field = f"Namespace/{namespace.name}: metadata.labels[{DEFAULT_TIER_LABEL}]"
        tier = named(namespace.labels[DEFAULT_TIER_LABEL], field, asked.policy)
        return Assignment(tier, "", Phrase("default-of-namespace", namespace=namespace.name))
    return None


def by_default(asked: TierRequest) -> Assignment:
    return Assignment(named(asked.policy.default_tier, "policy", asked.policy), "", Phrase("default-of-policy"))


def type_warnings(asked: TierRequest, assignment: Assignment) -> Iterator[AdmissionWarning]:
    """Warn of an unknown type, of evidence that is too weak or gave the top tier, and of too many containers to read.

    No warning comes if a person or a rule named the tier, or for pods without GPUs.
    """
    given, evidence = assignment.tier, asked.evidence
    if given is None or assignment.asked or not asked.holds_gpus:
        return
    tiers = list(asked.policy.tiers)
    if len(asked.pod.spec.containers) > MOST_READ:
        yield AdmissionWarning("many-containers", most=MOST_READ)
    better = withheld_tier(asked) if evidence and assignment.step in _WE_CHOSE else None
    if evidence and better and better.value > given.value and better in acceptable(asked):
        yield AdmissionWarning("guess-too-weak", clue=evidence.text, type=evidence.type, tier=better.name)
    elif evidence and assignment.step == "workload-type" and len(tiers) > 1:
        # The highest tier, whose pods evict all others, needs proof. A launcher's usual use is enough if what runs
        # confirms it.
        is_sure = evidence.grade is Grade.Proven or evidence.confirmed
        if not is_sure and given == tiers[0] == _of_type(evidence, asked):
            yield AdmissionWarning("guess-at-top", basis=evidence.basis)
    elif evidence is None and assignment.step == "policy-default":
        others = [tier.name for tier in acceptable(asked) if tier != given]
        if others:
            *all_but_last, last = others
            choice = f"{', '.join(all_but_last)} or {last}" if all_but_last else last
            yield AdmissionWarning("type-unknown", tier=given.name, tiers=choice)


STEPS: tuple[tuple[str, Callable[[TierRequest], Assignment | None]], ...] = (
    ("group", by_group),
    ("label", by_label),
    ("rule", by_rule),
    ("class", by_class),
    ("workload-type", by_type),
    ("namespace-default", by_namespace),
    ("policy-default", by_default),
)
"""The steps in their order. A named tier precedes a chosen one. The PodGroup is first, because its pods share its tier.
"""

_NOTHING = {name: Phrase("step", step=name, found="-", too_weak="") for name, _ in STEPS}
"""The trace entries of steps that find nothing, made once because most steps of each pod find nothing."""


def assign(asked: TierRequest) -> Assignment:
    """Return the tier of the first step that finds one, within its limits.

    Raises Refused where a person asked for a tier that doesn't exist, contradicts another field, or isn't allowed.
    """
    trace = []
    for name, step in STEPS:
        found, evidence = step(asked), asked.evidence
        too_weak: Phrase | str = ""
        if evidence is not None and name == "workload-type" and withheld_tier(asked):
            grade, needed = evidence.grade.name.lower(), asked.policy.raise_by.name
            too_weak = Phrase("too-weak", evidence=str(evidence), grade=grade, needed=needed)
        if found is None and not too_weak:
            trace.append(_NOTHING[name])
            continue
        trace.append(Phrase("step", step=name, found=found.reason if found else "-", too_weak=too_weak))
        if found is None:
            continue
        # A class yields to a rule, or to a policy that replaces classes outside the tiers.
        tier, named, warnings = found.tier, asked.class_name, found.warnings
        if tier is not None and named.endswith(NONPREEMPTING) and not asked.policy.adoption:
            warnings += (AdmissionWarning("class-for-adoption", name=named, tier=tier.name),)
        elif tier is not None and named and asked.policy.tiers.of_class(named) != tier:
            warnings += (AdmissionWarning("class-replaced", name=named, tier=tier.name, reason=found.reason),)
        traced = structs.replace(found, step=name, evidence=evidence, trace=tuple(trace), warnings=warnings)
        return within_limits(traced, asked)
    raise AssertionError("the default tier is the last step and always finds one")


def earlier_assignment(asked: TierRequest, written: AssignedBy, borne: str) -> Assignment | None:
    """Return the assignment of an earlier pass, by its annotation; None if the annotation isn't ours.

    A pod that has passed has the class that we wrote (`borne`), and our label unless its author wrote one. The
    annotation says how it got them. Anybody can write the annotation, so it counts only if the steps give the same
    text for the pod without our marks. A forgery can only lead to a lower tier.
    """
    higher, undemoted = written.demoted_from, structs.replace(written, demoted_from="", demoted_to="")
    # Before it passed, it may have lacked our label or our class, or had the tier that it was demoted from.
    labels, classes = dict.fromkeys((None, asked.label, higher or None)), dict.fromkeys(("", asked.class_name, higher))
    for label, class_name in product(labels, classes):
        with suppress(Refused):
            found = assign(structs.replace(asked, label=label, class_name=class_name))
            same = found.step == written.step and assigned_by(found) == undemoted
            marked = _as_marked(found, asked, higher, borne) if same else None
            if marked is not None:
                return marked
    return None


def _as_marked(found: Assignment, asked: TierRequest, higher: str, borne: str) -> Assignment | None:
    """Return the assignment if the pod has the label and the class that we would have written for it; None otherwise.

    The label of a demoted pod is ours, with the lower tier, or its author's, which still names the higher one. A pod
    gets no label if its controller selects by it.
    """
    tier, borne_tier = found.tier, asked.policy.tiers.of_class(borne)
    label_free = asked.label is None and (tier is None or TIER_LABEL in asked.facts.selects)
    if not higher:
        agrees = label_free or (tier is not None and asked.label == tier.name)
        return found if agrees and borne_tier in (None, tier) else None
    if borne_tier not in acceptable(asked) or asked.facts.tenant is None:
        return None
    if tier is None or tier.name != higher or borne_tier.value >= tier.value:
        return None
    agrees = label_free or asked.label in (borne_tier.name, higher)
    return found.lowered_to(borne_tier, asked) if agrees else None
