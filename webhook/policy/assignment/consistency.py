"""Checks that an object, as it would be stored, agrees with its tier and with the priority that other schedulers use.

Volcano and KAI take a pod's priority from the class of its PodGroup only (cache.Snapshot of Volcano). KAI's pod grouper
takes that class from the label `priorityClassName` of an owner, then of the pod, before it looks at the pod's class.
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
    """Return why a pod, as it would be stored, does not have the fields of its tier; None if it has.

    The author's label stays as it is, because a selector may need it. It may name the tier from which we demoted the
    pod or its PodGroup. It may be absent if the pod's controller selects by it.
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
    """Return why a PodGroup, as it would be stored, lacks the class or priority of its tier.

    None if they agree, or if the API server stores no priority on PodGroups (1.36).
    """
    name, priority = group.spec.priority_class_name, group.spec.priority
    if priority is None or (name, priority) == (live.name, live.value):
        return None
    return Refusal(Reason.CONTRADICTION, "tier-not-on-group", tier=tier.name, class_name=name, priority=priority)


def drift(old: Pod, new: Pod, policy: TierPolicy) -> Refusal | None:
    """Return why a changed tier label is refused on an existing pod.

    None if the label did not change or names the pod's tier, or if the pod is terminating. The label changes no charge,
    because a pod counts by its class. The change is refused because it would mislead those who read the labels later.
    """
    before, after = old.metadata.labels.get(TIER_LABEL), new.metadata.labels.get(TIER_LABEL)
    tier = policy.tiers.of_class(new.spec.priority_class_name)
    truth = tier.name if tier else None
    if after in (before, truth) or new.metadata.deletion_timestamp:
        return None
    runs = Phrase("as-tier", tier=truth) if truth else Phrase("without-tier")
    field, pod = f"metadata.labels[{TIER_LABEL}]", old.metadata.name
    return Refusal(Reason.CHANGED, "tier-label-changed", field, after=after or "absent", runs=runs, pod=pod)


def changed_mark(old: Pod, new: Pod, policy: TierPolicy) -> Refusal | None:
    """Return why a changed annotation is refused on an existing pod, also on a terminating one; None if none changed.

    A pod keeps the share of a GPU that it asked for, and its tier and charge follow from that. A second share
    annotation would make both unreadable, even if the policy counts one only. CLAIMED bounds what the pod's claims may
    ask for. With another GANG the pod would count twice: by itself and with its gang.
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
    """Return why a pod is refused if another scheduler would use a higher priority than its class; None otherwise."""
    value, name = (own.value, own.name) if own else (pod.spec.priority or 0, pod.spec.priority_class_name)
    written = next((each for each, ranked in _ranks(pod, facts) if _value(ranked, facts.classes) > value), None)
    if written is None:
        return None
    return Refusal(Reason.CONTRADICTION, "outranked", written=written, own=name or _WITHOUT_CLASS)


def outranked_workload(own: Workload, of_pods: PriorityClass | None, facts: Facts) -> Refusal | None:
    """Return why a workload is refused if its label for KAI names a higher class than its pods have; None otherwise."""
    name = own.labels.get(KAI_RANK, "")
    if of_pods is None or _value(name, facts.classes) <= of_pods.value:
        return None
    field = f"metadata.labels[{KAI_RANK}]"
    return Refusal(Reason.CONTRADICTION, "outranked-workload", field, name=name, own=of_pods.name)


def outranking(name: str, members: Iterator[Pod], classes: Mapping[str, PriorityClass]) -> Refusal | None:
    """Return why another scheduler's PodGroup is refused if its class is above the priority of a pod in it."""
    value, field = _value(name, classes), "spec.priorityClassName"
    for pod in members:
        if (pod.spec.priority or 0) < value:
            own = pod.spec.priority_class_name or _WITHOUT_CLASS
            return Refusal(Reason.CONTRADICTION, "outranking", field, name=name, pod=pod.metadata.name, own=own)
    return None


def rank_changes(old: Metadata, new: Metadata) -> bool:
    """Tell whether an update of a pod changes its group or its label for KAI, by which other schedulers rank it."""
    keys = (source.named_by for source in LOOKED_UP)
    return old.labels.get(KAI_RANK) != new.labels.get(KAI_RANK) or any(named(old) != named(new) for named in keys)


def _ranks(pod: Pod, facts: Facts) -> Iterator[tuple[Phrase, str]]:
    """Yield each field from which another scheduler takes the pod's priority, with the class that it names."""
    for group in facts.groups:
        source, name = str(group.source), group.class_name
        yield Phrase("group-ranks", source=source, group=group.name, class_name=name), name
    for of, labels in (("", pod.metadata.labels), *((f"{owner} ", owner.labels) for owner in facts.owners)):
        name = labels.get(KAI_RANK, "")
        yield Phrase("label-ranks", field=f"{of}metadata.labels[{KAI_RANK}]", class_name=name), name


def _value(name: str, classes: Mapping[str, PriorityClass]) -> int:
    """Return the value of a class; a class that does not exist is below every pod."""
    live = classes.get(name)
    return live.value if live else -(1 << 31)
