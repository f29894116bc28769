"""What the cluster says about one request, as values; gathered elsewhere, never fetched from here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from webhook.policy.objects import Pod
from webhook.policy.tenants import Tenant
from webhook.policy.tiers import PriorityClass


class WorkloadType(StrEnum):
    """What a workload is."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"
    INTERACTIVE = "interactive"


class Kind(NamedTuple):
    """A kind of object; group and kind go together, for Job and PodGroup exist in several groups."""

    group: str
    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Member:
    """The pods that one template of a workload makes. `path` is the template's place in the workload."""

    path: str
    template: Pod
    count: int


@dataclass(frozen=True, slots=True)
class Workload:
    """An object that makes pods: an owner of the pod under review, or itself under review."""

    kind: Kind
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    type: WorkloadType | None = None
    """What the object's own fields prove it to be."""
    runs: tuple[str, ...] = ()
    """Commands that stand in fields of its own: a RayJob's entrypoint."""
    brings_gpus: bool = False
    """Whether fields of its own ask for GPUs, or its operator brings them without a word in the object."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """The PodGroup a pod is scheduled with; class and priority as they stand, immutable from its creation."""

    name: str
    priority_class_name: str
    priority: int | None


@dataclass(frozen=True, slots=True)
class Devices:
    """One request of a pod's resource claims: so many devices of a class (KEP-4381)."""

    device_class: str
    count: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision may know beyond the object itself. Owners are the nearest first."""

    namespace: Namespace
    classes: Mapping[str, PriorityClass]
    owners: tuple[Workload, ...] = ()
    tenant: Tenant | None = None
    group: Group | None = None
    devices: tuple[Devices, ...] = ()
