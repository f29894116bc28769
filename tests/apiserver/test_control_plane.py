"""The base of the other tests: pods live on fake nodes, where the real scheduler puts them."""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from localcluster import Cluster, ControlPlane, KubectlError
from localcluster.components import FAKE_NODE_ADDRESS
from localcluster.versions import DEFAULT_KUBERNETES, kubernetes
from localcluster.waiting import wait_until

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("minor")]

AddNode = Callable[[int], str]
OURS = {"for": "the-test"}


@pytest.fixture
def minor(cluster: Cluster) -> str:
    if not isinstance(cluster, ControlPlane):
        pytest.skip("somebody's cluster is not what these tests are about")
    return os.environ.get("K8S") or DEFAULT_KUBERNETES


@pytest.fixture
def add_node(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[AddNode]:
    """Fake nodes that only this test's pods run on; they go with the test, and all pods with them."""
    added: list[str] = []

    def add(gpus: int) -> str:
        name = f"{request.node.name.replace('_', '-')[:50]}-{len(added)}"
        added.append(name)
        cluster.add_node(name, gpus=gpus, labels=OURS)
        return name

    yield add
    cluster.kubectl("delete", "pods", "--selector=for=the-test", "--namespace=default")
    cluster.kubectl("delete", "node", *added)


def pod(name: str, gpus: int) -> str:
    container = {"name": "main", "image": "example.com/program", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    spec = {"containers": [container], "nodeSelector": OURS}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": OURS}, "spec": spec})


def get(cluster: Cluster, *what: str) -> Any:
    return cluster.kubectl("get", *what, "--output=json").json()


def runs(cluster: Cluster, name: str) -> None:
    cluster.api.wait_for("Ready", f"pod/{name}")


def test_the_api_server_has_the_version_that_was_asked_for(cluster: Cluster, minor: str) -> None:
    assert cluster.version == kubernetes(minor).version
    assert cluster.kubectl("version", "--output=json").json()["clientVersion"]["gitVersion"] == cluster.version


def test_pod_groups_and_device_claims_are_served(cluster: Cluster, minor: str) -> None:
    served = cluster.kubectl("api-versions").stdout.split()
    assert set(kubernetes(minor).runtime_config) <= set(served)
    assert "resource.k8s.io/v1" in served
    assert "podgroups" in cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io", "--output=name").stdout


def test_a_pod_runs_on_a_fake_node_until_it_is_deleted(cluster: Cluster, add_node: AddNode) -> None:
    node = add_node(4)
    cluster.apply(pod("worker", gpus=4))
    runs(cluster, "worker")
    found = get(cluster, "pod", "worker")
    assert (found["spec"]["nodeName"], found["status"]["phase"]) == (node, "Running")
    assert found["status"]["hostIP"] == FAKE_NODE_ADDRESS
    assert found["status"]["containerStatuses"][0]["ready"] is True
    cluster.kubectl("delete", "pod", "worker", "--timeout=240s")
    assert cluster.kubectl("get", "pod", "worker", "--ignore-not-found").stdout == ""


def test_a_pod_that_asks_for_more_gpus_than_there_are_waits(cluster: Cluster, add_node: AddNode) -> None:
    add_node(4)
    cluster.apply(pod("too-big", gpus=8))
    wait_until(
        lambda: "Insufficient nvidia.com/gpu" in events(cluster, "FailedScheduling"), 240, "the scheduler's word"
    )
    assert get(cluster, "pod", "too-big")["status"]["phase"] == "Pending"


def test_what_kubectl_refuses_reads_as_kubectl_says_it(cluster: Cluster) -> None:
    with pytest.raises(KubectlError, match=r"kubectl get pod nobody \(exit 1\): Error from server \(NotFound\)"):
        cluster.kubectl("get", "pod", "nobody")
    assert "NotFound" in cluster.kubectl("get", "pod", "nobody", check=False).stderr


def events(cluster: Cluster, reason: str) -> str:
    found = get(cluster, "events", f"--field-selector=reason={reason}")
    return "\n".join(event.get("message") or event.get("note", "") for event in found["items"])
