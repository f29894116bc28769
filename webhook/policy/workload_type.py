"""What a workload is, by the evidence in the order of its trust; never which tier that earns."""

from collections.abc import Iterator, Sequence

from webhook.policy.evidence import Evidence, Trust
from webhook.policy.facts import Workload, WorkloadType
from webhook.policy.guessing import guess
from webhook.policy.kinds import KINDS, ROW_OF, Row
from webhook.policy.kinds.labels import WELL_KNOWN_LABELS
from webhook.policy.kinds.row import EVERY_SOURCE
from webhook.policy.objects import Pod


def workload_type(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    """The workload type with its evidence; None where nothing tells. Owners are the nearest first."""
    return _by_kind(owners) or _by_label(pod, owners) or _by_launcher(pod, owners)


def _by_kind(owners: Sequence[Workload]) -> Evidence | None:
    for owner in owners:
        row = ROW_OF.get(owner.kind)
        if row is not None and row.type is not None:
            return Evidence(row.type, f"its kind, {owner}")
        if owner.type is not None:
            return Evidence(owner.type, f"the fields of {owner}")
    return None


def _telling_labels() -> Iterator[tuple[str, str | None, WorkloadType]]:
    """Labels that only pods of one workload type bear: ray.io/cluster stands on all that Ray runs."""
    for row in KINDS:
        for label in row.labels.items():
            if row.type and all(other.type == row.type for other in KINDS if label in other.labels.items()):
                yield *label, row.type
    yield from ((key, value, kind) for key, value, kind, _ in WELL_KNOWN_LABELS)


_TELLING_LABELS = tuple(dict.fromkeys(_telling_labels()))


def _by_label(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    carriers = [pod.metadata.labels, *(owner.labels for owner in owners)]
    for key, value, kind in _TELLING_LABELS:
        if any(key in labels and value in (None, labels[key]) for labels in carriers):
            return Evidence(kind, f"its label {key}")
    return None


def _by_launcher(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    """What runs in a general launcher, else what the launcher is mostly used for.

    The outermost owner's row says which guesses come first: a JobSet says more than the Jobs it is made of.
    """
    launcher = _launcher(owners)
    if launcher is None:
        return guess(pod, owners, EVERY_SOURCE)
    owner, row, usual = launcher
    found = guess(pod, owners, row.before_usual)
    if found is not None and found.type != usual:
        return found
    return Evidence(usual, f"the usual use of its kind, {owner}", Trust.USUAL)


def _launcher(owners: Sequence[Workload]) -> tuple[Workload, Row, WorkloadType] | None:
    for owner in reversed(owners):
        row = ROW_OF.get(owner.kind)
        if row is not None and row.usual is not None:
            return owner, row, row.usual
    return None
