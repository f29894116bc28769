"""The workload types: what a workload is judged as."""

from enum import StrEnum


class WorkloadType(StrEnum):
    """What a workload is. Any other object is left alone."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"
    INTERACTIVE = "interactive"
