"""Writes the tier where Kueue reads it: the label that names a WorkloadPriorityClass, on the objects that Kueue queues.

Without the label Kueue takes the PriorityClass of the pod templates, which gpu-tiers writes only with
`templates: Mutate`, and then 0.
Source: ExtractPriority and WorkloadShouldBeSuspended in pkg/controller/jobframework of Kueue v0.19;
ApplyDefaultWorkloadPriorityClass there, on by default from v0.20.
"""

from collections.abc import Mapping

from webhook.objects.pods import Metadata, is_filled_in
from webhook.objects.refusal import AdmissionWarning, Reason, Refusal, Refused
from webhook.objects.view import Tree, at, mapped, with_at
from webhook.policy.assignment.request import TIER_LABEL, Assignment
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload import Workload

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
_MANAGED = "kueue.x-k8s.io/managed"
QUEUE_CLASS = "gpu-tiers.dev/queue-class"
"""The annotation with the value that gpu-tiers wrote into the label PRIORITY_CLASS. Any other value of the
label is a person's."""

DEFAULT_CLASS = "default"
"""The class that Kueue (from 0.20) writes into the label of objects that name none, if such a class exists."""
_LABELLED = (
    "metadata.labels",
    "spec.template.metadata.labels",
    "spec.leaderWorkerTemplate.leaderTemplate.metadata.labels",
    "spec.leaderWorkerTemplate.workerTemplate.metadata.labels",
)
"""The places of the label: on the object, and on the templates into which Kueue copies it."""


def without_default_classes(tree: Tree) -> Tree:
    """Return an object without the default class that Kueue wrote into its label and those of its templates.

    The API server asks Kueue's webhook before ours. No person chose this class, and no selector can need a label that
    nobody sent, so our choice may replace it.
    """
    for path in _LABELLED:
        labels = mapped(at(tree, path))
        if labels.get(PRIORITY_CLASS) == DEFAULT_CLASS and is_filled_in(tree, *path.split("."), PRIORITY_CLASS):
            tree = with_at(tree, path, {key: text for key, text in labels.items() if key != PRIORITY_CLASS})
    return tree


def is_queued(metadata: Metadata) -> bool:
    """Tell whether Kueue queues a single pod. Kueue's webhook runs before ours and marks those that name no queue."""
    return QUEUE_NAME in metadata.labels or metadata.labels.get(_MANAGED) == "true"


def queues_workload(facts: Facts, policy: TierPolicy) -> bool:
    if policy.kueue is None:
        return False
    unnamed = policy.kueue.manages_unnamed(facts.namespace.labels)
    own, *above = facts.owners
    if any(each.row.kueue and (unnamed or QUEUE_NAME in each.labels) for each in above):
        return False
    return QUEUE_NAME in own.labels or (unnamed and own.row.kueue is not None)


def workload_class_due(own: Workload, assignment: Assignment) -> str | None:
    """Return the class for a workload's label; None without a tier.

    None too if a person named a class that Kueue reads, or if a selector of `own` needs the label in a template.
    """
    templates = (member.template.metadata for member in own.members if own.row.kueue == "Copies")
    if any(class_due(each, assignment, own.selects) is None for each in templates):
        return None
    return class_due(own, assignment)


def class_due(found: Metadata | Workload, assignment: Assignment, selects: frozenset[str] = frozenset()) -> str | None:
    """Return the class for an object's label; None without a tier, or if a person named one.

    None too if the label is in `selects`, because another value would orphan the pods.
    """
    if assignment.tier is None or PRIORITY_CLASS in selects or _named(found.labels, found.annotations):
        return None
    return assignment.tier.name


def require_one_tier(found: Metadata | Workload, assignment: Assignment, policy: TierPolicy) -> None:
    """Raise Refused if a person named the class of another tier than the pods get."""
    name, tier, reason = _named(found.labels, found.annotations), assignment.tier, assignment.reason
    if tier is not None and name != tier.name and policy.tiers.get(name) is not None:
        field, due = f"metadata.labels[{PRIORITY_CLASS}]", tier.name
        raise Refused(
            Reason.CONTRADICTION, "queue-class-unlike", field, name=name, tier=due, reason=reason, label=TIER_LABEL
        )


def changed_class(
    before: Mapping[str, str], after: Mapping[str, str], tier: Tier | None, policy: TierPolicy
) -> Refusal | None:
    """Return why a request may not change the label to another tier's class, whatever an annotation says.

    None if the label stays, or gets the class of the pods' tier, or one that is no tier's.
    """
    name, was = after.get(PRIORITY_CLASS, ""), before.get(PRIORITY_CLASS, "")
    if policy.kueue is None or tier is None or name in (was, tier.name) or policy.tiers.get(name) is None:
        return None
    field = f"metadata.labels[{PRIORITY_CLASS}]"
    return Refusal(Reason.CONTRADICTION, "queue-class-changed", field, name=name, tier=tier.name)


def queue_warnings(facts: Facts, assignment: Assignment, policy: TierPolicy) -> tuple[AdmissionWarning, ...]:
    """Return a warning if Kueue uses another tier for a queued workload than its pods get, or no tier.

    That happens if the tier or the queue changed after the create. Raises Refused if a person named another tier's
    class.
    """
    if not queues_workload(facts, policy):
        return ()
    own = facts.owners[0]
    require_one_tier(own, assignment, policy)
    there, due = own.labels.get(PRIORITY_CLASS, ""), workload_class_due(own, assignment)
    if due is None or there == due:
        return ()
    if there:
        return (AdmissionWarning("queue-ranks-as", there=there, due=due, label=PRIORITY_CLASS),)
    return (AdmissionWarning("queue-sees-no-tier", due=due, label=PRIORITY_CLASS),)


def _named(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the class that a person named; "" if there is none or it is ours."""
    there = labels.get(PRIORITY_CLASS, "")
    return "" if annotations.get(QUEUE_CLASS) == there else there
