"""Workloads of the kinds in webhook/policy/workloads/kinds/training.yaml, and how many GPUs their pods hold."""

from tests.builders import WorkloadBuilder, a_pytorchjob, a_workload
from tests.builders.operators import CPU_POD, GPU_POD, LIMITS, a_trainjob

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a PyTorchJob": (a_pytorchjob(workers=4), 4),
    "a PyTorchJob whose replica type is written small": (
        a_workload(
            "kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"worker": {"replicas": 2, "template": GPU_POD}}
        ),
        2,
    ),
    "an MPIJob with a launcher": (
        a_workload(
            "kubeflow.org/v2beta1",
            "MPIJob",
            mpiReplicaSpecs={"Launcher": {"template": CPU_POD}, "Worker": {"replicas": 2, "template": GPU_POD}},
        ),
        2,
    ),
    "a TrainJob": (a_trainjob(numNodes=2, resourcesPerNode=LIMITS), 16),
    "a TrainJob of one node": (a_trainjob(resourcesPerNode={"requests": {"nvidia.com/gpu": "8"}}), 8),
    "a TrainJob that leaves its resources to the runtime": (a_trainjob(numNodes=2), 0),
    "an ElasticJob": (
        a_workload(
            "elastic.iml.github.io/v1alpha1", "ElasticJob", replicaSpecs={"w": {"replicas": 2, "template": GPU_POD}}
        ),
        2,
    ),
    "an elastic TrainingJob": (
        a_workload(
            "kai.alibabacloud.com/v1alpha1",
            "TrainingJob",
            etReplicaSpecs={"worker": {"replicas": 3, "template": GPU_POD}},
        ),
        3,
    ),
    "a HyperPodPyTorchJob": (
        a_workload(
            "sagemaker.amazonaws.com/v1",
            "HyperPodPyTorchJob",
            replicaSpecs=[{"name": "pods", "replicas": 3, "template": GPU_POD}],
        ),
        3,
    ),
    "a Katib Experiment of Jobs": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount=3,
            trialTemplate={"trialSpec": {"kind": "Job", "spec": {"template": GPU_POD}}},
        ),
        3,
    ),
    "a Katib Experiment that leaves it to Katib how many trials run at once": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            trialTemplate={"trialSpec": {"kind": "Job", "spec": {"template": GPU_POD}}},
        ),
        3,
    ),
    "a Katib Experiment of two trials of PyTorch": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount=4,
            maxTrialCount=2,
            trialTemplate={
                "trialSpec": {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": GPU_POD}}}}
            },
        ),
        4,
    ),
    "a Katib Experiment of TrainJobs": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount=2,
            trialTemplate={"trialSpec": {"spec": {"trainer": {"numNodes": 2, "resourcesPerNode": LIMITS}}}},
        ),
        32,
    ),
    "a Katib Trial of PyTorch": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Trial",
            runSpec={"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": GPU_POD}}}},
        ),
        2,
    ),
}
