"""An outage of all replicas in Enforce: what is refused, what is not, and what comes back by itself."""

import time
from collections.abc import Iterator

import pytest

from demonstration.workloads import Tree, container, create, gpu_pod, training_job
from installation.helm import RELEASE
from localcluster.for_tests import announce
from localcluster.node import NodeCluster
from localcluster.node.components import PAUSE_IMAGE
from localcluster.waiting import wait_until

from .creates import Creates, longest_gap, refused
from .release import NAMESPACE, Release
from .stored import only_gpu_pods_noticed

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

SOME = 15
DELETIONS = 2
"""One in order, one by force."""
NOBODY_ANSWERS = 'failed calling webhook "pods.validate.gpu-tiers.dev"'
CAME_BACK_BETWEEN_THE_TWO = "or the mutating webhook was not reached"


def deployment(name: str, pod: Tree, replicas: int = 1) -> Tree:
    """A Deployment of these pods."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"] | {"restartPolicy": "Always"}},
        },
    }


def report(config: pytest.Config, what: str, creates: Creates) -> None:
    no, gap = len(refused(creates.gpu)), longest_gap(creates.gpu)
    counts = f"{no} of {len(creates.gpu)} GPU pods refused, none accepted for {gap:.1f} s"
    announce(config, f"outage: {what:<32} {counts}; of {len(creates.other)} others none refused")


@pytest.fixture
def coredns(node: NodeCluster) -> Iterator[str]:
    """A Deployment in kube-system that the cluster can't live without."""
    first = {"containers": [{"name": "coredns", "image": PAUSE_IMAGE}], "priorityClassName": "system-cluster-critical"}
    create(node, "kube-system", deployment("coredns", {"spec": first}))
    node.kubectl("rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=240s")
    yield "deployment/coredns"
    node.api.delete("deployment/coredns", namespace="kube-system")


def test_deleting_its_pods_again_and_again_lets_nothing_pass(
    release: Release, node: NodeCluster, namespace: str, pytestconfig: pytest.Config
) -> None:
    with Creates(node, namespace) as creates:
        for number in range(DELETIONS):
            creates.until_accepted(SOME)
            by_force = ("--force", "--grace-period=0") if number % 2 else ()
            node.kubectl("delete", "pods", "--all", NAMESPACE, *by_force)
            release.wait_for_pods()
        creates.until_accepted(SOME)
    report(pytestconfig, f"{DELETIONS} deletions of its pods", creates)
    assert refused(creates.gpu)
    only_gpu_pods_noticed(node, creates, {NOBODY_ANSWERS, CAME_BACK_BETWEEN_THE_TWO})


def test_after_a_power_cut_all_come_back_by_themselves(
    release: Release, node: NodeCluster, namespace: str, coredns: str, pytestconfig: pytest.Config
) -> None:
    node.stop_kubelet()
    node.kill_containers()
    for where in (NAMESPACE, "--namespace=kube-system"):
        node.kubectl("delete", "pods", "--all", where, "--force", "--grace-period=0")
    wait_until(lambda: NOBODY_ANSWERS in release.asked(gpu_pod("asked"), namespace).stderr, 240, "a refusal")
    pod = gpu_pod("unused") | {"spec": {"containers": [container(gpus=1, image=PAUSE_IMAGE)], "restartPolicy": "Never"}}
    create(node, namespace, deployment("server", pod, replicas=2))
    create(node, namespace, training_job(pod, {}))
    for kind in ("ReplicaSet", "Job"):
        wait_until(lambda: NOBODY_ANSWERS in failed_creates(node, namespace, kind), 240, f"a {kind}'s event")  # noqa: B023
    assert not pods_of(node, namespace)
    for exempt in (RELEASE, "kube-system"):
        wait_until(lambda: bool(pods_of(node, exempt)), 240, f"a new pod in {exempt}")  # noqa: B023 - called at once

    since = time.monotonic()
    node.start_kubelet()
    node.kubectl("rollout", "status", coredns, "--namespace=kube-system", "--timeout=240s")
    release.wait_for_pods()
    ready = time.monotonic()
    wait_until(lambda: len(pods_of(node, namespace)) == 3, 300, "the pods that had been refused")
    there = time.monotonic()
    what = f"the webhook after {ready - since:.1f} s, the refused pods {there - ready:.1f} s later"
    announce(pytestconfig, f"outage: a kubelet starts after a power cut: {what}")
    node.kubectl("wait", "--for=condition=Ready", "pods", "--all", f"--namespace={namespace}", "--timeout=240s")


def pods_of(node: NodeCluster, namespace: str) -> set[str]:
    """The uids of a namespace's pods."""
    found = node.api.get("pods", namespace)["items"]
    return {each["metadata"]["uid"] for each in found}


def failed_creates(node: NodeCluster, namespace: str, kind: str) -> str:
    """Return the controllers' messages about pods of that kind that they could not create."""
    about = f"reason=FailedCreate,involvedObject.kind={kind}"
    found = node.api.get("events", namespace, fieldSelector=about)["items"]
    return " ".join(each["message"] for each in found)
