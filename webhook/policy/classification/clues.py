"""Where hints stand in a pod and its owners: what runs, its images, its names, its ports; never what they mean.

A gang is one workload: a worker that only listens for its launcher is what its launcher is.
"""

import re
from collections.abc import Iterator, Sequence

from webhook.objects.containers import Container
from webhook.objects.pods import OwnerReference, Pod
from webhook.policy.classification.vocabulary.known_ports import RENDEZVOUS_PORTS
from webhook.policy.values.facts import Workload

_NAME_LABELS = ("app.kubernetes.io/name", "app")
_FOR_GOOD = ("", "Always")
_COMMON = re.compile(r"\b(?:apps?|api|ui|services?|test)\b")
"""Words of API groups that tell nothing of what runs."""
_HUMPS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def commands(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    """Commands with their arguments, and what owners say they run."""
    for owner in owners:
        yield from owner.runs
    for container in _containers(pod, owners):
        if container.command or container.args:
            yield " ".join((*container.command, *container.args))


def variables(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    """Names of environment variables."""
    for container in _containers(pod, owners):
        yield from (variable.name for variable in container.env)


def images(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    """Images of the containers that ask for devices: a sidecar's says nothing. Of all, where none asks."""
    containers = list(_containers(pod, owners))
    asking = [container for container in containers if _asks_for_devices(container)]
    yield from (container.image for container in asking or containers if container.image)


def names(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    """Names from the outermost owner's, which a person chose, to the containers'.

    Of an owner that no row describes the API group is a name too: inference.example.com.
    """
    yield from (owner.name for owner in reversed(owners))
    yield pod.metadata.generate_name or pod.metadata.name  # the same before and after a name was generated
    yield from (pod.metadata.labels.get(label, "") for label in _NAME_LABELS)
    yield from (container.name for container in _containers(pod, owners))
    unknown = _unknown_owner(pod, owners)
    if unknown is not None and "." in unknown.group:
        yield _COMMON.sub("", unknown.group)


def unknown_kind(pod: Pod, owners: Sequence[Workload]) -> str:
    """The kind of an owner that no row describes, in words: Train-Job; "" where there is none."""
    unknown = _unknown_owner(pod, owners)
    return _HUMPS.sub("-", unknown.kind) if unknown else ""


def _unknown_owner(pod: Pod, owners: Sequence[Workload]) -> OwnerReference | None:
    return None if owners else pod.metadata.controller


def ports(pod: Pod, owners: Sequence[Workload]) -> Iterator[int]:
    """Ports that containers declare."""
    for container in _containers(pod, owners):
        yield from (port.container_port for port in container.ports)


def listens(pod: Pod, owners: Sequence[Workload]) -> bool:
    """Whether others may ask it something: behind a port that is not for its own parts, or for a probe."""
    return any(asked_at(pod, owners)) or answers_probes(pod, owners)


def asked_at(pod: Pod, owners: Sequence[Workload]) -> Iterator[int]:
    """Ports behind which somebody may wait for an answer."""
    yield from (port for port in ports(pod, owners) if port and port not in RENDEZVOUS_PORTS)


def probed(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    """Paths at which it is asked whether it is ready."""
    for container in _containers(pod, owners):
        asked = container.readiness_probe.http_get if container.readiness_probe else None
        if isinstance(asked, dict) and isinstance(asked.get("path"), str):
            yield asked["path"]


def answers_probes(pod: Pod, owners: Sequence[Workload]) -> bool:
    """Whether a container with devices says over the network when it is ready to be asked."""
    asking = [each for each in _containers(pod, owners) if _asks_for_devices(each)]
    probes = [each.readiness_probe for each in asking if each.readiness_probe]
    return any(probe.http_get or probe.grpc for probe in probes)


def runs_to_an_end(pod: Pod, owners: Sequence[Workload]) -> bool:
    """Whether it is made to end: by its outermost known kind, else by its restart policy, unless others ask it."""
    for owner in reversed(owners):
        if owner.row.ends is not None:
            return owner.row.ends
    return pod.spec.restart_policy not in _FOR_GOOD and not listens(pod, owners)


def _containers(pod: Pod, owners: Sequence[Workload]) -> Sequence[Container]:
    gang = _gang(owners)
    if gang is None:
        return pod.spec.containers
    return [container for member in gang.members for container in member.template.spec.containers]


def _gang(owners: Sequence[Workload]) -> Workload | None:
    for owner in reversed(owners):
        if owner.row.gang_label and owner.members:
            return owner
    return None


def _asks_for_devices(container: Container) -> bool:
    """Whether it asks for an extended resource, whose name has a domain, or for a claim's device."""
    resources = container.resources
    return bool(resources.claims) or any("/" in name for name in (*resources.limits, *resources.requests))
