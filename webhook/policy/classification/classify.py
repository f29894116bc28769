"""What a workload is, by the evidence in the order of its trust; never which tier that earns."""

from collections.abc import Sequence
from dataclasses import replace

from webhook.objects.pods import Pod
from webhook.policy.classification.evidence import Evidence, Trust
from webhook.policy.classification.guess import guess, of_the_cluster
from webhook.policy.values.facts import Workload
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import Source
from webhook.policy.workloads.workload_types import WorkloadType


def workload_type(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    """The workload type with its evidence; None where nothing tells. Owners are the nearest first."""
    return _by_kind(pod, owners) or _by_label(pod, owners, kinds) or _by_launcher(pod, owners, kinds)


def _by_kind(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    for owner in owners:
        row = owner.row
        if row.type is not None:
            return _unless(pod, owners, row.unless, Evidence(row.type, f"its kind, {owner}"))
        if owner.type is not None:
            return Evidence(owner.type, f"the fields of {owner}")
    return None


def _unless(
    pod: Pod, owners: Sequence[Workload], sources: Sequence[Source], stands: Evidence, *, member: bool = False
) -> Evidence:
    """What stands, unless a guess says another type: then that guess, which remembers what it was made against."""
    found = guess(pod, owners, sources, member=member)
    return stands if found is None or found.type is stands.type else replace(found, otherwise=stands)


def _by_label(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    known = kinds.telling_labels
    carriers = [pod.metadata.labels, *(owner.labels for owner in owners)]
    told = [
        pair
        for labels in carriers
        for key in known.keys() & labels.keys()
        for pair in known[key]
        if pair[1].value in (None, labels[key])
    ]
    if not told:
        return None
    _, label = min(told)
    member = not kinds.gang_labels.isdisjoint(pod.metadata.labels)
    return _unless(pod, owners, label.unless, Evidence(label.type, f"its label {label.key}"), member=member)


def _by_launcher(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    """What runs in a general launcher, else what the launcher is mostly used for.

    The outermost owner's row says which guesses come first: a JobSet says more than the Jobs it is made of.
    """
    if of_the_cluster(pod, owners):
        return None
    owner = _outermost(owners)
    usual = _usual(owner) if owner else None
    usual = usual or _usual_by_label(pod, kinds)
    sources = owner.row.before_usual if owner else _OF_NOBODY
    return _unless(pod, owners, sources, usual) if usual else guess(pod, owners, sources) or _by_end(pod, owners)


_OF_NOBODY: tuple[Source, ...] = ("command", "variable", "kind", "image", "name", "probe", "port", "listens")


def _by_end(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    """What is made to end and says nothing else is a batch of something; nobody waits for it, nobody sits at it."""
    said = pod.spec.restart_policy
    if owners or said not in ("Never", "OnFailure"):
        return None
    return Evidence(WorkloadType.BATCH, f'its restartPolicy ("{said}")', Trust.GUESS)


def _outermost(owners: Sequence[Workload]) -> Workload | None:
    """The outermost owner with a usual use, else the outermost at all."""
    outwards = tuple(reversed(owners))
    return next((owner for owner in outwards if owner.row.usual), next(iter(outwards), None))


def _usual(owner: Workload) -> Evidence | None:
    usual = owner.row.usual
    return Evidence(usual, f"the usual use of its kind, {owner}", Trust.USUAL) if usual else None


def _usual_by_label(pod: Pod, kinds: KindTable) -> Evidence | None:
    for key in pod.metadata.labels:
        if key in kinds.usual_labels:
            return Evidence(kinds.usual_labels[key], f"the usual use of what writes its label {key}", Trust.USUAL)
    return None
