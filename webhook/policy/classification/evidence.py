"""What makes us say what a workload is, and how far that may be trusted (docs/decisions/evidence.md)."""

from dataclasses import dataclass

from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kinds.row import Source
from webhook.policy.workloads.workload_types import WorkloadType

SHOWN: frozenset[Source] = frozenset(["command", "variable", "image", "probe", "answers"])
"""Sources that show what runs. Each is right in 97 % of the labelled manifests and more (tests/workloads)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A workload type and what made us say so.

    `source` is where a guess comes from: what is shown and what is hinted are guesses, and are called so. `otherwise`
    is what would be said without this guess.
    """

    type: WorkloadType
    text: str
    grade: Grade = Grade.Proven
    source: Source | None = None
    otherwise: "Evidence | None" = None

    def __str__(self) -> str:
        return f"{self.type}, {'by' if self.grade >= Grade.Usual else 'a guess from'} {self.text}"
