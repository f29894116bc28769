"""What pods of a tier tell autoscalers, on a real API server; of the autoscalers only what they leave there exists."""

import json
from collections.abc import Iterator

import pytest

from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .asking import lint, ours, run
from .installed import Installed, Tree, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver

KARPENTER, CLUSTER_AUTOSCALER = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
NODE_POOLS = WorkloadKind("karpenter.sh", "NodePool", "nodepools", ("v1",), "Cluster")
STATUS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
    "data": {"status": "autoscalerStatus: Running"},
}


@pytest.fixture(scope="module")
def telling(installed: Installed) -> Iterator[Installed]:
    with installed.policy_with(autoscaler={"gpu-training": "24h", "gpu-batch": "Allow"}):
        yield installed


def pod_of(installed: Installed, namespace: str, job: Tree) -> Tree:
    """The pod that the Job controller makes."""
    answer = installed.create(job, namespace)
    assert not answer.code, answer.stderr

    def pods() -> list[Tree]:
        items: list[Tree] = installed.get("pods", namespace)["items"]
        return [each for each in items if each["metadata"]["name"].startswith(job["metadata"]["name"])]

    installed.eventually(lambda: bool(pods()), "a pod")
    return pods()[0]


def told(pod: Tree) -> Tree:
    notes = pod["metadata"].get("annotations") or {}
    return {key: notes[key] for key in (KARPENTER, CLUSTER_AUTOSCALER) if key in notes}


def explained(installed: Installed, namespace: str, pod: Tree) -> str:
    """The line about autoscalers."""
    lines = run(installed, "explain", pod["metadata"]["name"], f"--namespace={namespace}").stdout.splitlines()
    return " ".join(line.removeprefix("autoscaler").strip() for line in lines if line.startswith("autoscaler "))


def test_a_job_of_training_is_protected_for_a_day(telling: Installed, namespace: str) -> None:
    pod = pod_of(telling, namespace, gpu_job("train", 1))
    assert told(pod) == {KARPENTER: "24h", CLUSTER_AUTOSCALER: "false"}
    assert explained(telling, namespace, pod) == f"24h: {KARPENTER}=24h, {CLUSTER_AUTOSCALER}=false"


def test_what_the_template_says_stays(telling: Installed, namespace: str) -> None:
    job = gpu_job("train", 1)
    job["spec"]["template"]["metadata"] = {"annotations": {KARPENTER: "false"}}
    pod = pod_of(telling, namespace, job)
    assert told(pod) == {KARPENTER: "false", CLUSTER_AUTOSCALER: "false"}
    assert explained(telling, namespace, pod) == (
        f"24h: {CLUSTER_AUTOSCALER}=false; the pod's own {KARPENTER}=false stays"
    )


def test_a_job_of_batch_may_go_and_a_pod_alone_may_not(telling: Installed, namespace: str) -> None:
    job = gpu_job("sweep", 1)
    job["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-batch"}
    assert told(pod_of(telling, namespace, job)) == {CLUSTER_AUTOSCALER: "true"}
    assert told(json.loads(telling.create(gpu_pod("alone", 1, tier="gpu-batch"), namespace).stdout)) == {}


def test_a_pod_without_a_tier_tells_nothing(telling: Installed, namespace: str) -> None:
    assert told(json.loads(telling.create(gpu_pod("web", 0), namespace).stdout)) == {}


def test_an_older_pod_of_the_tier_lacks_them(telling: Installed, namespace: str) -> None:
    pod = json.loads(telling.create(gpu_pod("before", 1, tier="gpu-serving"), namespace).stdout)
    assert told(pod) == {}
    with telling.policy_with(autoscaler={"gpu-serving": "Protect"}):
        line = f"Protect: {KARPENTER}=true, {CLUSTER_AUTOSCALER}=false; the pod lacks these annotations"
        assert explained(telling, namespace, pod) == line


def recommended(installed: Installed) -> list[str]:
    return [line for line in ours(lint(installed, "--output=json"), "tier gpu-training") if "may remove" in line]


def test_lint_recommends_it_where_an_autoscaler_is(telling: Installed) -> None:
    with telling.policy_with(autoscaler={}):
        assert recommended(telling) == []
        add_crds(telling.cluster, crd(NODE_POOLS))
        telling.api.create(STATUS, "kube-system")
        try:
            (line,) = recommended(telling)
            assert line.startswith(
                "info: training-unprotected: tier gpu-training: training gets it, and Karpenter and "
            )
            with telling.policy_with(autoscaler={"gpu-training": "Allow"}):
                assert recommended(telling) == []
        finally:
            telling.api.delete("configmap/cluster-autoscaler-status", namespace="kube-system")
            delete_crd(telling.cluster, f"{NODE_POOLS.plural}.{NODE_POOLS.group}")
