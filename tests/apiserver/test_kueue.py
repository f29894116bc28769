"""Kueue's label on what Kueue queues, on a real API server. Its classes are there; no Kueue runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from installation.examples import example_policy
from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .another_webhook import AnotherWebhook
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

QUEUE, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
KUEUES = WorkloadKind("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", ("v1beta2",), "Cluster")
TRAINS = ["torchrun", "train.py"]


@pytest.fixture(scope="module")
def with_kueue(installed: Installed) -> Iterator[Installed]:
    """The webhook that tells Kueue of tiers."""
    name = f"{KUEUES.plural}.{KUEUES.group}"
    add_crds(installed.cluster, crd(KUEUES))
    installed.upgrade(policy=example_policy() | {"kueue": {"workloadPriorityClasses": True}})
    wait_until_in_force(installed)
    yield installed
    installed.upgrade()
    delete_crd(installed.cluster, name)


def template(*command: str, gpus: int = 1) -> Tree:
    pod = gpu_pod("x", gpus)
    pod["spec"]["containers"][0]["command"] = list(command)
    if not gpus:
        del pod["spec"]["containers"][0]["resources"]
    return {"metadata": {"labels": {"app": "x"}}, "spec": pod["spec"] | {"restartPolicy": "Always"}}


def queued(api_version: str, kind: str, **spec: Any) -> Tree:
    metadata = {"name": "work", "labels": {QUEUE: "research"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def runs_once(pod: Tree) -> Tree:
    return {**pod, "spec": pod["spec"] | {"restartPolicy": "Never"}}


TRAINING, SERVING = template(*TRAINS), template("vllm", "serve", "llama")
SELECTOR = {"selector": {"matchLabels": {"app": "x"}}, "replicas": 0}
REPLICAS = {"replicas": 1, "template": TRAINING}
WORKERS = [{"groupName": "gpu", "replicas": 1, "template": TRAINING}]
RAY = {"headGroupSpec": {"template": template("ray", gpus=0)}, "workerGroupSpecs": WORKERS}
TRAINER = {"numNodes": 1, "command": TRAINS, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
REPLICATED = [{"name": "node", "replicas": 1, "template": {"spec": {"template": runs_once(TRAINING)}}}]
WRAPPED = [
    {
        "template": {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "llm"},
            "spec": {"pytorchReplicaSpecs": {"Worker": REPLICAS}},
        }
    }
]
KUBEFLOW = {"PyTorchJob": "pytorch", "TFJob": "tf", "XGBoostJob": "xgb", "PaddleJob": "paddle", "JAXJob": "jax"}
EXPECTED = [
    (queued("batch/v1", "Job", suspend=True, template=runs_once(TRAINING)), "gpu-training"),
    (queued("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=REPLICATED), "gpu-training"),
    *(
        (queued("kubeflow.org/v1", kind, **{f"{name}ReplicaSpecs": {"Worker": REPLICAS}}), "gpu-training")
        for kind, name in KUBEFLOW.items()
    ),
    (queued("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs={"Worker": REPLICAS}), "gpu-training"),
    (
        queued("trainer.kubeflow.org/v1alpha1", "TrainJob", runtimeRef={"name": "torch"}, trainer=TRAINER),
        "gpu-training",
    ),
    (queued("ray.io/v1", "RayJob", entrypoint="python train.py", rayClusterSpec=RAY), "gpu-training"),
    (queued("ray.io/v1", "RayCluster", **RAY), "gpu-training"),
    (queued("workload.codeflare.dev/v1beta2", "AppWrapper", suspend=True, components=WRAPPED), "gpu-training"),
    (
        queued("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate={"workerTemplate": SERVING}),
        "gpu-serving",
    ),
    (queued("apps/v1", "Deployment", template=SERVING, **SELECTOR), "gpu-serving"),
    (queued("apps/v1", "StatefulSet", template=SERVING, **SELECTOR), "gpu-serving"),
]


def wait_until_in_force(webhook: Installed) -> None:
    """Wait until the API server asks about workloads that are to be written to."""
    probe, _ = EXPECTED[0]

    def is_asked() -> bool:
        answer = webhook.create(probe, "default", dry_run=True)
        return CLASS in json.loads(answer.stdout)["metadata"]["labels"]

    webhook.eventually(is_asked, "entries active")


@pytest.mark.parametrize(("workload", "tier"), EXPECTED, ids=[each["kind"] for each, _ in EXPECTED])
def test_a_queued_workload_names_the_class_of_its_tier(
    with_kueue: Installed, namespace: str, workload: Tree, tier: str
) -> None:
    answer = with_kueue.create(workload, namespace)
    assert not answer.code, answer.stderr
    made = json.loads(answer.stdout)
    assert made["metadata"]["labels"][CLASS] == tier
    for each in copied_to(made):
        assert each["metadata"]["labels"][CLASS] == tier
    priority = with_kueue.api.get(f"workloadpriorityclass/{tier}")["value"]
    assert priority == {"gpu-training": 1000, "gpu-serving": 800}[tier]


def copied_to(made: Tree) -> list[Tree]:
    """The templates into which Kueue copies the label at any update."""
    spec = made["spec"]
    if made["kind"] == "LeaderWorkerSet":
        return [spec["leaderWorkerTemplate"]["workerTemplate"]]
    return [spec["template"]] if made["kind"] in ("Deployment", "StatefulSet") else []


def test_a_pod_of_a_group_names_it_itself(with_kueue: Installed, namespace: str) -> None:
    pod = gpu_pod("sweep-0")
    pod["spec"]["containers"][0]["command"] = TRAINS
    pod["metadata"]["labels"] = {QUEUE: "research", "kueue.x-k8s.io/pod-group-name": "sweep"}
    made = json.loads(with_kueue.create(pod, namespace).stdout)
    assert made["metadata"]["labels"][CLASS] == made["spec"]["priorityClassName"] == "gpu-training"
    label = ("label", "pod/sweep-0", f"--namespace={namespace}", "--overwrite")
    refused = with_kueue.cluster.kubectl(*label, f"{CLASS}=gpu-serving", check=False)
    assert "gpu-serving is another tier than that of the pods; write gpu-training" in refused.stderr
    assert not with_kueue.cluster.kubectl(*label, "team=x", check=False).code


def test_two_names_that_contradict_each_other_are_refused(with_kueue: Installed, namespace: str) -> None:
    job = queued("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": REPLICAS})
    job["metadata"]["labels"] |= {"gpu-tiers.dev/tier": "gpu-batch", CLASS: "gpu-training"}
    assert (
        'admission webhook "kubeflow.org.workloads.gpu-tiers.dev" denied the request: '
        "metadata.labels[kueue.x-k8s.io/priority-class]: gpu-training contradicts the tier of the pods, gpu-batch "
        "(the label on PyTorchJob/work says gpu-batch)"
    ) in with_kueue.create(job, namespace).stderr


def test_what_is_not_queued_is_left_alone(with_kueue: Installed, namespace: str) -> None:
    job = queued("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": REPLICAS})
    del job["metadata"]["labels"]
    made = json.loads(with_kueue.create(job, namespace).stdout)
    assert "labels" not in made["metadata"]
    assert made["spec"] == job["spec"]


KUEUES_DEFAULT = [
    {"op": "add", "path": "/metadata/labels/kueue.x-k8s.io~1priority-class", "value": "default"},
    {"op": "add", "path": "/metadata/labels/example.com~1patched", "value": "true"},
]
"""As ApplyDefaultWorkloadPriorityClass of Kueue 0.20 labels a pod that names no class."""


def test_the_default_class_of_kueue_is_replaced_unless_somebody_sent_it(
    with_kueue: Installed, namespace: str, tmp_path: Path
) -> None:
    def created(name: str, *, dry_run: bool = False, **labels: str) -> Tree:
        pod = gpu_pod(name, tier="gpu-training")
        pod["metadata"]["labels"] |= {QUEUE: "research", **labels}
        answer = with_kueue.create(pod, namespace, dry_run=dry_run)
        assert answer.code == 0, answer.stderr
        found: Tree = json.loads(answer.stdout)["metadata"]
        return found

    name = "kueue-mutating-webhook-configuration"
    with AnotherWebhook(with_kueue.cluster, name, namespace, KUEUES_DEFAULT, tmp_path):
        with_kueue.eventually(
            lambda: "example.com/patched" in created("dry", dry_run=True)["labels"], "Kueue's webhook"
        )
        filled_in, sent = created("filled-in"), created("sent", **{CLASS: "default"})
    assert filled_in["labels"][CLASS] == filled_in["annotations"]["gpu-tiers.dev/queue-class"] == "gpu-training"
    assert sent["labels"][CLASS] == "default"
    assert "gpu-tiers.dev/queue-class" not in sent["annotations"]
