"""What the cluster says about one request, as values; gathered elsewhere, never fetched from here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.workload_types import WorkloadType


@dataclass(frozen=True, slots=True)
class Member:
    """The pods that one template of a workload makes. `path` is the template's place in the workload."""

    path: str
    template: Pod
    count: int


@dataclass(frozen=True, slots=True)
class Workload:
    """An object that makes pods: an owner of the pod under review, or itself under review."""

    row: KindRow
    """What the table says of its kind."""
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

    @property
    def kind(self) -> GroupKind:
        """Its kind in the API."""
        return self.row.group_kind

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
