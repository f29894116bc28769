"""Groups of pods without a workload: what a pod says of the gang that it is scheduled with.

Sources: KEP-4671 (scheduling.k8s.io); the coscheduling plugin of kubernetes-sigs/scheduler-plugins; the PodGroups of
Volcano and of KAI, which rank their pods by `spec.priorityClassName`; Kueue's plain pod groups.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata
from webhook.objects.refusal import Reason, Refused

KUEUE_NAME = "kueue.x-k8s.io/pod-group-name"
"""A label, and since Kueue 0.18 also an annotation, which counts more: a label's value can't be as long as a name."""
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KUEUE = GroupKind("kueue.x-k8s.io", "PodGroup")
"""No object: pods alone make the group."""
MOST_IN_A_GROUP = 100_000


class GroupSource(msgspec.Struct, frozen=True):
    """The key by which a pod names its group, and the kind that says how many pods it needs, in `spec.minMember`."""

    place: Literal["labels", "annotations"]
    key: str
    kind: GroupKind

    def named_by(self, metadata: Metadata) -> str:
        """The name of the group that a pod is in; "" where it names none."""
        written: Mapping[str, str] = metadata.labels if self.place == "labels" else metadata.annotations
        return written.get(self.key, "")

    def __str__(self) -> str:
        """Return the field in which a pod names it."""
        return f"metadata.{self.place}[{self.key}]"


LOOKED_UP = (
    GroupSource("labels", "scheduling.x-k8s.io/pod-group", GroupKind("scheduling.x-k8s.io", "PodGroup")),
    GroupSource("annotations", "scheduling.k8s.io/group-name", GroupKind("scheduling.volcano.sh", "PodGroup")),
    GroupSource("annotations", "pod-group-name", GroupKind("scheduling.run.ai", "PodGroup")),
)


class SchedulersGroup(msgspec.Struct, frozen=True):
    """A group of another scheduler that a pod names: the pods that it needs together, and the class it is ranked by.

    0 and "" where it says nothing of it, or is not there.
    """

    source: GroupSource
    name: str
    pods: int = 0
    class_name: str = ""


class PodsTogether(msgspec.Struct, frozen=True):
    """A number of pods, of use only together, in a group of that kind and name."""

    kind: GroupKind
    name: str
    count: int

    @property
    def uid(self) -> str:
        """The name by which the ledger and its pods know it: a group may have no object, so no uid."""
        return f"{self.kind.qualified}/{self.name}"


def named_groups(metadata: Metadata) -> Iterator[tuple[GroupSource, str]]:
    """The groups that a pod names, of those that have to be looked up. Each scheduler looks for its own."""
    return ((source, name) for source in LOOKED_UP if (name := source.named_by(metadata)))


def kueue_group(metadata: Metadata) -> PodsTogether | None:
    """The plain pod group that Kueue would queue. Raises Refused for a count that is none."""
    name = metadata.annotations.get(KUEUE_NAME) or metadata.labels.get(KUEUE_NAME)
    written = metadata.annotations.get(KUEUE_COUNT)
    if not name or written is None:
        return None
    if not re.fullmatch("[0-9]{1,6}", written) or not 0 < int(written) <= MOST_IN_A_GROUP:
        raise Refused(Reason.INVALID, "no-group-size", f"metadata.annotations[{KUEUE_COUNT}]", value=written)
    return PodsTogether(KUEUE, name, int(written))
