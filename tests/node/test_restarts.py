"""A Job that is preempted again and again trains on, though it says nothing of preemptions."""

from pathlib import Path

import pytest

from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL
from demonstration.steps import last_step, saved_step, starts
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .backoff import forget_the_backoff

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

TIMES = 3
"""The Job's backoffLimit is 0: one preemption that counted would be its end."""
SECONDS = 240
TRAIN = "STEPS=1000000 STEP_SECONDS=0.05 exec python3 /code/train.py >> /data/steps"
FILE_HOOK = {"gpu-tiers.dev/checkpoint": "file", "gpu-tiers.dev/checkpoint-timeout": "30"}


def job(folder: Path) -> Tree:
    """A Job on all GPUs that gives up at the first failure that counts. The webhook writes its podFailurePolicy."""
    pod = gpu_pod("unused", "sh", "-c", TRAIN, gpus=GPUS, tier="gpu-batch")
    careless = training_job(keeping_data(pod, folder), FILE_HOOK)
    del careless["spec"]["podFailurePolicy"]
    return careless


def preempt_once(node: NodeCluster, namespace: str, folder: Path) -> None:
    """Let it train, take its GPUs, and give them back."""
    runs, step = len(starts(folder)), last_step(folder)
    wait_until(lambda: last_step(folder) > step, SECONDS, f"a step of run {runs}")
    critical = gpu_pod("critical", "python3", "-c", CRITICAL, gpus=GPUS, tier="gpu-serving")
    create(node, namespace, keeping_data(critical, folder))
    node.api.wait_for("Ready", "pod/critical", namespace=namespace)
    node.api.delete("pod/critical", namespace=namespace)


def condition(node: NodeCluster, namespace: str, kind: str) -> str:
    """The reason of one of the Job's conditions; empty while it has none."""
    found = node.api.get("job/training", namespace)
    return next((each["reason"] for each in found["status"].get("conditions", []) if each["type"] == kind), "")


def test_a_job_preempted_again_and_again_trains_on(node: NodeCluster, namespace: str, data: Path) -> None:
    publish_code(node, namespace)
    create(node, namespace, job(data))
    wait_until(lambda: len(starts(data)) == 1, SECONDS, "the first run")
    for time in range(1, TIMES + 1):
        preempt_once(node, namespace, data)
        forget_the_backoff(node)
        wait_until(lambda: len(starts(data)) > time, SECONDS, f"run {time + 1}")  # noqa: B023 - called at once
        assert starts(data)[-1] == saved_step(data), "each run begins at the step that the one before it saved"
    assert condition(node, namespace, "Failed") == ""
    assert len(starts(data)) == TIMES + 1
