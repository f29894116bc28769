"""The parts of Kubernetes objects that decisions read; never a whole object, and nothing is written through them.

Absent and null mean the same in Kubernetes' JSON; a wrong type is refused with its path.
Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from webhook.policy.refusal import Refused


class View(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all views: camelCase on the wire, unknown fields skipped."""


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
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object (controllerRef)."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def shown_name(self) -> str:
        """What a person would call it: its name, or the generateName it will start with."""
        return self.name or f"{self.generate_name}*"


Quantity = str | int | float


class Resources(View, frozen=True):
    """A container's requests, limits, and the pod's claims that it uses."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: tuple[dict[str, Any], ...] = ()


class Lifecycle(View, frozen=True):
    """A container's handlers; only whether preStop is taken matters."""

    pre_stop: dict[str, Any] | None = None


class VolumeMount(View, frozen=True):
    """Where a container sees a volume."""

    name: str = ""
    mount_path: str = ""
    read_only: bool = False


class Variable(View, frozen=True):
    """An environment variable; its value may come from elsewhere."""

    name: str = ""
    value: Any = None


class Port(View, frozen=True):
    """A port that a container declares."""

    name: str = ""
    container_port: int = 0


class Container(View, frozen=True):
    """An app container, an init container or a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: Resources = Resources()
    lifecycle: Lifecycle | None = None
    restart_policy: str | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    ports: tuple[Port, ...] = ()
    env: tuple[Variable, ...] = ()
    env_from: tuple[Any, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """An init container that keeps running (KEP-753)."""
        return self.restart_policy == "Always"


class Volume(View, frozen=True):
    """A pod's volume; of its kinds only whether it dies with the pod matters."""

    name: str = ""
    empty_dir: Any = None


class PodClaim(View, frozen=True):
    """A pod's entry in resourceClaims: a claim by name, or a template that one will be made of (KEP-4381)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(View, frozen=True):
    """The PodGroup that a pod is scheduled with (KEP-4671)."""

    pod_group_name: str = ""


class OperatingSystem(View, frozen=True):
    """The pod's declared operating system."""

    name: str = ""


class NodeRequirement(View, frozen=True):
    """One line of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True):
    """Lines that must all hold."""

    match_expressions: tuple[NodeRequirement, ...] = ()


class NodeSelector(View, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(View, frozen=True):
    """The nodes that a pod must run on; what it would rather have binds nobody."""

    required_during_scheduling_ignored_during_execution: NodeSelector = NodeSelector()


class Affinity(View, frozen=True):
    """A pod's affinity, as far as nodes are concerned."""

    node_affinity: NodeAffinity = NodeAffinity()


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
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    volumes: tuple[Volume, ...] = ()
    os: OperatingSystem | None = None
    restart_policy: str = ""
    share_process_namespace: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")

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


class PodGroupSpec(View, frozen=True):
    """What a PodGroup says of priority."""

    priority_class_name: str = ""
    priority: int | None = None


class PodGroup(View, frozen=True):
    """A gang as the scheduler knows it (scheduling.k8s.io, KEP-4671)."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()


class Named(View, frozen=True):
    """Any object, for what all of them have."""

    metadata: Metadata = Metadata()


V = TypeVar("V", bound=View)


def read(raw: bytes | msgspec.Raw, shape: type[V]) -> V:
    """An object's view from JSON bytes. Raises Refused with the field's path on a wrong type."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        return view(msgspec.json.decode(raw), shape)


def view(tree: object, shape: type[V]) -> V:
    """An object's view from decoded JSON. Raises Refused with the field's path on a wrong type."""
    try:
        return msgspec.convert(_without_nulls(tree), type=shape)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise Refused(f"{path.rstrip('`').lstrip('.') or 'object'}: {what[0].lower()}{what[1:]}") from None


def _without_nulls(tree: object) -> object:
    """The same tree where a null member is an absent member, as the API server's decoder has it."""
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(item) for item in tree]
    return tree
