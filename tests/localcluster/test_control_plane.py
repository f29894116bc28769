"""What the other tests rely on: pods live on fake nodes, where the real scheduler puts them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from localcluster import ControlPlane, KubectlError
from localcluster.components import FAKE_NODE_ADDRESS
from localcluster.versions import kubernetes
from localcluster.waiting import wait_until

pytestmark = pytest.mark.apiserver

AddNode = Callable[[int], str]


@pytest.fixture
def add_node(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[AddNode]:
    """Fake nodes that only this test's pods run on; they go with the test, and all pods with them."""
    added: list[str] = []

    def add(gpus: int) -> str:
        name = f"{request.node.name.replace('_', '-')[:50]}-{len(added)}"
        added.append(name)
        cluster.add_node(name, gpus=gpus, labels={"for": "the-test"})
        return name

    yield add
    cluster.kubectl("delete", "pods", "--all", "--namespace=default")
    cluster.kubectl("delete", "node", *added)


def pod(name: str, gpus: int) -> str:
    container = {"name": "main", "image": "example.com/program", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    return json.dumps(tree)


def get(cluster: ControlPlane, *what: str) -> Any:
    return cluster.kubectl("get", *what, "--output=json").json()


def runs(cluster: ControlPlane, name: str) -> None:
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")


def test_the_api_server_has_the_version_that_was_asked_for(cluster: ControlPlane, minor: str) -> None:
    assert cluster.version == kubernetes(minor).version
    assert cluster.kubectl("version", "--output=json").json()["clientVersion"]["gitVersion"] == cluster.version


def test_pod_groups_and_device_claims_are_served(cluster: ControlPlane, minor: str) -> None:
    served = cluster.kubectl("api-versions").stdout.split()
    assert set(kubernetes(minor).runtime_config) <= set(served)
    assert "resource.k8s.io/v1" in served
    assert "podgroups" in cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io", "--output=name").stdout


def test_a_pod_runs_on_a_fake_node_until_it_is_deleted(cluster: ControlPlane, add_node: AddNode) -> None:
    node = add_node(4)
    cluster.apply(pod("worker", gpus=4))
    runs(cluster, "worker")
    found = get(cluster, "pod", "worker")
    assert (found["spec"]["nodeName"], found["status"]["phase"]) == (node, "Running")
    assert found["status"]["hostIP"] == FAKE_NODE_ADDRESS
    assert found["status"]["containerStatuses"][0]["ready"] is True
    cluster.kubectl("delete", "pod", "worker", "--timeout=20s")
    assert cluster.kubectl("get", "pod", "worker", "--ignore-not-found").stdout == ""


def test_a_pod_that_asks_for_more_gpus_than_there_are_waits(cluster: ControlPlane, add_node: AddNode) -> None:
    add_node(4)
    cluster.apply(pod("too-big", gpus=8))
    wait_until(lambda: "Insufficient nvidia.com/gpu" in events(cluster, "FailedScheduling"), 30, "the scheduler's word")
    assert get(cluster, "pod", "too-big")["status"]["phase"] == "Pending"


def test_what_kubectl_refuses_reads_as_kubectl_says_it(cluster: ControlPlane) -> None:
    with pytest.raises(KubectlError, match=r"kubectl get pod nobody \(exit 1\): Error from server \(NotFound\)"):
        cluster.kubectl("get", "pod", "nobody")
    assert "NotFound" in cluster.kubectl("get", "pod", "nobody", check=False).stderr


def events(cluster: ControlPlane, reason: str) -> str:
    found = get(cluster, "events", f"--field-selector=reason={reason}")
    return "\n".join(event.get("message") or event.get("note", "") for event in found["items"])
