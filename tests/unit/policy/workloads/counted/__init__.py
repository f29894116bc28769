"""Workloads of every kind, and how many GPUs their pods hold; a module for each of the table's."""

from tests.unit.policy.workloads.counted import (
    batch,
    core,
    interactive,
    launchers,
    llm_serving,
    serving,
    training,
    wrappers,
)

GPUS = (
    core.GPUS
    | training.GPUS
    | batch.GPUS
    | launchers.GPUS
    | serving.GPUS
    | llm_serving.GPUS
    | interactive.GPUS
    | wrappers.GPUS
)
