"""The workload types."""

from enum import StrEnum


class WorkloadType(StrEnum):
    """The types that a workload is judged as. Any other object is left alone."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"
    INTERACTIVE = "interactive"
