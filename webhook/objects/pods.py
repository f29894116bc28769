"""The parts of pods that decisions read, and the metadata that every object has.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from collections.abc import Iterator
from typing import Any

from msgspec import field

from webhook.objects.containers import Container
from webhook.objects.node_affinity import Affinity
from webhook.objects.refusal import shown
from webhook.objects.view import View

MIRROR = "kubernetes.io/config.mirror"
"""The kubelet's annotation on the mirror of a static pod: nobody else can change such a pod."""


class OwnerReference(View, frozen=True):
    """Who made the object; one of them at most is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group: "" for core kinds."""
        return self.api_version.rpartition("/")[0]


class Metadata(View, frozen=True):
    """Object metadata."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None
    generation: int | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object (controllerRef)."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def controller_uid(self) -> str:
        """The uid of that owner; "" where there is none."""
        return self.controller.uid if self.controller else ""

    @property
    def mirrors(self) -> bool:
        """Whether it is the mirror of a static pod."""
        return MIRROR in self.annotations

    @property
    def shown_name(self) -> str:
        """What a person would call it: its name, or the generateName it will start with."""
        return self.name or f"{self.generate_name}*"


class Volume(View, frozen=True):
    """A pod's volume; of its kinds only whether it dies with the pod matters."""

    name: str = ""
    empty_dir: Any = None


class PodClaim(View, frozen=True):
    """A pod's entry in resourceClaims: a claim by name, or a template that one will be made of (KEP-4381)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None

    @property
    def source(self) -> str:
        """What a person would call what it names."""
        if self.resource_claim_name is not None:
            return f"ResourceClaim/{shown(self.resource_claim_name)}"
        return f"ResourceClaimTemplate/{shown(self.resource_claim_template_name or '')}"


class SchedulingGroup(View, frozen=True):
    """The PodGroup that a pod is scheduled with (KEP-4671)."""

    pod_group_name: str = ""


class OperatingSystem(View, frozen=True):
    """The pod's declared operating system."""

    name: str = ""


class PodSpec(View, frozen=True):
    """A pod's spec."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    resource_claims: tuple[PodClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    service_account_name: str = ""
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity = Affinity()
    tolerations: Any = None
    topology_spread_constraints: Any = None
    active_deadline_seconds: Any = None
    volumes: tuple[Volume, ...] = ()
    os: OperatingSystem | None = None
    restart_policy: str = ""
    share_process_namespace: bool = False
    host_pid: bool = field(default=False, name="hostPID")

    def every_container(self) -> Iterator[tuple[str, Container]]:
        """Each container that can hold a resource, with its field path; the one iterator (CVE-2023-2727)."""
        for index, container in enumerate(self.containers):
            yield f"spec.containers[{index}]", container
        for index, container in enumerate(self.init_containers):
            yield f"spec.initContainers[{index}]", container


class Pod(View, frozen=True):
    """A pod, or a workload's pod template."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class Named(View, frozen=True):
    """Any object, for what all of them have."""

    metadata: Metadata = Metadata()
