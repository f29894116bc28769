"""Groups of pods without a workload: what a pod says of the gang that it is scheduled with.

Sources: KEP-4671 (scheduling.k8s.io); the coscheduling plugin of kubernetes-sigs/scheduler-plugins; Volcano's PodGroup;
Kueue's plain pod groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata
from webhook.objects.refusal import Refused, shown

KUEUE_NAME = "kueue.x-k8s.io/pod-group-name"
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KUEUE = GroupKind("kueue.x-k8s.io", "PodGroup")
"""No object: pods alone make the group."""
MOST_PODS = 100_000


@dataclass(frozen=True, slots=True)
class GroupSource:
    """Where a pod names its group, and the kind of object that says how many pods it needs, in `spec.minMember`."""

    place: Literal["labels", "annotations"]
    key: str
    kind: GroupKind


LOOKED_UP = (
    GroupSource("labels", "scheduling.x-k8s.io/pod-group", GroupKind("scheduling.x-k8s.io", "PodGroup")),
    GroupSource("annotations", "scheduling.k8s.io/group-name", GroupKind("scheduling.volcano.sh", "PodGroup")),
)


@dataclass(frozen=True, slots=True)
class PodsTogether:
    """So many pods, of use only together, in a group of that kind and name."""

    kind: GroupKind
    name: str
    count: int

    @property
    def uid(self) -> str:
        """What the ledger and its pods call it: a group may have no object, so no uid."""
        return f"{self.kind.qualified}/{self.name}"


def named_group(metadata: Metadata) -> tuple[GroupSource, str] | None:
    """The group that a pod names, of those that have to be looked up."""
    for source in LOOKED_UP:
        written: Mapping[str, str] = metadata.labels if source.place == "labels" else metadata.annotations
        if written.get(source.key):
            return source, written[source.key]
    return None


def kueue_group(metadata: Metadata) -> PodsTogether | None:
    """The plain pod group that Kueue would queue. Raises Refused for a count that is none."""
    name, written = metadata.labels.get(KUEUE_NAME), metadata.annotations.get(KUEUE_COUNT)
    if not name or written is None:
        return None
    if not written.isdecimal() or not 0 < int(written) <= MOST_PODS:
        raise Refused(f"metadata.annotations[{KUEUE_COUNT}]: {shown(written)} is no number of pods; write such as 4")
    return PodsTogether(KUEUE, name, int(written))
