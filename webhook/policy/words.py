"""What a workload may be: its kind in the API, and the workload type that it is judged as."""

from enum import StrEnum
from typing import NamedTuple


class WorkloadType(StrEnum):
    """What a workload is."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"
    INTERACTIVE = "interactive"


class Kind(NamedTuple):
    """A kind of object; group and kind go together, for Job and PodGroup exist in several groups."""

    group: str
    kind: str

    def __str__(self) -> str:
        return self.kind
