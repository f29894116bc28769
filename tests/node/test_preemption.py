"""The reason to install this: a preempted training run goes on where it stopped. Three runs, side by side."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.for_tests import announce
from localcluster.node import NodeCluster

from .demonstration import SAVE_EVERY, Outcome, preempt

pytestmark = pytest.mark.node

FILE_HOOK = {"gpu-tiers.dev/checkpoint": "file", "gpu-tiers.dev/checkpoint-timeout": "30"}
GRACE = 40
"""What 30 seconds to save and the policy's margin of 10 make of a pod's grace period."""
CLASSES = {"low": 1, "high": 2}


@pytest.fixture
def priorities(node: NodeCluster) -> Iterator[None]:
    """Two PriorityClasses, as clusters without gpu-tiers have them."""
    described = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in CLASSES.items()
    ]
    node.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": described}))
    yield
    node.kubectl("delete", "priorityclass", *CLASSES)


def report(config: pytest.Config, what: str, outcome: Outcome) -> None:
    lost, seconds = outcome.steps_lost, outcome.seconds_to_critical
    announce(config, f"preemption: {what:<44} {lost:>4} steps lost  {seconds:5.1f} s to critical running")


@pytest.mark.usefixtures("priorities")
def test_without_gpu_tiers_the_run_falls_back_to_its_last_interval(
    node: NodeCluster, namespace: str, data: Path, pytestconfig: pytest.Config
) -> None:
    outcome = preempt(
        node,
        namespace,
        data,
        "interval_only.py",
        annotations={},
        spec={"priorityClassName": "low"},
        critical={"priorityClassName": "high"},
    )
    report(pytestconfig, "(a) no gpu-tiers, interval checkpoints", outcome)
    assert 0 < outcome.steps_lost <= SAVE_EVERY
    assert outcome.seconds_to_critical > 29, "as PID 1 it never heard SIGTERM, and its 30 s of grace were waited out"
    assert outcome.exit_codes == {137}


@pytest.mark.usefixtures("release")
def test_with_the_hook_no_step_is_lost_and_no_grace_is_waited_out(
    node: NodeCluster, namespace: str, data: Path, pytestconfig: pytest.Config
) -> None:
    outcome = preempt(node, namespace, data, "train.py", annotations=FILE_HOOK)
    report(pytestconfig, "(b) hook, the process ends after saving", outcome)
    assert outcome.steps_lost == 0
    assert outcome.seconds_to_critical < 15
    assert outcome.exit_codes == {143}
    assert outcome.disruptions == {"PreemptionByScheduler"}
    assert "Preempted" in outcome.events


@pytest.mark.usefixtures("release")
def test_a_process_that_trains_on_after_the_save_costs_the_whole_grace(
    node: NodeCluster, namespace: str, data: Path, pytestconfig: pytest.Config
) -> None:
    outcome = preempt(node, namespace, data, "trains_on.py", annotations=FILE_HOOK)
    report(pytestconfig, "(c) hook, the process ignores SIGTERM", outcome)
    assert outcome.steps_lost > 0, "what it does after the save is lost"
    assert outcome.seconds_to_critical > GRACE - 1
    assert outcome.exit_codes == {137}
