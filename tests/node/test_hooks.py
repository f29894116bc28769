"""The `file` hook on a kubelet, in pods of every shape and at every kind of deletion, side by side."""

from collections.abc import Iterator

import pytest

from demonstration.steps import last_step, saved_step
from demonstration.workloads import Tree, container, gpu_pod, new_namespace
from localcluster.node import NodeCluster
from localcluster.node.components import PAUSE_IMAGE
from localcluster.waiting import wait_until

from .release import Release
from .together import SECONDS, Planned, Together, delete

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

FAILED = "FailedPreStopHook"
FILE = "gpu-tiers.dev/checkpoint"
TIMEOUT = "gpu-tiers.dev/checkpoint-timeout"
GRACE = 40
SOON = 25
"""Seconds in which a pod ends that waits for no grace, while others do the same."""
TRAIN = "STEPS=1000000 exec python3 /code/train.py >> /data/steps"
TRAIN_TOO = """\
mkdir -p /data/second
CHECKPOINT=/data/second/state.json STEPS=1000000 exec python3 /code/train.py >> /data/second/steps
"""
IN_A_SHELL = """\
STEPS=1000000 python3 /code/train.py >> /data/steps
code=$?; echo ended with $code; exit $code
"""
DEAF = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
pathlib.Path("/data/steps").write_text("{}\\n")
time.sleep(3600)
"""
"""A program that ends at SIGTERM and knows nothing of a hook."""

LISTENS_FAILED = "import pathlib\npathlib.Path('/run/gpu-tiers/listening').touch()\n" + DEAF
"""One that announces itself and never answers."""


def hooked(name: str, *command: str, seconds: int = 30) -> Tree:
    """A pod of tier gpu-batch with the file hook."""
    return gpu_pod(name, *command, tier="gpu-batch", annotations={FILE: "file", TIMEOUT: str(seconds)})


def training(name: str, *others: Tree) -> Tree:
    """One that trains, with further containers."""
    pod = hooked(name, "sh", "-c", TRAIN)
    pod["spec"]["containers"] += others
    return pod


def evict(node: NodeCluster, namespace: str, name: str) -> None:
    """The eviction API, as the descheduler and others call it."""
    eviction = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{name}"}}}}'
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    node.kubectl("create", f"--raw={path}", "-f", "-", input=eviction)


def drain(node: NodeCluster, namespace: str, name: str) -> None:
    """Drain the pod as an upgrade of the node does; the others on it stay."""
    node.kubectl("label", "pod", name, "drained=yes", f"--namespace={namespace}")
    try:
        node.kubectl("drain", "node-0", "--force", "--delete-emptydir-data", "--pod-selector=drained=yes")
    finally:
        node.kubectl("uncordon", "node-0")


def run_out_of_time(node: NodeCluster, namespace: str, name: str) -> None:
    """Let `maxRuntimeSeconds` run out; nobody deletes the pod before it has ended."""
    limit = '{"spec": {"activeDeadlineSeconds": 1}}'
    node.kubectl("patch", "pod", name, f"--namespace={namespace}", f"--patch={limit}")
    ended = "--for=jsonpath={.status.phase}=Failed"
    node.kubectl("wait", ended, f"pod/{name}", f"--namespace={namespace}", f"--timeout={SECONDS}s")
    delete(node, namespace, name)


STEPS = ("steps",)
PODS = (
    Planned(training("delete"), prints=STEPS),
    Planned(training("evict"), evict, STEPS),
    Planned(training("drain"), drain, STEPS),
    Planned(training("out-of-time"), run_out_of_time, STEPS),
    Planned(hooked("deaf", "python3", "-c", DEAF), prints=STEPS),
    Planned(hooked("failed", "python3", "-c", LISTENS_FAILED, seconds=5), prints=STEPS),
    Planned(hooked("in-a-shell", "sh", "-c", IN_A_SHELL), prints=STEPS),
    Planned(training("two", container("sh", "-c", TRAIN_TOO, gpus=1, name="second")), prints=("steps", "second/steps")),
    Planned(training("shell-less", container(gpus=1, name="shellless", image=PAUSE_IMAGE)), prints=STEPS),
)


@pytest.fixture(scope="module")
def pods(node: NodeCluster, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    assert release.installed, "before the first pod is made"
    with new_namespace(node, "test") as namespace:
        together = Together(node, namespace, tmp_path_factory.mktemp("data"), PODS)
        yield together
        together.end()


@pytest.mark.parametrize("way", ["delete", "evict", "drain"])
def test_every_deletion_saves(way: str, pods: Together) -> None:
    seen = pods[way]
    assert saved_step(seen.folder) == last_step(seen.folder) > 0
    assert seen.seconds < SOON
    assert seen.exit_codes == {143}
    assert FAILED not in seen.events()


def test_a_pod_whose_time_is_over_saves(pods: Together) -> None:
    seen = pods["out-of-time"]
    assert saved_step(seen.folder) == last_step(seen.folder) > 0
    assert seen.exit_codes == {143}
    assert "DeadlineExceeded" in seen.events()
    assert FAILED not in seen.events()


def test_without_a_listener_nothing_is_waited_for(pods: Together) -> None:
    seen = pods["deaf"]
    assert seen.seconds < SOON
    assert seen.exit_codes == {143}
    assert FAILED not in seen.events()


def test_a_save_that_is_never_confirmed_is_reported(pods: Together) -> None:
    seen = pods["failed"]
    wait_until(lambda: FAILED in seen.events(), SECONDS, "the event")
    assert 5 <= seen.seconds < GRACE
    assert seen.exit_codes == {143}, "SIGTERM came as ever"


def test_a_shell_as_the_first_process_ends_with_its_program(pods: Together) -> None:
    seen = pods["in-a-shell"]
    assert saved_step(seen.folder) == last_step(seen.folder) > 0
    assert seen.seconds < SOON, "the shell never hears SIGTERM, and nobody waits for that"
    assert seen.exit_codes == {143}


def test_each_container_with_gpus_saves(pods: Together) -> None:
    seen = pods["two"]
    assert saved_step(seen.folder) == last_step(seen.folder) > 0
    assert saved_step(seen.folder / "second") == last_step(seen.folder / "second") > 0
    assert seen.exit_codes == {143}


def test_an_image_without_a_shell_ends_without_a_save_and_says_so(pods: Together) -> None:
    seen = pods["shell-less"]
    wait_until(lambda: FAILED in seen.events(), SECONDS, "the event")
    assert seen.seconds < SOON
    assert saved_step(seen.folder) == last_step(seen.folder) > 0, "the other container's hook is its own"
