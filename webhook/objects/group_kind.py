"""A kind of object with its API group: Job and PodGroup exist in several groups."""

from typing import NamedTuple


class GroupKind(NamedTuple):
    """A kind and its API group, "" for core kinds. It prints as the kind alone."""

    group: str
    kind: str

    @property
    def qualified(self) -> str:
        """Kind and group, as kubectl takes them: PyTorchJob.kubeflow.org."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def __str__(self) -> str:
        return self.kind


COMPOSITE_POD_GROUP = GroupKind("scheduling.k8s.io", "CompositePodGroup")
NAMESPACE = GroupKind("", "Namespace")
POD = GroupKind("", "Pod")
POD_GROUP = GroupKind("scheduling.k8s.io", "PodGroup")
RESOURCE_CLAIM = GroupKind("resource.k8s.io", "ResourceClaim")
SCHEDULING_WORKLOAD = GroupKind("scheduling.k8s.io", "Workload")
