"""Which pods are of one gang: the label that all of them bear, written by the operator that makes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload, gang_among

_NARROWER: Mapping[str, str] = {
    # https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go
    "leaderworkerset.sigs.k8s.io/name": "leaderworkerset.sigs.k8s.io/group-key",
}
"""Labels that span several gangs, each with the one that tells them apart."""

_GROUPS = ("scheduling.x-k8s.io/pod-group", "kueue.x-k8s.io/pod-group-name")
"""Labels that people write themselves on pods of one group: Coscheduling's, Kueue's."""

_OF_ONE_POD = frozenset({"paddle-res-name"})
"""Labels with another value on each pod (https://github.com/PaddleFlow/paddle-operator)."""


@dataclass(frozen=True, slots=True)
class GangLabel:
    """The pods with one value of a label. `size` is how many they are as far as the workload says it, else 0."""

    key: str
    value: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def gang_label_of(labels: Mapping[str, str], owners: Sequence[Workload], kinds: KindTable) -> GangLabel | None:
    """The gang of a pod with these labels, its owners the nearest first; None where it bears no label that tells it."""
    for key, size in _candidates(owners, kinds):
        narrower = _NARROWER.get(key, key)
        if narrower in labels:
            return GangLabel(narrower, labels[narrower], size if narrower == key else 0)
        if key in labels:
            return GangLabel(key, labels[key], size)
    return None


def _candidates(owners: Sequence[Workload], kinds: KindTable) -> Iterator[tuple[str, int]]:
    """Labels that may tell the gang, the best first, each with the size of such a gang.

    The labels of the workload that is a gang come first, then those of the nearest owner: the trials of an Experiment
    are no gang, nor are the steps of a pipeline.
    """
    gang = gang_among(owners)
    for owner in (*([gang] if gang else []), *(owner for owner in owners if owner.row.at_once)):
        size = sum(member.count for member in owner.members)
        yield from ((key, size) for key in _naming(owner))
    if not owners:
        yield from ((key, 0) for key in sorted(kinds.gang_labels))
    yield from ((key, 0) for key in _GROUPS)


def _naming(owner: Workload) -> Iterator[str]:
    """The operator's labels whose value is a name: one that tells by its value alone stands on all pods of the kind."""
    row = owner.row
    first = (row.gang_label,) if row.gang_label else ()
    named = (key for key, value in row.labels.items() if value is None and key not in _OF_ONE_POD)
    return iter(dict.fromkeys((*first, *named)))
