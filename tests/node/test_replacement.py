"""A preempted pod's replacement gets in while that pod still ends, though its tenant's quota is full.

Its hook fails. Whoever asks is told who took the GPUs and that nothing was saved, and of another workload why it has no
pods.
"""

from collections.abc import Iterator

import pytest

from demonstration.preemption import GPUS
from demonstration.workloads import Tree, create, gpu_pod
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .hooked_pods import HOOK as CHECKPOINT
from .questions import answer, pages
from .test_controllers import deployment
from .together import SECONDS

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

FAILING = {CHECKPOINT: "exec", f"{CHECKPOINT}-command": "false", f"{CHECKPOINT}-timeout": "1"}
DEAF = "trap '' TERM; while true; do sleep 0.2; done"
"""It hears no SIGTERM, and so holds its GPUs for its whole grace."""
LASTING = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(3600)"
"""It runs until it is deleted."""

LOST = "it did NOT save: its hook failed, or was cut off"


@pytest.fixture
def quota(node: NodeCluster, namespace: str) -> Iterator[None]:
    """A tenant of this namespace, with all GPUs for its batch pods."""
    node.api.apply(tenant_quota(namespace, namespace, quotas=[{"tier": "gpu-batch", "gpus": GPUS}]))
    node.api.wait_for("Ready", f"tenantquota/{namespace}")
    yield
    node.api.delete(f"tenantquota/{namespace}")


def pods(node: NodeCluster, namespace: str) -> list[Tree]:
    """The pods of the Deployment."""
    return list(node.api.get("pods", namespace, labelSelector="app=score")["items"])


def bound(node: NodeCluster, namespace: str, pod: str) -> bool:
    return "nodeName" in node.api.get(f"pod/{pod}", namespace)["spec"]


def ending(pod: Tree) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def messages_of(node: NodeCluster, namespace: str, reason: str) -> list[str]:
    """The messages of a reason's events."""
    found = node.api.get("events", namespace, fieldSelector=f"reason={reason}")["items"]
    return [event["message"] for event in found]


def batch(name: str, gpus: int, annotations: Tree) -> Tree:
    """A Deployment of one pod."""
    pod = gpu_pod("unused", "sh", "-c", DEAF, gpus=gpus, tier="gpu-batch", terminationGracePeriodSeconds=8)
    return deployment(name, pod, annotations)


@pytest.mark.usefixtures("quota")
def test_the_victim_comes_back_and_its_questions_are_answered(node: NodeCluster, namespace: str) -> None:
    create(node, namespace, batch("score", GPUS, FAILING))
    wait_until(lambda: [each["status"]["phase"] for each in pods(node, namespace)] == ["Running"], SECONDS, "its pod")
    (victim,) = (each["metadata"]["name"] for each in pods(node, namespace))
    create(node, namespace, gpu_pod("critical", "python3", "-c", LASTING, gpus=GPUS, tier="gpu-serving"))
    wait_until(lambda: any(ending(each) for each in pods(node, namespace)), SECONDS, "the preemption")
    wait_until(lambda: len(pods(node, namespace)) == 2, SECONDS, "the replacement, beside the pod that ends")
    assert sorted(map(ending, pods(node, namespace))) == [False, True]
    assert messages_of(node, namespace, "FailedCreate") == []
    wait_until(lambda: not any(ending(each) for each in pods(node, namespace)), SECONDS, "the end of the victim")
    wait_until(lambda: bound(node, namespace, "critical"), SECONDS, "the scheduler's second look at the preemptor")
    who_took_its_gpus(node, namespace, victim)
    sentence = why_it_has_no_pods(node, namespace)
    both_on_the_page(node, namespace, victim, sentence)
    node.kubectl("delete", "deployment", "score", "sweep", f"--namespace={namespace}", "--cascade=foreground")
    node.api.delete("pod/critical", namespace=namespace)


def who_took_its_gpus(node: NodeCluster, namespace: str, victim: str) -> None:
    """One command, of the pod or of its workload."""
    wait_until(
        lambda: bool(messages_of(node, namespace, "PreemptionOutcome")), SECONDS, "what is told of the preemption"
    )
    tenant = f"tenant {namespace}"
    evicted = f"{namespace}/{victim} (gpu-batch, {tenant}) was evicted from node-0 for {namespace}/critical"
    lost = f"{evicted} (gpu-serving, {tenant}); {LOST}; it ended after "
    assert f"It is gone: {lost}" in answer(node, namespace, "why-pending", victim)
    waits = answer(node, namespace, "why-pending", "deploy/score")
    assert f"Its last eviction: {lost}" in waits
    assert f"gpu-serving {namespace} {GPUS} {namespace}/critical no: higher priority" in waits


def why_it_has_no_pods(node: NodeCluster, namespace: str) -> str:
    """The tenant's quota is full: the Deployment is admitted, its pods are not. The sentence of that."""
    create(node, namespace, batch("sweep", 1, {}))
    wait_until(lambda: bool(messages_of(node, namespace, "FailedCreate")), SECONDS, "the refusal")
    sentence = f"exceeded quota: tenant {namespace}: gpu-batch is at {GPUS} of {GPUS} GPUs; this pod asks for 1."
    assert f"Its pods are refused at admission: {sentence}" in answer(node, namespace, "why-pending", "deploy/sweep")
    explained = answer(node, namespace, "explain", "deploy/sweep")
    assert "decided by label: the label on the pod says gpu-batch" in explained
    assert f"would be refused now: {sentence}" in explained
    return sentence


def both_on_the_page(node: NodeCluster, namespace: str, victim: str, sentence: str) -> None:
    """Read both pages: that of the leader, and that of the replica that was asked."""
    shown = pages(node)
    row = f"{namespace}/{victim} gpu-batch {namespace}/critical gpu-serving {GPUS} {LOST}"
    assert [row in page for page in shown].count(True) == 1
    assert any(f"{namespace}/Deployment/sweep" in page and sentence in page for page in shown)
