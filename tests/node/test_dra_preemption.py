"""A training gives its DRA device to a critical pod: it saves, ends, and goes on where it stopped.

Meanwhile other pods of its tier ask for the device, and claims of another driver are freed. kube-scheduler then tries
the pods that wait in an order of its own, so in a quiet cluster this would show nothing of the reservation.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from demonstration.cases import HOOK
from demonstration.programs import CRITICAL, ENDS, SAVE_EVERY
from demonstration.steps import last_step, starts
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from installation.examples import example_policy
from localcluster.binaries import BinaryError
from localcluster.for_tests import missing
from localcluster.go_toolchain import GoError
from localcluster.node import NodeCluster
from localcluster.node.components import DRA_DRIVER
from localcluster.waiting import wait_until
from tests.builders.claims import a_claim, a_claim_template, a_device_class

from .release import Release
from .together import SECONDS

pytestmark = [pytest.mark.node, pytest.mark.release]

RESOURCE = "example.com/gpu"
RESERVED = "gpu-tiers.dev/reserved"
TRAINS = f'echo "$GPU_DEVICE_0" >> /data/devices; {ENDS}'
"""The driver tells a container its device by this variable."""
SERVES = 'echo "$GPU_DEVICE_0" >> /data/devices; exec python3 -c "$0"'


@pytest.fixture(scope="module")
def device(node: NodeCluster) -> Iterator[None]:
    """One device on the node, and its class."""
    device_class = a_device_class(DRA_DRIVER, f"device.driver == '{DRA_DRIVER}'", resource=RESOURCE)
    try:
        with node.devices(1):
            node.api.apply(device_class.json())
            yield
            node.api.delete(f"deviceclass/{DRA_DRIVER}")
    except (BinaryError, GoError) as error:
        missing(f"no DRA driver: {error}")


@pytest.fixture(scope="module")
def preempting(node: NodeCluster, release: Release, device: None) -> Iterator[None]:  # noqa: ARG001 - needed, not used
    """A release that evicts for devices."""
    release.upgrade(policy=example_policy() | {"preemption": {"dra": "On"}})
    yield
    release.upgrade()
    node.kubectl("taint", "node", "--all", f"{RESERVED}-", check=False)  # after a test that failed


@pytest.fixture
def watched(node: NodeCluster, namespace: str) -> Iterator[Watched]:
    """The states of the namespace's pods."""
    found = Watched(node, namespace)
    yield found
    found.end()


@contextmanager
def unrest(node: NodeCluster, namespace: str, by: str) -> Iterator[None]:
    """Twice a second a new batch pod asks for the device, and every 4 s a claim of another driver is freed."""
    over = threading.Event()

    def disturb() -> None:
        for number in count():
            create(node, namespace, gpu_pod_by(by, f"fresh-{number}", "true", tier="gpu-batch"))
            if number >= 10:  # those that wait longer are tried more seldom
                node.api.delete(f"pod/fresh-{number - 10}", namespace=namespace, wait=False)
            if number % 8 == 0:
                free_a_claim(node, namespace, f"elsewhere-{number}")
            if over.wait(0.5):
                break

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb)
        try:
            yield
        finally:
            over.set()
        disturbing.result()


def free_a_claim(node: NodeCluster, namespace: str, name: str) -> None:
    """Allocate a claim by hand and free it, as when a pod on another node ends."""
    create(node, namespace, a_claim(name, deviceClassName="elsewhere").unplaced())
    device = {"request": "gpu", "driver": "elsewhere.example.com", "pool": "elsewhere", "device": "only"}
    for allocation in ({"devices": {"results": [device]}}, None):
        status = {"status": {"allocation": allocation}}
        node.api.patch(f"resourceclaim/{name}", status, namespace, part="status")
    node.api.delete(f"resourceclaim/{name}", namespace=namespace, wait=False)


def gpu_pod_by(by: str, name: str, *command: str, tier: str) -> Tree:
    """A pod of one container that asks for the device, by a claim or by the resource of the DeviceClass."""
    pod = gpu_pod(name, *command, gpus=0, tier=tier)
    if by == "claim":
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    else:
        pod["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "1"}}
    return pod


def begin_training(node: NodeCluster, namespace: str, by: str, folder: Path) -> str:
    """Start a Job that trains on the device; return the UID of its pod once it made some steps."""
    publish_code(node, namespace)
    create(node, namespace, a_claim_template("gpu", deviceClassName=DRA_DRIVER).unplaced())
    pod = gpu_pod_by(by, "unused", "sh", "-c", f"{{ {TRAINS}; }} >> /data/steps", tier="gpu-batch")
    create(node, namespace, training_job(keeping_data(pod, folder), HOOK))
    wait_until(lambda: last_step(folder) >= SAVE_EVERY // 2, SECONDS, "some steps of training")
    (found,) = node.api.get("pods", namespace, labelSelector="job-name=training")["items"]
    return str(found["metadata"]["uid"])


def reservations(node: NodeCluster) -> list[str]:
    """Return the tiers for which the node is reserved."""
    taints = [taint for each in node.api.get("nodes")["items"] for taint in each["spec"].get("taints", [])]
    return [taint["value"] for taint in taints if taint["key"] == RESERVED]


def named_in_events(node: NodeCluster, namespace: str, reason: str) -> dict[str, str]:
    """Return the messages of the events of a reason, by the pod."""
    found = node.api.get("events", namespace, fieldSelector=f"reason={reason}")["items"]
    return {each["involvedObject"]["name"]: each["message"] for each in found}


def outcome_of_training(node: NodeCluster, namespace: str) -> str:
    """Wait until the leader tells how the eviction of the training went."""

    def told() -> list[str]:
        outcomes = named_in_events(node, namespace, "PreemptionOutcome")
        return [said for name, said in outcomes.items() if name.startswith("training")]

    wait_until(lambda: bool(told()), SECONDS, "the outcome of the eviction")
    return told()[0]


@pytest.mark.usefixtures("preempting")
@pytest.mark.parametrize("by", ["claim", "resource"])
def test_a_training_gives_its_device_to_a_critical_pod_and_loses_no_step(
    node: NodeCluster, namespace: str, watched: Watched, data: Path, by: str
) -> None:
    victim = begin_training(node, namespace, by, data)

    # 1. A critical pod comes. kube-scheduler evicts nobody for it, so the leader reserves the node for its tier.
    with unrest(node, namespace, by):
        critical = gpu_pod_by(by, "critical", "sh", "-c", SERVES, CRITICAL, tier="gpu-serving")
        create(node, namespace, keeping_data(critical, data))
        wait_until(lambda: reservations(node) == ["gpu-serving"], SECONDS, "the reservation")

        # 2. The training is evicted, saves and ends, and the critical pod runs on its device.
        wait_until((data / "critical").exists, SECONDS, "the critical pod")
        reached = last_step(data)
        wait_until(lambda: not reservations(node), SECONDS, "the end of the reservation")
    assert watched.exit_codes(victim) == {143}, "it ended by itself"
    assert watched.disruptions(victim) == {"PreemptionByGpuTiers"}
    assert "Preempted" in reasons(node, namespace, victim)
    assert "critical" in named_in_events(node, namespace, "NodesReserved")
    outcome = outcome_of_training(node, namespace)
    assert f" was evicted from node-0 for {namespace}/critical (gpu-serving); it saved in " in outcome
    fresh = [name for name in named_in_events(node, namespace, "Scheduled") if name.startswith("fresh")]
    assert not fresh, "pods that the reservation should keep off"

    # 3. The critical pod is done, and the Job's next pod goes on where the first one stopped.
    waiting = [each["metadata"]["name"] for each in node.api.get("pods", namespace)["items"]]
    node.api.delete(*(f"pod/{name}" for name in waiting if name.startswith("fresh")), namespace=namespace)
    node.api.delete("pod/critical", namespace=namespace)
    wait_until(lambda: len(starts(data)) == 2, SECONDS, "the Job's next pod")
    assert starts(data) == [0, reached], "no step lost"
    assert (data / "devices").read_text().split() == ["gpu-0"] * 3, "one device, which all three had"
