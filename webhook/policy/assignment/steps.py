"""The steps by which a pod gets its tier: the first that finds one decides.

Those in which somebody asks for a tier by name stand in explicit.py; those in which gpu-tiers chooses one itself stand
here, with the warnings that name the one label that settles a type which was told badly. A pod that has passed the
webhook already (reinvocationPolicy: IfNeeded, then validation) keeps what it got.
"""

from collections.abc import Callable, Iterator

from msgspec import structs

from webhook.objects.phrase import AdmissionWarning, Phrase
from webhook.objects.refusal import Refused
from webhook.policy.assignment.assigned_by import AssignedBy, assigned_by
from webhook.policy.assignment.explicit import by_class, by_group, by_label, by_rule
from webhook.policy.assignment.limits import acceptable, within_limits
from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, TIER_LABEL, Assignment, TierRequest, found, named
from webhook.policy.classification.evidence import MOST_READ, Evidence
from webhook.policy.values.tier_policy import Grade
from webhook.policy.values.tiers import NONPREEMPTING, Tier
from webhook.policy.workloads.workload_types import WorkloadType

_WE_CHOSE = ("workload-type", "namespace-default", "policy-default")


def by_type(asked: TierRequest) -> Assignment | None:
    """The policy's tier for the workload type, if the evidence is good enough for it."""
    return _by_evidence(asked.evidence, asked)


def held_back(asked: TierRequest) -> Tier | None:
    """The tier that a guess is too weak for; None where the type gives a tier, or the policy has none for it."""
    evidence = asked.evidence
    if evidence is None or evidence.grade >= asked.policy.raise_by:
        return None
    tier, given = _of_type(evidence, asked), by_type(asked)
    return tier if tier and (given is None or given.tier != tier) else None


def _of_type(evidence: Evidence | None, asked: TierRequest) -> Tier | None:
    name = asked.policy.tier_of_type.get(evidence.type) if evidence else None
    return named(name, "policy", asked.policy) if name else None


def _by_evidence(evidence: Evidence | None, asked: TierRequest) -> Assignment | None:
    """Evidence below the policy's raiseBy may lower the tier that stands without it, but not raise it."""
    tier = _of_type(evidence, asked)
    if evidence is None or tier is None:
        return None
    if evidence.grade >= asked.policy.raise_by:
        return found(tier, Phrase("type-is", evidence=str(evidence)))
    without = _by_evidence(evidence.otherwise, asked)
    stands = without.tier if without and without.tier else _without_type(asked)
    return found(tier, Phrase("type-is", evidence=str(evidence))) if tier.value <= stands.value else without


def type_given(asked: TierRequest, assignment: Assignment) -> WorkloadType | None:
    """The workload type that brings its hook: that of evidence good enough for the type's tier.

    Evidence that is too weak for that counts only where the pod was given the same tier: a person may have written
    the label that the warning names.
    """
    given = assignment.demoted_from or (assignment.tier.name if assignment.tier else "")
    evidence = asked.evidence
    while evidence is not None:
        tier = _of_type(evidence, asked)
        if evidence.grade >= asked.policy.raise_by or (tier and tier.name == given):
            return evidence.type
        evidence = evidence.otherwise
    return None


def _without_type(asked: TierRequest) -> Tier:
    """The default tier that would apply if nothing told the workload type."""
    default = by_namespace(asked)
    return default.tier if default and default.tier else named(asked.policy.default_tier, "policy", asked.policy)


def by_namespace(asked: TierRequest) -> Assignment | None:
    """The tenant's default, then the namespace's own."""
    tenant, namespace = asked.facts.tenant, asked.facts.namespace
    if tenant is not None and tenant.default_tier:
        tier = named(tenant.default_tier, f"TenantQuota/{tenant.name}: spec.defaultTier", asked.policy)
        return found(tier, Phrase("default-of-tenant", tenant=tenant.name))
    if DEFAULT_TIER_LABEL in namespace.labels:
        field = f"Namespace/{namespace.name}: metadata.labels[{DEFAULT_TIER_LABEL}]"
        tier = named(namespace.labels[DEFAULT_TIER_LABEL], field, asked.policy)
        return found(tier, Phrase("default-of-namespace", namespace=namespace.name))
    return None


def by_default(asked: TierRequest) -> Assignment:
    return found(named(asked.policy.default_tier, "policy", asked.policy), Phrase("default-of-policy"))


def type_warnings(asked: TierRequest, assignment: Assignment) -> Iterator[AdmissionWarning]:
    """A guess that was held back or leads to the top, or an unknown type; nothing where a person named the tier."""
    given = assignment.tier
    if given is None or assignment.asked or not asked.holds_gpus:
        return
    if len(asked.pod.spec.containers) > MOST_READ:
        yield AdmissionWarning("many-containers", most=MOST_READ)
    better = held_back(asked) if asked.evidence and assignment.step in _WE_CHOSE else None
    if asked.evidence and better and better.value > given.value and better in acceptable(asked):
        clue, workload_type = asked.evidence.text, asked.evidence.type
        yield AdmissionWarning("guess-held-back", clue=clue, type=workload_type, tier=better.name)
    elif asked.evidence and _guessed_to_the_top(asked, assignment):
        yield AdmissionWarning("guess-at-top", basis=asked.evidence.basis)
    elif asked.evidence is None and assignment.step == "policy-default":
        others = [tier.name for tier in acceptable(asked) if tier != given]
        if others:
            yield AdmissionWarning("type-unknown", tier=given.name, tiers=_either(others))


def _guessed_to_the_top(asked: TierRequest, assignment: Assignment) -> bool:
    """Tells whether less than proof gives the highest of several tiers, whose pods evict all others.

    A launcher's usual use is enough where what runs confirms it.
    """
    evidence, tiers = asked.evidence, list(asked.policy.tiers)
    if evidence is None or evidence.grade is Grade.Proven or evidence.confirmed or assignment.step != "workload-type":
        return False
    return len(tiers) > 1 and assignment.tier == tiers[0] == _of_type(evidence, asked)


def _either(names: list[str]) -> str:
    *all_but_last, last = names
    return f"{', '.join(all_but_last)} or {last}" if all_but_last else last


STEPS: tuple[tuple[str, Callable[[TierRequest], Assignment | None]], ...] = (
    ("group", by_group),
    ("label", by_label),
    ("rule", by_rule),
    ("class", by_class),
    ("workload-type", by_type),
    ("namespace-default", by_namespace),
    ("policy-default", by_default),
)
"""A tier that somebody named comes before one that gpu-tiers chooses. A PodGroup is first: its pods share its tier."""

_NOTHING = {name: Phrase("step", step=name, found="-", too_weak="") for name, _ in STEPS}
"""Made once: most steps find nothing, and each pod asks several."""


def assign(asked: TierRequest) -> Assignment:
    """The tier of the first step that finds one, within its limits.

    Raises Refused where a person asked for a tier that doesn't exist, contradicts another field, or isn't allowed.
    """
    return within_limits(_first(asked), asked)


def _first(asked: TierRequest) -> Assignment:
    trace = []
    for name, step in STEPS:
        found = step(asked)
        too_weak = _too_weak(asked) if name == "workload-type" else ""
        if found is None and not too_weak:
            trace.append(_NOTHING[name])
            continue
        trace.append(Phrase("step", step=name, found=found.reason if found else "-", too_weak=too_weak))
        if found is not None:
            warnings = (*found.warnings, *_replaced(found, asked))
            return structs.replace(found, step=name, evidence=asked.evidence, trace=tuple(trace), warnings=warnings)
    raise AssertionError("the default tier is the last step and always finds one")


def _too_weak(asked: TierRequest) -> Phrase | str:
    """The trace's note on a guess that is too weak to raise the tier."""
    evidence, policy = asked.evidence, asked.policy
    if evidence is None or held_back(asked) is None:
        return ""
    grade, needed = evidence.grade.name.lower(), policy.raise_by.name
    return Phrase("too-weak", evidence=str(evidence), grade=grade, needed=needed)


def _replaced(found: Assignment, asked: TierRequest) -> Iterator[AdmissionWarning]:
    """The warning that a class gives way to a rule, or to a policy that replaces classes outside the tiers."""
    if found.tier is None or not asked.class_name:
        return
    twin = asked.class_name.endswith(NONPREEMPTING) and not asked.policy.adoption
    if twin:
        yield AdmissionWarning("class-for-adoption", name=asked.class_name, tier=found.tier.name)
    elif asked.policy.tiers.of_class(asked.class_name) != found.tier:
        name, tier = asked.class_name, found.tier.name
        yield AdmissionWarning("class-replaced", name=name, tier=tier, reason=found.reason)


def earlier_assignment(asked: TierRequest, written: AssignedBy, borne: str) -> Assignment | None:
    """Return the assignment of an earlier pass, by the annotation that it wrote; None where the annotation isn't ours.

    A pod that has passed bears the class that we wrote (`borne`) and our label, unless its author had written one, and
    the annotation says how they came there. Anybody can write it, so it counts only where the same line comes out again
    without our marks. A forgery gains no tier but a lower one.
    """
    higher, undemoted = written.demoted_from, structs.replace(written, demoted_from="", demoted_to="")
    for unmarked in _before_our_marks(asked, higher):
        try:
            found = assign(unmarked)
        except Refused:
            continue
        marked = (
            _as_marked(found, asked, higher, borne)
            if found.step == written.step and assigned_by(found) == undemoted
            else None
        )
        if marked is not None:
            return marked
    return None


def _before_our_marks(asked: TierRequest, higher: str) -> Iterator[TierRequest]:
    """What the pod may have been before: without our label, without our class, or with the tier it was demoted from."""
    for label in dict.fromkeys((None, asked.label, higher or None)):
        for class_name in dict.fromkeys(("", asked.class_name, higher)):
            yield structs.replace(asked, label=label, class_name=class_name)


def _as_marked(found: Assignment, asked: TierRequest, higher: str, borne: str) -> Assignment | None:
    """Return the assignment, if the marks on the pod are the ones that it would have made.

    The label of a demoted pod is our own, with the lower tier, or its author's, which still asks for the higher one. A
    pod gets none where its controller selects by it.
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
    return found.demoted_to(borne_tier, asked) if agrees else None
