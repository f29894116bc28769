"""A TrainJob whose command and GPUs stand in its runtime, on a real API server. No Trainer runs."""

import json
from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

API = "trainer.kubeflow.org/v1alpha1"
NODE = {"name": "node", "image": "mpioperator/nccl-tests", "resources": {"limits": {"nvidia.com/gpu": 2}}}


def runtime(kind: str, *command: str) -> Tree:
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    pod = {"spec": {"containers": [NODE | {"command": list(command)}]}}
    job = {"name": "node", "template": {"metadata": step, "spec": {"template": pod}}}
    spec = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": "benchmark"}, "spec": spec}


def train_job(name: str, nodes: int, **reference: str) -> Tree:
    spec = {"runtimeRef": {"name": "benchmark", **reference}, "trainer": {"numNodes": nodes}}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def benchmark(installed: Installed) -> Iterator[None]:
    installed.api.apply(runtime("ClusterTrainingRuntime", "mpirun", "all_reduce_perf"))
    yield
    installed.api.delete("clustertrainingruntime/benchmark")


@pytest.mark.usefixtures("benchmark")
def test_gpus_of_the_runtime_count_against_the_tier_that_its_command_gives(
    installed: Installed, namespace: str
) -> None:
    installed.tenant("zeta", namespace, quotas=[{"tier": "gpu-batch", "gpus": "4"}])
    try:
        refused = installed.create(train_job("bench", 3), namespace)
        assert "tenant zeta: gpu-batch allows 4 GPUs; this TrainJob asks for 6 in all." in refused.stderr
        applied = installed.create(train_job("bench", 2), namespace)
        assert applied.code == 0
        assert applied.stderr.startswith("Warning: [job-backoff] ")
        pod = gpu_pod("bench-node-0-0", 2)
        owner = {"apiVersion": API, "kind": "TrainJob", "name": "bench", "controller": True}
        pod["metadata"]["ownerReferences"] = [{**owner, "uid": json.loads(applied.stdout)["metadata"]["uid"]}]
        made = json.loads(installed.create(pod, namespace).stdout)
        assert made["spec"]["priorityClassName"] == "gpu-batch"
    finally:
        installed.api.delete("tenantquota/zeta")


@pytest.mark.usefixtures("benchmark")
def test_a_runtime_of_the_namespace_comes_before_one_of_the_cluster(installed: Installed, namespace: str) -> None:
    local = runtime("TrainingRuntime", "torchrun", "train.py")
    assert installed.create(local, namespace).code == 0
    applied = installed.create(train_job("bert", 1, kind="TrainingRuntime"), namespace)
    pod = gpu_pod("bert-node-0-0", 2)
    owner = {"apiVersion": API, "kind": "TrainJob", "name": "bert", "controller": True}
    pod["metadata"]["ownerReferences"] = [{**owner, "uid": json.loads(applied.stdout)["metadata"]["uid"]}]
    made = json.loads(installed.create(pod, namespace).stdout)
    assert made["spec"]["priorityClassName"] == "gpu-training"


def test_a_runtime_that_is_missing_is_said(installed: Installed, namespace: str) -> None:
    applied = installed.create(train_job("lost", 1), namespace)
    assert applied.code == 0
    assert "Warning: [runtime-unread] ClusterTrainingRuntime/benchmark can't be read" in applied.stderr
