"""Holds an object, as it would be stored, to its tier: what it bears, and what other schedulers rank it by.

Volcano and KAI rank a pod by the class of its PodGroup alone (cache.Snapshot of Volcano). KAI's pod grouper makes that
of the label `priorityClassName` of an owner, then of the pod, before it looks at the pod's class.
"""

from collections.abc import Iterator, Mapping

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Metadata, Pod
from webhook.objects.refusal import Phrase, Reason, Refusal
from webhook.policy.assignment.request import GANG, TIER_LABEL, Assignment
from webhook.policy.quota.demand import ANNOTATIONS, CLAIMED, DEVICES
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier
from webhook.policy.workloads.pod_groups import LOOKED_UP
from webhook.policy.workloads.workload import Workload


def disagreement(pod: Pod, assignment: Assignment, live: PriorityClass, facts: Facts) -> Refusal | None:
    """Return why a pod, as it would be stored, does not bear its tier; None where all agree.

    Its author's label stays as it is, because a selector may need it. So it may name the tier from which we demoted the
    pod or its PodGroup, and it may be absent where the pod's controller selects by it.
    """
    tier = assignment.tier.name if assignment.tier else ""
    spec, label, group = pod.spec, pod.metadata.labels.get(TIER_LABEL), facts.group
    overruled = (assignment.demoted_from, group.demoted_from if group else None)
    stays = TIER_LABEL in facts.selects if label is None else label in overruled
    checks = (
        (f"metadata.labels[{TIER_LABEL}]", label, label if stays else tier),
        ("spec.priorityClassName", spec.priority_class_name or None, live.name),
        ("spec.priority", spec.priority, live.value),
        ("spec.preemptionPolicy", spec.preemption_policy, live.preemption_policy),
    )
    wrong = tuple(
        Phrase("field-is-not", field=field, there=there if there is not None else "absent", due=due)
        for field, there, due in checks
        if there != due
    )
    return Refusal(Reason.CHANGED, "tier-not-applied", tier=tier, wrong=wrong) if wrong else None


def group_disagreement(group: PodGroup, tier: Tier, live: PriorityClass) -> Refusal | None:
    """Return why a PodGroup, as it would be stored, lacks its tier; None where all agree, or it can bear none."""
    if group.spec.priority is None or (group.spec.priority_class_name, group.spec.priority) == (live.name, live.value):
        return None
    return Refusal(
        Reason.CONTRADICTION,
        "tier-not-on-group",
        tier=tier.name,
        class_name=group.spec.priority_class_name,
        priority=group.spec.priority,
    )


def drift(old: Pod, new: Pod, policy: TierPolicy) -> Refusal | None:
    """Return why a changed tier label is refused on an existing pod; None if it did not change, or names its tier.

    Nothing is charged by it: a pod counts by its class. But who reads the labels of pods is not to be misled later.
    """
    before, after = old.metadata.labels.get(TIER_LABEL), new.metadata.labels.get(TIER_LABEL)
    tier = policy.tiers.of_class(new.spec.priority_class_name)
    truth = tier.name if tier else None
    if after in (before, truth) or new.metadata.deletion_timestamp:
        return None
    runs = Phrase("as-tier", tier=truth) if truth else Phrase("without-tier")
    field = f"metadata.labels[{TIER_LABEL}]"
    return Refusal(Reason.CHANGED, "tier-label-changed", field, after=after or "absent", runs=runs)


def changed_mark(old: Pod, new: Pod, policy: TierPolicy) -> Refusal | None:
    """Return why a changed annotation is refused on an existing pod, also on one in deletion.

    The pod's tier and charge are of the part of a GPU that it asked for, and it holds that for as long as its grace.
    Two such annotations, of which the policy counts one, would both be left unread. CLAIMED bounds what its claims may
    ask for. By another GANG it would count again, beside the whole gang.
    """
    parts = dict.fromkeys((*ANNOTATIONS, DEVICES) if policy.shares else (), "part-changed")
    for key, changed in {**parts, CLAIMED: "claims-changed", GANG: "gang-changed"}.items():
        before, after = (each.metadata.annotations.get(key, "") for each in (old, new))
        if before != after:
            field = f"metadata.annotations[{key}]"
            return Refusal(Reason.CHANGED, changed, field, after=after or "absent", before=before or "absent")
    return None


KAI_RANK = "priorityClassName"

_WITHOUT_CLASS = "without a class"


def outranked(pod: Pod, own: PriorityClass | None, facts: Facts) -> Refusal | None:
    """Return why a pod of that class is refused that another scheduler would rank higher; None where none does."""
    value, name = (own.value, own.name) if own else (pod.spec.priority or 0, pod.spec.priority_class_name)
    written = next((each for each, ranked in _ranks(pod, facts) if _value(ranked, facts.classes) > value), None)
    if written is None:
        return None
    return Refusal(Reason.CONTRADICTION, "outranked", written=written, own=name or _WITHOUT_CLASS)


def outranked_workload(own: Workload, of_pods: PriorityClass | None, facts: Facts) -> Refusal | None:
    """The same of a workload, whose label KAI puts above its pods'."""
    name = own.labels.get(KAI_RANK, "")
    if of_pods is None or _value(name, facts.classes) <= of_pods.value:
        return None
    field = f"metadata.labels[{KAI_RANK}]"
    return Refusal(Reason.CONTRADICTION, "outranked-workload", field, name=name, own=of_pods.name)


def outranking(name: str, members: Iterator[Pod], classes: Mapping[str, PriorityClass]) -> Refusal | None:
    """Return why a group is refused whose class lies above that of a pod which names it."""
    value = _value(name, classes)
    pod = next((each for each in members if (each.spec.priority or 0) < value), None)
    if pod is None:
        return None
    return Refusal(
        Reason.CONTRADICTION,
        "outranking",
        "spec.priorityClassName",
        name=name,
        pod=pod.metadata.name,
        own=pod.spec.priority_class_name or _WITHOUT_CLASS,
    )


def rank_changes(old: Metadata, new: Metadata) -> bool:
    """Tells whether an update of a pod changes what it is ranked by."""
    keys = (source.named_by for source in LOOKED_UP)
    return old.labels.get(KAI_RANK) != new.labels.get(KAI_RANK) or any(named(old) != named(new) for named in keys)


def _ranks(pod: Pod, facts: Facts) -> Iterator[tuple[Phrase, str]]:
    """The place of each, and the class that it names."""
    for group in facts.groups:
        source, name = str(group.source), group.class_name
        yield Phrase("group-ranks", source=source, group=group.name, class_name=name), name
    for of, labels in (("", pod.metadata.labels), *((f"{owner} ", owner.labels) for owner in facts.owners)):
        name = labels.get(KAI_RANK, "")
        yield Phrase("label-ranks", field=f"{of}metadata.labels[{KAI_RANK}]", class_name=name), name


def _value(name: str, classes: Mapping[str, PriorityClass]) -> int:
    """The value of a class; of one that does not exist less than any pod has."""
    live = classes.get(name)
    return live.value if live else -(1 << 31)
