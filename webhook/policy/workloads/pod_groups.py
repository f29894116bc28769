"""Groups of pods without a workload, by the fields in which a pod names its gang.

Sources: KEP-4671 (scheduling.k8s.io); the coscheduling plugin of kubernetes-sigs/scheduler-plugins; the PodGroups of
Volcano and of KAI, which give their pods the priority of
`spec.priorityClassName`; Kueue's plain pod groups.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata
from webhook.objects.refusal import Reason, Refused

KUEUE_NAME = "kueue.x-k8s.io/pod-group-name"
"""A label, and since Kueue 0.18 also an annotation, which has precedence because a label's value is shorter than a
name."""
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KUEUE = GroupKind("kueue.x-k8s.io", "PodGroup")
"""The kind of a group without an object, made by pods alone."""
MOST_IN_A_GROUP = 100_000


class GroupSource(msgspec.Struct, frozen=True):
    """The key by which a pod names its group, and the kind with the number of pods that it needs, `spec.minMember`."""

    place: Literal["labels", "annotations"]
    key: str
    kind: GroupKind

    def named_by(self, metadata: Metadata) -> str:
        """Return the name of a pod's group; "" if it names none."""
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
    """A group of another scheduler that a pod names: the pods that it needs together, and its class.

    0 and "" if it does not say, or does not exist.
    """

    source: GroupSource
    name: str
    pods: int = 0
    class_name: str = ""


class PodsTogether(msgspec.Struct, frozen=True):
    """A number of pods that need one another, in a group of that kind and name."""

    kind: GroupKind
    name: str
    count: int

    @property
    def uid(self) -> str:
        """Return the name by which the ledger and its pods know it, because a group may have no object and no uid."""
        return f"{self.kind.qualified}/{self.name}"


def named_groups(metadata: Metadata) -> Iterator[tuple[GroupSource, str]]:
    """Yield the groups that a pod names and that have to be looked up. Each scheduler looks for its own."""
    return ((source, name) for source in LOOKED_UP if (name := source.named_by(metadata)))


def kueue_group(metadata: Metadata) -> PodsTogether | None:
    """Return the plain pod group that Kueue would queue; None without one. Raises Refused for an invalid count."""
    name = metadata.annotations.get(KUEUE_NAME) or metadata.labels.get(KUEUE_NAME)
    written = metadata.annotations.get(KUEUE_COUNT)
    if not name or written is None:
        return None
    if not re.fullmatch("[0-9]{1,6}", written) or not 0 < int(written) <= MOST_IN_A_GROUP:
        raise Refused(Reason.INVALID, "no-group-size", f"metadata.annotations[{KUEUE_COUNT}]", value=written)
    return PodsTogether(KUEUE, name, int(written))
