"""What makes us say what a workload is, and how far that may be trusted; never the type itself."""

from dataclasses import dataclass
from enum import IntEnum

from webhook.policy.workloads.workload_types import WorkloadType


class Trust(IntEnum):
    """The larger, the more it may do (docs/decisions/evidence.md)."""

    GUESS = 0
    """A command, an image, a name, a port: lowers a workload below the tier it had without, never raises it."""
    USUAL = 1
    """What a general launcher is mostly used for: chooses a tier, binds nobody who asks for another."""
    PROOF = 2
    """The kind, its fields, or an operator's label: a claim against it may be refused."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A workload type and what made us say so. `otherwise` is what would be said without this guess."""

    type: WorkloadType
    text: str
    trust: Trust = Trust.PROOF
    otherwise: "Evidence | None" = None

    @property
    def guess(self) -> bool:
        """Whether it is weak evidence."""
        return self.trust is Trust.GUESS

    @property
    def proof(self) -> bool:
        """Whether it leaves no doubt."""
        return self.trust is Trust.PROOF

    def __str__(self) -> str:
        return f"{self.type}, {'a guess from' if self.guess else 'by'} {self.text}"
