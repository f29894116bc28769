"""A preempted pod's replacement gets in while that pod still ends, though its tenant's quota is full."""

import json
from collections.abc import Iterator

import pytest

from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL
from demonstration.workloads import Tree, create, gpu_pod
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .test_controllers import deployment
from .together import SECONDS

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

DEAF = "trap '' TERM; while true; do sleep 0.2; done"
"""It hears no SIGTERM, and so holds its GPUs for its whole grace."""


@pytest.fixture
def quota(node: NodeCluster, namespace: str) -> Iterator[None]:
    """A tenant of this namespace, with all GPUs for its batch pods."""
    node.apply(json.dumps(tenant_quota(namespace, namespace, quotas=[{"tier": "gpu-batch", "gpus": GPUS}])))
    node.kubectl("wait", "--for=condition=Ready", f"tenantquota/{namespace}", f"--timeout={SECONDS}s")
    yield
    node.kubectl("delete", "tenantquota", namespace)


def pods(node: NodeCluster, namespace: str) -> list[Tree]:
    """The pods of the Deployment."""
    found: list[Tree] = node.kubectl(
        "get", "pods", "--selector=app=score", f"--namespace={namespace}", "--output=json"
    ).json()["items"]
    return found


def ending(pod: Tree) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def refused(node: NodeCluster, namespace: str) -> list[str]:
    """What the ReplicaSet was refused."""
    command = ("get", "events", f"--namespace={namespace}", "--field-selector=reason=FailedCreate", "--output=json")
    return [event["message"] for event in node.kubectl(*command).json()["items"]]


@pytest.mark.usefixtures("quota")
def test_the_victim_comes_back(node: NodeCluster, namespace: str) -> None:
    pod = gpu_pod("unused", "sh", "-c", DEAF, gpus=GPUS, tier="gpu-batch", terminationGracePeriodSeconds=8)
    create(node, namespace, deployment("score", pod, {}))
    wait_until(lambda: [each["status"]["phase"] for each in pods(node, namespace)] == ["Running"], SECONDS, "its pod")
    create(node, namespace, gpu_pod("critical", "python3", "-c", CRITICAL, gpus=GPUS, tier="gpu-serving"))
    wait_until(lambda: any(ending(each) for each in pods(node, namespace)), SECONDS, "the preemption")
    wait_until(lambda: len(pods(node, namespace)) == 2, SECONDS, "the replacement, beside the pod that ends")
    assert sorted(map(ending, pods(node, namespace))) == [False, True]
    assert refused(node, namespace) == []
    wait_until(lambda: not any(ending(each) for each in pods(node, namespace)), SECONDS, "the end of the victim")
    node.kubectl("delete", "deployment", "score", f"--namespace={namespace}", "--cascade=foreground")
    node.kubectl("delete", "pod", "critical", f"--namespace={namespace}")
