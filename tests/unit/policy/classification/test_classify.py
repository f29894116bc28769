"""The type of a workload: its kind proves more than a label, a label more than a usual use, and the rest is a guess."""

import pytest

from tests.builders import PodBuilder, WorkloadBuilder, a_deployment, a_pod, a_workload
from webhook.policy.classification.classify import classify
from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kind_table import BUILT_IN


def owner(kind: str, name: str = "x") -> WorkloadBuilder:
    api_version = {
        "PyTorchJob": "kubeflow.org/v1",
        "MPIJob": "kubeflow.org/v2beta1",
        "JAXJob": "kubeflow.org/v1",
        "Notebook": "kubeflow.org/v1",
        "TrainJob": "trainer.kubeflow.org/v1alpha1",
        "JobSet": "jobset.x-k8s.io/v1alpha2",
        "Job": "batch/v1",
        "RayCluster": "ray.io/v1",
        "RayJob": "ray.io/v1",
        "RayService": "ray.io/v1",
        "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
        "InferenceService": "serving.kserve.io/v1beta1",
        "LLMInferenceService": "serving.kserve.io/v1alpha2",
        "StatefulSet": "apps/v1",
        "Pod": "v1",
    }[kind]
    return a_workload(api_version, kind, name)


BY_OWNERS = [
    (["PyTorchJob"], "training, by its kind, PyTorchJob/x"),
    (["MPIJob"], "training, by the usual use of its kind, MPIJob/x"),
    (["Job", "MPIJob"], "training, by the usual use of its kind, MPIJob/x"),
    (["JAXJob"], "training, by the usual use of its kind, JAXJob/x"),
    (["Job", "JobSet", "TrainJob"], "training, by its kind, TrainJob/x"),
    (["StatefulSet", "Notebook"], "interactive, by its kind, Notebook/x"),
    (["RayCluster", "RayService"], "serving, by its kind, RayService/x"),
    (["InferenceService"], "serving, by its kind, InferenceService/x"),
    (["StatefulSet", "LeaderWorkerSet", "LLMInferenceService"], "serving, by its kind, LLMInferenceService/x"),
    (["Job"], "batch, by the usual use of its kind, Job/x"),
    (["Job", "JobSet"], "training, by the usual use of its kind, JobSet/x"),
    (["RayCluster"], "interactive, by the usual use of its kind, RayCluster/x"),
    (["RayCluster", "RayJob"], "batch, by the usual use of its kind, RayJob/x"),
    (
        ["StatefulSet", "Pod", "StatefulSet", "LeaderWorkerSet"],
        "serving, by the usual use of its kind, LeaderWorkerSet/x",
    ),
    (["StatefulSet"], "None"),
]


@pytest.mark.parametrize(("kinds", "evidence"), BY_OWNERS, ids=["<-".join(kinds) for kinds, _ in BY_OWNERS])
def test_the_owners_tell(kinds: list[str], evidence: str) -> None:
    assert str(classify(a_pod().asking().view(), [owner(kind).view() for kind in kinds], BUILT_IN)) == evidence


BY_LABELS = [
    (
        {"training.kubeflow.org/operator-name": "pytorchjob-controller"},
        "training, by its label training.kubeflow.org/operator-name",
    ),
    (  # an MPIJob's pods have it too
        {"training.kubeflow.org/job-name": "x"},
        "training, by the usual use of what writes its label training.kubeflow.org/job-name",
    ),
    ({"notebook-name": "x"}, "interactive, by its label notebook-name"),
    ({"ray.io/cluster": "x", "ray.io/serve": "true"}, "serving, by its label ray.io/serve"),
    ({"ray.io/cluster": "x"}, "None"),
    ({"serving.kserve.io/inferenceservice": "x"}, "serving, by its label serving.kserve.io/inferenceservice"),
    ({"app.kubernetes.io/part-of": "llminferenceservice"}, "serving, by its label app.kubernetes.io/part-of"),
    ({"app.kubernetes.io/part-of": "nim-service"}, "serving, by its label app.kubernetes.io/part-of"),
    ({"app.kubernetes.io/managed-by": "k8s-nim-operator"}, "None"),  # also on what it downloads and builds with
    ({"modelserving.volcano.sh/name": "x"}, "serving, by its label modelserving.volcano.sh/name"),
    ({"app.kubernetes.io/part-of": "prometheus"}, "None"),
    ({"kernel_id": "5f3c"}, "interactive, by its label kernel_id"),
    ({"jenkins/label": "nightly"}, "batch, by its label jenkins/label"),
    (
        {"batch.kubernetes.io/job-name": "x"},
        "batch, by the usual use of what writes its label batch.kubernetes.io/job-name",
    ),
    ({"dask.org/cluster-name": "x"}, "None"),  # of a DaskJob or of somebody's session
]


@pytest.mark.parametrize(("labels", "evidence"), BY_LABELS)
def test_labels_that_only_one_type_s_operator_writes_tell(labels: dict[str, str], evidence: str) -> None:
    assert str(classify(a_pod().asking().labelled(labels).view(), (), BUILT_IN)) == evidence


def test_a_kind_is_believed_before_a_label() -> None:
    pod = a_pod().asking().labelled({"training.kubeflow.org/operator-name": "pytorchjob-controller"})
    assert str(classify(pod.view(), [owner("Notebook").view()], BUILT_IN)) == "interactive, by its kind, Notebook/x"


GUESSES = [
    (a_pod().running("jupyter-lab"), 'interactive, a guess from its command ("jupyter-lab")'),
    (a_pod().running("torchrun", "main.py"), 'training, a guess from its command ("torchrun")'),
    (a_pod().running("torchrun", "serve.py"), 'serving, a guess from its command ("serve.py")'),
    (a_pod().running("python", image="vllm/vllm-openai@sha256:0a"), 'serving, a guess from its image ("vllm")'),
    (a_pod().running("python", image="registry:5000/x@sha256:7e5jupyter"), "None"),
    (a_pod("bert-finetune"), 'training, a guess from its name ("finetune")'),
    (a_pod("trainspotting"), "None"),
    (a_pod("").having("metadata.generateName", "train-"), 'training, a guess from its name ("train")'),
    (a_pod("train-bvllm").having("metadata.generateName", "train-"), 'training, a guess from its name ("train")'),
    (a_pod().running("sh", "-c", "x" * 5000 + " torchrun"), "None"),
]


@pytest.mark.parametrize(("pod", "evidence"), GUESSES)
def test_commands_images_and_names_are_guessed_from(pod: PodBuilder, evidence: str) -> None:
    found = classify(pod.view(), (), BUILT_IN)
    assert str(found) == evidence
    assert found is None or found.grade < Grade.Usual


def test_a_deployment_s_name_is_guessed_from_too() -> None:
    found = classify(a_pod().asking().view(), [a_deployment(name="chat-server").view()], BUILT_IN)
    assert str(found) == 'serving, a guess from its name ("server")'
