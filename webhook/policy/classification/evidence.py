"""What makes us say what a workload is, and how far that may be trusted (docs/decisions/evidence.md)."""

from dataclasses import dataclass
from enum import IntEnum

from webhook.policy.workloads.kinds.row import Source
from webhook.policy.workloads.workload_types import WorkloadType


class Trust(IntEnum):
    """The larger, the more it may do."""

    GUESS = 0
    """A command, an image, a name, a port: lowers a workload below the tier it had without, never raises it."""
    USUAL = 1
    """What a general launcher is mostly used for: chooses a tier, binds nobody who asks for another."""
    PROOF = 2
    """The kind, its fields, or an operator's label: a claim against it may be refused."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A workload type and what made us say so.

    `source` is where a guess comes from. `otherwise` is what would be said without this guess.
    """

    type: WorkloadType
    text: str
    trust: Trust = Trust.PROOF
    source: Source | None = None
    otherwise: "Evidence | None" = None

    def __str__(self) -> str:
        return f"{self.type}, {'a guess from' if self.trust is Trust.GUESS else 'by'} {self.text}"
