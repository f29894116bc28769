"""The nodes of the pods of gangs, as values that can be stored in a file, counted and drawn."""

from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True)
class Place:
    """A pod of a gang, and its node; None while it waits."""

    gang: str
    gpus: int
    node: str | None


@dataclass(frozen=True)
class Numbers:
    """The numbers of one run."""

    nodes: int
    """Nodes that hold pods smaller than a node."""
    crossing: int
    """Gangs with pods in more than one rack."""
    stranded: int
    """Free GPUs on those nodes: a pod that needs a whole node can't have them."""
    waiting: int
    """Gangs of which a pod waits."""


@dataclass(frozen=True)
class Layouts:
    """The runs of each arrangement. `racks` are the nodes of each rack, all alike."""

    kubernetes: str
    gpus_per_node: int
    racks: dict[str, list[str]]
    runs: dict[str, list[list[Place]]]

    def numbers(self, places: list[Place]) -> Numbers:
        """Count one run."""
        rack_of = {node: rack for rack, nodes in self.racks.items() for node in nodes}
        shared = {each.node for each in places if each.node and each.gpus < self.gpus_per_node}
        racks: dict[str, set[str]] = {}
        for each in places:
            if each.node:
                racks.setdefault(each.gang, set()).add(rack_of[each.node])
        used = sum(each.gpus for each in places if each.node in shared)
        return Numbers(
            nodes=len(shared),
            crossing=sum(len(found) > 1 for found in racks.values()),
            stranded=len(shared) * self.gpus_per_node - used,
            waiting=len({each.gang for each in places if each.node is None}),
        )

    def write(self, file: Path) -> None:
        """Write the layouts to a file, as JSON."""
        file.write_bytes(msgspec.json.encode(self) + b"\n")


def read_layouts(file: Path) -> Layouts:
    """Read a file that `write` made; msgspec.ValidationError for anything else."""
    return msgspec.json.decode(file.read_bytes(), type=Layouts)
