"""The states of queued gangs, as values that can be stored in a file and drawn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

State = Literal["waits", "starts", "runs"]
"""Behind the gate; admitted, but not all pods run; all of them run."""


@dataclass(frozen=True)
class Span:
    """The time of a workload in a state, in seconds since the first create."""

    workload: str
    state: State
    begins: float
    ends: float


@dataclass(frozen=True)
class QueueRun:
    """One run: gangs of so many pods of a GPU each, in a tenant of so many GPUs; and a pod that evicts one of them."""

    kubernetes: str
    gpus: int
    pods: int
    gangs: list[str]
    evictor: str
    spans: list[Span]

    def of(self, workload: str) -> list[Span]:
        """Return the spans of a workload in their order."""
        return [each for each in self.spans if each.workload == workload]

    def write(self, file: Path) -> None:
        """Write the run to a file, as JSON."""
        file.write_bytes(msgspec.json.encode(self) + b"\n")


def read_queue_run(file: Path) -> QueueRun:
    """Read a file that `write` made; msgspec.ValidationError for anything else."""
    return msgspec.json.decode(file.read_bytes(), type=QueueRun)
