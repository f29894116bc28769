"""What a kubelet makes of the `file` hook, in pods of every shape and at every kind of deletion."""

from pathlib import Path

import pytest

from demonstration.steps import last_step, saved_step
from demonstration.workloads import Tree, container, gpu_pod
from localcluster.node import NodeCluster
from localcluster.node.components import PAUSE_IMAGE

from .one_pod import DEAF, LISTENS_IN_VAIN, End, run_and_end

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

FILE = "gpu-tiers.dev/checkpoint"
TIMEOUT = "gpu-tiers.dev/checkpoint-timeout"
GRACE = 40
SOON = 15
"""Seconds in which a pod ends that waits for no grace."""
TRAIN = "STEPS=1000000 exec python3 /code/train.py >> /data/steps"
TRAIN_TOO = """\
mkdir -p /data/second
CHECKPOINT=/data/second/state.json STEPS=1000000 exec python3 /code/train.py >> /data/second/steps
"""


class Ends:
    """Ends one pod in a namespace, in different ways."""

    def __init__(self, node: NodeCluster, namespace: str) -> None:
        self.node = node
        self.namespace = namespace

    def delete(self, name: str) -> None:
        self.node.kubectl("delete", "pod", name, f"--namespace={self.namespace}", "--wait=false")

    def evict(self, name: str) -> None:
        """The eviction API, as the descheduler and others call it."""
        eviction = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{name}"}}}}'
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
        self.node.kubectl("create", f"--raw={path}", "-f", "-", input=eviction)

    def drain(self, name: str) -> None:
        self.node.kubectl("label", "pod", name, "drained=yes", f"--namespace={self.namespace}")
        try:
            self.node.kubectl("drain", "node-0", "--force", "--delete-emptydir-data", "--pod-selector=drained=yes")
        finally:
            self.node.kubectl("uncordon", "node-0")


@pytest.fixture
def ends(node: NodeCluster, namespace: str) -> Ends:
    return Ends(node, namespace)


def hooked(*command: str, seconds: int = 30, gpus: int = 1) -> Tree:
    """A pod of tier gpu-batch with the file hook."""
    asked = {FILE: "file", TIMEOUT: str(seconds)}
    return gpu_pod("training", *command, gpus=gpus, tier="gpu-batch", annotations=asked)


@pytest.mark.parametrize("way", ["delete", "evict", "drain"])
def test_every_deletion_saves(way: str, ends: Ends, data: Path) -> None:
    end = run_and_end(ends.node, ends.namespace, hooked("sh", "-c", TRAIN), data, getattr(ends, way))
    assert saved_step(data) == last_step(data) > 0
    assert end.seconds < SOON
    assert end.exit_codes == {143}
    assert "FailedPreStopHook" not in end.events


def test_without_a_listener_nothing_is_waited_for(ends: Ends, data: Path) -> None:
    end = run_and_end(ends.node, ends.namespace, hooked("python3", "-c", DEAF), data, ends.delete)
    assert end.seconds < SOON
    assert end.exit_codes == {143}
    assert "FailedPreStopHook" not in end.events


def test_a_save_that_is_never_confirmed_is_told(ends: Ends, data: Path) -> None:
    pod = hooked("python3", "-c", LISTENS_IN_VAIN, seconds=5)
    end = run_and_end(ends.node, ends.namespace, pod, data, ends.delete)
    assert "FailedPreStopHook" in end.events
    assert 5 <= end.seconds < GRACE
    assert end.exit_codes == {143}, "SIGTERM came as ever"


def test_a_shell_as_the_first_process_ends_with_its_program(ends: Ends, data: Path) -> None:
    shell = "STEPS=1000000 python3 /code/train.py >> /data/steps; code=$?; echo ended with $code; exit $code"
    end = run_and_end(ends.node, ends.namespace, hooked("sh", "-c", shell), data, ends.delete)
    assert saved_step(data) == last_step(data) > 0
    assert end.seconds < SOON, "the shell never hears SIGTERM, and nobody waits for that"
    assert end.exit_codes == {143}


def test_each_container_with_gpus_saves(ends: Ends, data: Path) -> None:
    pod = hooked("sh", "-c", TRAIN)
    pod["spec"]["containers"].append(container("sh", "-c", TRAIN_TOO, gpus=1, name="second"))
    end = run_and_end(ends.node, ends.namespace, pod, data, ends.delete, prints=("steps", "second/steps"))
    assert saved_step(data) == last_step(data) > 0
    assert saved_step(data / "second") == last_step(data / "second") > 0
    assert end.exit_codes == {143}


def test_an_image_without_a_shell_ends_without_a_save_and_says_so(ends: Ends, data: Path) -> None:
    pod = hooked("sh", "-c", TRAIN)
    pod["spec"]["containers"].append(container(gpus=1, name="shellless", image=PAUSE_IMAGE))
    end: End = run_and_end(ends.node, ends.namespace, pod, data, ends.delete)
    assert "FailedPreStopHook" in end.events
    assert end.seconds < SOON
    assert saved_step(data) == last_step(data) > 0, "the other container's hook is its own"
