"""The clues of a pod and its owners: what runs, its images, its names, its ports. Long texts are cut.

A gang is one workload: a worker that only listens for its launcher is what its launcher is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from webhook.objects.containers import Container
from webhook.objects.pods import OwnerReference, Pod
from webhook.policy.classification.vocabulary.command_phrases import LONGEST
from webhook.policy.classification.vocabulary.known_ports import RENDEZVOUS_PORTS
from webhook.policy.quota.shares import ANNOTATIONS, holder_by
from webhook.policy.workloads.workload import Workload
from webhook.policy.workloads.workload_types import WorkloadType

_NAME_LABELS = ("app.kubernetes.io/name", "app")
_FOR_GOOD = ("", "Always")
_COMMON = re.compile(r"\b(?:apps?|api|ui|services?|test)\b")
"""Words of API groups that tell nothing of what runs."""
_HUMPS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MADE_TO_END = (WorkloadType.TRAINING, WorkloadType.BATCH)


@dataclass(frozen=True, slots=True)
class Case:
    """What guesses are made of. `ends`: it is made to end. A `member` of an unseen gang waits for the others."""

    pod: Pod
    owners: Sequence[Workload]
    ends: bool = False
    member: bool = False

    @classmethod
    def of(cls, pod: Pod, owners: Sequence[Workload], *, member: bool = False) -> Self:
        """The case of a pod with its owners, the nearest first."""
        return cls(pod, owners, _is_made_to_end(pod, owners), member)

    @property
    def made_by_a_kind_that_ends(self) -> bool:
        """Whether something made it to end: a Job, not a person who wrote restartPolicy: Never."""
        return self.ends and bool(self.owners)

    def containers(self) -> Sequence[Container]:
        """The pod's, or those of the whole gang that it is a member of."""
        return [container for pod in self._pods() for container in pod.spec.containers]

    def commands(self) -> Iterator[str]:
        """Commands with their arguments, and what owners say they run."""
        for owner in self.owners:
            yield from (text[:LONGEST] for text in owner.runs)
        for container in self.containers():
            if container.command or container.args:
                yield " ".join((*container.command, *container.args))[:LONGEST]

    def variables(self) -> Iterator[str]:
        """Names of environment variables."""
        for container in self.containers():
            yield from (variable.name[:LONGEST] for variable in container.env)

    def images(self) -> Iterator[str]:
        """Images of the containers that ask for devices, since a sidecar's says nothing; of all, if none asks."""
        containers = self._with_devices() or self.containers()
        yield from (container.image[:LONGEST] for container in containers if container.image)

    def names(self) -> Iterator[str]:
        """Names from the outermost owner's, which a person chose, to the containers'.

        Of an owner that no row describes the API group is a name too: inference.example.com.
        """
        yield from (name[:LONGEST] for name in self._names())

    def unknown_kind(self) -> str:
        """The kind of an owner that no row describes, in words: Train-Job; "" where there is none."""
        unknown = self._unknown_owner()
        return _HUMPS.sub("-", unknown.kind[:LONGEST]) if unknown else ""

    def ports(self) -> Iterator[int]:
        """Ports that containers declare."""
        for container in self.containers():
            yield from (port.container_port for port in container.ports)

    def asked_at(self) -> Iterator[int]:
        """Ports where somebody may wait for an answer, without those by which its own parts find each other."""
        yield from (port for port in self.ports() if port and port not in RENDEZVOUS_PORTS)

    def probed(self) -> Iterator[str]:
        """Paths of the readiness probes."""
        for container in self.containers():
            asked = container.readiness_probe.http_get if container.readiness_probe else None
            if isinstance(asked, dict) and isinstance(asked.get("path"), str):
                yield asked["path"]

    def answers_probes(self) -> bool:
        """Whether a container with devices has a readiness probe over the network."""
        probes = [each.readiness_probe for each in self._with_devices() if each.readiness_probe]
        return any(probe.http_get or probe.grpc for probe in probes)

    def _pods(self) -> Sequence[Pod]:
        """The pod, or the templates of the whole gang that it is a member of."""
        for owner in reversed(self.owners):
            if owner.row.gang_label and owner.members and not owner.row.wraps:
                return [member.template for member in owner.members]
        return (self.pod,)

    def _with_devices(self) -> Sequence[Container]:
        return [container for pod in self._pods() for container in pod.spec.containers if _has_devices(container, pod)]

    def _names(self) -> Iterator[str]:
        yield from (owner.name for owner in reversed(self.owners))
        metadata = self.pod.metadata
        yield metadata.generate_name or metadata.name  # the same before and after a name was generated
        yield from (metadata.labels.get(label, "") for label in _NAME_LABELS)
        yield from (container.name for container in self.containers())
        unknown = self._unknown_owner()
        if unknown is not None and "." in unknown.group:
            yield _COMMON.sub("", unknown.group)

    def _unknown_owner(self) -> OwnerReference | None:
        return None if self.owners else self.pod.metadata.controller


def _is_made_to_end(pod: Pod, owners: Sequence[Workload]) -> bool:
    """By the outermost owner whose kind tells, else by the restart policy, unless it answers others."""
    for owner in reversed(owners):
        said = owner.row.type or owner.row.usual
        if said is not None:
            return said in _MADE_TO_END
    case = Case(pod, owners)
    return pod.spec.restart_policy not in _FOR_GOOD and not any(case.asked_at()) and not case.answers_probes()


def _has_devices(container: Container, pod: Pod) -> bool:
    """Whether it asks for an extended resource, whose name has a domain, for a claim's device, or has part of a GPU."""
    resources = container.resources
    if resources.claims or any("/" in name for name in (*resources.limits, *resources.requests)):
        return True
    shares = any(annotation in pod.metadata.annotations for annotation in ANNOTATIONS)
    return shares and container.name == holder_by(ANNOTATIONS, pod)
