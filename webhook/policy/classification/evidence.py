"""The evidence for the type of a workload, and the pod and owners in which it is found.

Long texts are cut. A gang is one workload: a worker that only listens for its launcher has the launcher's type.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple, Self

import msgspec
from msgspec import structs

from webhook.objects.pods import Container, OwnerReference, Pod
from webhook.policy.quota.demand import ANNOTATIONS, holder_by
from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kind_table import Source, WorkloadType
from webhook.policy.workloads.workload import Workload

SHOWN: frozenset[Source] = frozenset(["command", "variable", "image", "probe", "answers", "names"])
"""Sources that show what runs. Each is right in 97 % of the labelled manifests and more (tests/workloads)."""

LONGEST = 4096
"""Characters of a text that are searched, because an entrypoint script may be a megabyte."""
REMEMBERED = 4096
"""Texts of each sort that are cached, because pods of a workload have the same."""

_BETWEEN = re.compile(r"[^a-z0-9]+")


class Evidence(msgspec.Struct, frozen=True):
    """A workload type and its reason.

    `source` is where a guess comes from: both Shown and Hinted are called guesses. `otherwise` is the evidence without
    this guess. `confirmed`: what runs shows the launcher's usual use.
    """

    type: WorkloadType
    text: str
    grade: Grade = Grade.Proven
    source: Source | None = None
    otherwise: "Evidence | None" = None
    confirmed: bool = False

    def __str__(self) -> str:
        return f"{self.type}, {'by ' if self.grade >= Grade.Usual else ''}{self.basis}"

    @property
    def basis(self) -> str:
        """Return the reason for the type; a guess is called one."""
        return self.text if self.grade >= Grade.Usual else f"a guess from {self.text}"


class Weight(IntEnum):
    """The weight of a hint in a command: the larger decides."""

    LOOKS = 0
    WAITS = 1
    LAUNCHER = 2
    WORK = 3


class Hint(NamedTuple):
    """A type, and the words that say so. `clue` is where the words are; "" if the source says that.

    A name may be that of the workload, a container or an API group, so the clue helps the reader to find it.
    """

    type: WorkloadType
    words: str
    weight: Weight = Weight.WORK
    clue: str = ""


def telling(text: str, table: Collection[str]) -> Iterator[str]:
    """Yield the words that a table knows, or knows without trailing digits; a pair (code-server) replaces its parts."""
    words = [word for word in _BETWEEN.split(text) if word]
    bare = [word.rstrip("0123456789") or word for word in words]
    taken = -1
    for index, word in enumerate(bare):
        pair = "-".join(bare[index : index + 2])
        if index == taken:
            continue
        if pair in table:
            taken = index + 1
            yield pair
        elif words[index] in table:
            yield words[index]
        elif word in table:
            yield word


MOST_READ = 64
"""Containers, and variables of each, that are searched: an honest pod has fewer."""
_NAME_LABELS = ("app.kubernetes.io/name", "app")
_COMMON = re.compile(r"\b(?:apps?|api|batch|ui|services?|test)\b")
"""Words of API groups that say nothing about the program: many groups are named after Kubernetes' `batch`."""
_SET_BY_SHELL = re.compile(
    r"(?:^|[\n;&|(]|(?<=\bexport)|(?<=\benv)|(?<=-c)|(?<=-lc)|(?<=-ec))[ \t]*([A-Za-z_]\w{0,60})="
)
_HUMPS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
RENDEZVOUS_PORTS = frozenset(
    {22, 2222, 1234, 3389, 4040, 6006, 6379, 6818, 7078, 7079, 8265, 8476, 8786, 8787, 10001, 12355, 18515, 23456}
    | {29400, 29500}
)
"""Ports by which the processes of one workload find each other: nobody waits there for answers."""


class Subject(msgspec.Struct, frozen=True):
    """A pod and its owners, from which sources read their clues. `ends`: its author made it to end.

    `member`: the pod is in a gang whose owners are not visible, so it may only wait for the others.
    """

    pod: Pod
    owners: Sequence[Workload]
    ends: bool = False
    member: bool = False

    @classmethod
    def of(cls, pod: Pod, owners: Sequence[Workload], *, member: bool = False) -> Self:
        """Return a pod with its owners, the nearest first.

        The outermost owner whose kind has a type or a usual use says whether the pod ends. Without such an owner the
        restart policy does, but a pod with a port or readiness probe to which others may connect does not end.
        """
        said = next(filter(None, (each.row.type or each.row.usual for each in reversed(owners))), None)
        if said is not None:
            return cls(pod, owners, said in (WorkloadType.TRAINING, WorkloadType.BATCH), member)
        found = cls(pod, owners, member=member)
        answers = any(found.asked_at()) or found.answers_probes()
        return structs.replace(found, ends=pod.spec.restart_policy not in ("", "Always") and not answers)

    def containers(self) -> Sequence[Container]:
        """Return the first containers of the pod, or of the whole gang that it belongs to."""
        return [container for container, _ in self._read()]

    def commands(self) -> Iterator[str]:
        """Yield commands with their arguments, and the commands in owners' fields."""
        for owner in self.owners:
            yield from (text[:LONGEST] for text in owner.runs[:MOST_READ])
        for container in self.containers():
            if container.command or container.args:
                yield " ".join((*container.command, *container.args))[:LONGEST]

    def variables(self) -> Iterator[str]:
        """Yield names of environment variables, and of those that a shell sets in a command."""
        for container in self.containers():
            yield from (variable.name[:LONGEST] for variable in container.env[:MOST_READ])
        for command in self.commands():
            yield from islice((found[1] for found in _SET_BY_SHELL.finditer(command)), MOST_READ)

    def imaged(self) -> Iterator[Container]:
        """Yield the containers with an image that ask for devices, because a sidecar says nothing; all if none asks."""
        yield from (container for container in self._with_devices() or self.containers() if container.image)

    def images(self) -> Iterator[str]:
        yield from (container.image[:LONGEST] for container in self.imaged())

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield names with their kind, from the outermost owner's, which a person chose, to the containers'.

        The API group of an owner without a row is a name too: inference.example.com.
        """
        yield from self.called()
        yield from self.names_of(self.containers())
        unknown = self._unknown_owner()
        if unknown is not None and "." in unknown.group:
            yield "API group", _COMMON.sub("", unknown.group[:LONGEST])

    def names_of(self, containers: Iterable[Container]) -> Iterator[tuple[str, str]]:
        yield from (("container's name", container.name[:LONGEST]) for container in containers)

    def called(self) -> Iterator[tuple[str, str]]:
        """Yield the names that a person gave the whole, without containers and groups."""
        metadata = self.pod.metadata
        yield from (("name", owner.name[:LONGEST]) for owner in reversed(self.owners))
        # the same before and after a name was generated
        yield "name", (metadata.generate_name or metadata.name)[:LONGEST]
        yield from ((f"label {label}", metadata.labels.get(label, "")[:LONGEST]) for label in _NAME_LABELS)

    def unknown_kind(self) -> str:
        """Return the kind of an owner without a row, in words: Train-Job; "" if there is none."""
        unknown = self._unknown_owner()
        return _HUMPS.sub("-", unknown.kind[:LONGEST]) if unknown else ""

    def ports(self) -> Iterator[int]:
        """Yield the ports that containers declare."""
        for container in self.containers():
            yield from (port.container_port for port in container.ports)

    def asked_at(self) -> Iterator[int]:
        """Yield ports where somebody may wait for an answer, without those by which its own parts find each other."""
        yield from (port for port in self.ports() if port and port not in RENDEZVOUS_PORTS)

    def answers_probes(self) -> bool:
        """Tell whether a container with devices has a readiness probe over the network."""
        probes = [each.readiness_probe for each in self._with_devices() if each.readiness_probe]
        return any(probe.http_get or probe.grpc for probe in probes)

    def _with_devices(self) -> Sequence[Container]:
        """Return the containers that ask for a resource with a domain, a claim's device, or a share of a GPU."""
        found = []
        for container, pod in self._read():
            asked, shares = container.resources, any(each in pod.metadata.annotations for each in ANNOTATIONS)
            named = bool(asked.claims) or any("/" in name for name in (*asked.limits, *asked.requests))
            if named or (shares and container.name == holder_by(ANNOTATIONS, pod)):
                found.append(container)
        return found

    def _read(self) -> Iterator[tuple[Container, Pod]]:
        """Yield the first containers, each with its pod. A gang yields those of each of its templates."""
        gangs = (each for each in reversed(self.owners) if each.row.gang_label and each.members and not each.row.wraps)
        gang = next(gangs, None)
        pods = [member.template for member in gang.members[:MOST_READ]] if gang else [self.pod]
        return islice(((container, pod) for pod in pods for container in pod.spec.containers), MOST_READ)

    def _unknown_owner(self) -> OwnerReference | None:
        return None if self.owners else self.pod.metadata.controller
