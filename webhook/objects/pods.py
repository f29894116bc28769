"""The parts of pods and their containers that decisions read, and the metadata that every object has.

The API server writes managedFields before it asks webhooks. So a field that another webhook fills in has no manager.
Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import field

from webhook.objects.refusal import Reason, Refused, shown
from webhook.objects.view import View, at, item_at, listed

Quantity = str | int | float


class UsedClaim(View, frozen=True):
    """One of the pod's claims that a container uses: all of it, or only what one request brings."""

    name: str = ""
    request: str = ""


class Resources(View, frozen=True):
    """A container's requests, limits, and the pod's claims that it uses."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)
    claims: tuple[UsedClaim, ...] = ()

    @property
    def asked(self) -> dict[str, Quantity]:
        """Return the request of each resource, or else its limit, because templates lack the API server's defaults."""
        return {**self.limits, **self.requests} if self.limits else self.requests


class Lifecycle(View, frozen=True):
    """A container's handlers, of which only preStop is read."""

    pre_stop: dict[str, Any] | None = None


class VolumeMount(View, frozen=True):
    """The path at which a container mounts a volume."""

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


class Probe(View, frozen=True):
    """The kubelet's check that a container is ready; a command asks no port."""

    http_get: Any = None
    grpc: Any = None


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
    readiness_probe: Probe | None = None
    termination_message_path: str = "/dev/termination-log"

    @property
    def is_sidecar(self) -> bool:
        """Tell whether it is an init container that keeps running (KEP-753)."""
        return self.restart_policy == "Always"


class NodeRequirement(View, frozen=True):
    """One line of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


def line_holds(key: str, operator: str, values: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Tell whether labels match a line of a selector; NotIn holds without the key, as in Kubernetes."""
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and value.isdecimal() and values and values[0].isdecimal():
            than = int(values[0])
            return int(value) > than if operator == "Gt" else int(value) < than
    return False


class NodeSelectorTerm(View, frozen=True):
    """Lines that must all hold. A term without lines matches no node."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a node of this name matches all lines; its name is the one field that a line may use.

        The DaemonSet controller binds each of its pods to a node in this way.
        """
        if not self.match_expressions and not self.match_fields:
            return False
        fields = {"metadata.name": name}
        return all(line_holds(each.key, each.operator, each.values, labels) for each in self.match_expressions) and all(
            line_holds(each.key, each.operator, each.values, fields) for each in self.match_fields
        )


class NodeSelector(View, frozen=True):
    """Terms; one of them must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(View, frozen=True):
    """The nodes that a pod must run on; preferences bind nobody."""

    required_during_scheduling_ignored_during_execution: NodeSelector = NodeSelector()


class Affinity(View, frozen=True):
    """A pod's affinity to nodes, and to other pods as plain JSON."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: Any = None
    pod_anti_affinity: Any = None


MOST_CONTAINERS, MOST_RESOURCES, MOST_CLAIMS, MOST_DEVICES = 500, 32, 100, 500
"""The limits of a pod, or of all templates of a workload together. A node runs fewer containers, names of resources are
few, and each claim is looked up, which may have 256 requests and alternatives."""
LONGEST_UID = 512
"""Characters of a uid. A UID has 36, but nobody checks an owner's, and a megabyte of it would be in the ledger. Pods
may identify a gang by a kind, a group and a name, as files may an owner."""


QUOTA_GATE = "gpu-tiers.dev/quota"
"""The scheduling gate of queued pods, if a tenant's quota queues its excess (docs/decisions/hold.md)."""
WITHOUT_QUOTA_GATE = {"schedulingGates": [{"$patch": "delete", "name": QUOTA_GATE}]}
"""A spec as a strategic merge patch that removes our gate and leaves the others, in any order."""


class OwnerReference(View, frozen=True):
    """The maker of an object; at most one of them is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """Return the API group: "" for core kinds."""
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
        """Return the owner that manages the object (controllerRef); None without one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def controller_uid(self) -> str:
        """Return the uid of the controller; "" without one."""
        return self.controller.uid if self.controller else ""

    @property
    def shown_name(self) -> str:
        """Return the object's name for people: its name, or the generateName that it will start with."""
        return self.name or f"{self.generate_name}*"


class ClaimVolume(View, frozen=True):
    """A PersistentVolumeClaim that a pod mounts."""

    claim_name: str = ""


class Volume(View, frozen=True):
    """A pod's volume, of the kinds that hooks write or warn about, and those that several pods may share."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    empty_dir: Any = None
    downward_api: Any = field(default=None, name="downwardAPI")
    image: Any = None
    projected: Any = None

    @property
    def claim_name(self) -> str:
        return self.persistent_volume_claim.claim_name if self.persistent_volume_claim else ""


class PodClaim(View, frozen=True):
    """A pod's entry in resourceClaims: a claim by name, or a template that one will be made of (KEP-4381)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None

    @property
    def source(self) -> str:
        """Return the name of the claim or template, for people."""
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
    scheduling_gates: tuple[Any, ...] = ()
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

    @property
    def node_terms(self) -> tuple[NodeSelectorTerm, ...]:
        """Return the terms of the required node affinity, of which one must hold."""
        return self.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms

    def every_container(self) -> Iterator[tuple[str, Container]]:
        """Yield each container that can ask for a resource, with its field path; none is missed (CVE-2023-2727)."""
        for index, container in enumerate(self.containers):
            yield f"spec.containers[{index}]", container
        for index, container in enumerate(self.init_containers):
            yield f"spec.initContainers[{index}]", container


class Pod(View, frozen=True):
    """A pod, or a workload's pod template."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()

    @property
    def waits_for_quota(self) -> bool:
        """Tell whether it is behind our gate."""
        return any(map(_is_ours, self.spec.scheduling_gates))

    @property
    def waits_for_others(self) -> bool:
        """Tell whether it is behind a gate that isn't ours."""
        return not all(map(_is_ours, self.spec.scheduling_gates))


def _is_ours(gate: object) -> bool:
    return isinstance(gate, dict) and gate.get("name") == QUOTA_GATE


class Named(View, frozen=True):
    """Any object, by its metadata alone."""

    metadata: Metadata = Metadata()


def require_few(pods: Sequence[Pod]) -> None:
    """Raise Refused if a pod, or the templates of a workload, would take too long to count."""
    containers = sum(len(pod.spec.containers) + len(pod.spec.init_containers) for pod in pods)
    _require("containers", containers, MOST_CONTAINERS)
    _require("resourceClaims", sum(len(pod.spec.resource_claims) for pod in pods), MOST_CLAIMS)
    asked = [each.resources for pod in pods for _, each in pod.spec.every_container()]
    if sum(len(each.requests) + len(each.limits) for each in asked) > MOST_RESOURCES:
        _require("resources", len({name for each in asked for name in (*each.requests, *each.limits)}), MOST_RESOURCES)


def require_few_devices(count: int) -> None:
    """Raise Refused if the claims of a pod, or of the templates of a workload, have more than MOST_DEVICES requests."""
    _require("requests of resourceClaims", count, MOST_DEVICES)


def require_short_uid(owner: OwnerReference | None) -> None:
    """Raise Refused if the UID of an object's controller is too long to be one."""
    if owner is not None and len(owner.uid) > LONGEST_UID:
        raise Refused(Reason.INVALID, "owner-uid-too-long", "metadata.ownerReferences", length=len(owner.uid))


def _require(what: str, count: int, most: int) -> None:
    if count > most:
        raise Refused(Reason.INVALID, "too-many-in-pod", count=count, what=what, most=most)


class ManagedFields(View, frozen=True):
    """The manager of fields: an Apply names what a person wrote, an Update also what the API server filled in."""

    manager: str = ""
    operation: str = ""
    fields_v1: Any = None


def is_filled_in(tree: object, *field: str) -> bool:
    """Tell whether another webhook filled in a field that the object has, because nobody sent it.

    An object without managedFields has not been through an API server: its author wrote all of it.
    """
    entries, managed = listed(at(tree, "metadata.managedFields")), ("fieldsV1", *(f"f:{step}" for step in field))
    return bool(entries) and all(item_at(each, managed) is None for each in entries)
