"""The parts of a container that decisions read.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
"""

from typing import Any

from msgspec import field

from webhook.objects.view import View

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


class Probe(View, frozen=True):
    """How the kubelet asks a container whether it is ready; a command asks nothing of a port."""

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
        """An init container that keeps running (KEP-753)."""
        return self.restart_policy == "Always"
