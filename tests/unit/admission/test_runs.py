"""The run of a pod, GPU_TIERS_RUN, for each kind of the table: by it a pod knows the checkpoints of those before it.

A kind that has none is a decision too: its pods save, and none resumes what another saved.
"""

from itertools import pairwise

import pytest

from tests.builders import PodBuilder, WorkloadBuilder, a_job, a_pod, a_workload
from tests.builders.world import FakeApi
from webhook.objects.group_kind import GroupKind
from webhook.policy.workloads.kind_table import BUILT_IN

LISTENS = {"gpu-tiers.dev/checkpoint": "listen"}

RUNS = {
    # Kubernetes' own
    "Job.batch": "Job",
    "Job.batch < CronJob.batch": "Job",
    "Job.batch < ScaledJob.keda.sh": "Job",
    "Pod": "",
    "BroadcastJob.apps.kruise.io": "",  # a program on each node, and none of them is another's next try
    # Kubeflow's training operator: it makes pods, and so does the MPI operator but for the launcher's
    "PyTorchJob.kubeflow.org": "PyTorchJob",
    "TFJob.kubeflow.org": "TFJob",
    "XGBoostJob.kubeflow.org": "XGBoostJob",
    "JAXJob.kubeflow.org": "JAXJob",
    "PaddleJob.kubeflow.org": "PaddleJob",
    "MPIJob.kubeflow.org": "MPIJob",
    "Job.batch < MPIJob.kubeflow.org": "MPIJob",
    # Katib: each trial is a program with other parameters
    "Job.batch < Trial.kubeflow.org < Experiment.kubeflow.org": "Job",
    "PyTorchJob.kubeflow.org < Trial.kubeflow.org < Experiment.kubeflow.org": "PyTorchJob",
    "Job.batch < JobSet.jobset.x-k8s.io < TrainJob.trainer.kubeflow.org < Trial.kubeflow.org": "TrainJob",
    # JobSet, and Kubeflow's Trainer, which makes JobSets
    "Job.batch < JobSet.jobset.x-k8s.io": "JobSet",
    "Job.batch < JobSet.jobset.x-k8s.io < TrainJob.trainer.kubeflow.org": "TrainJob",
    # Ray: a cluster that somebody works on runs one program after another
    "RayCluster.ray.io": "",
    "RayCluster.ray.io < RayJob.ray.io": "RayJob",
    "Job.batch < RayJob.ray.io": "RayJob",  # the submitter
    "RayCluster.ray.io < RayJob.ray.io < RayCronJob.ray.io": "RayJob",
    "RayCluster.ray.io < RayService.ray.io": "",
    "RayCluster.ray.io < RayClusterReplicaSet.orchestration.aibrix.ai < RayClusterFleet.orchestration.aibrix.ai": "",
    # further gangs
    "Job.batch.volcano.sh": "Job",
    "Job.batch.volcano.sh < CronJob.batch.volcano.sh": "Job",
    "HyperPodPyTorchJob.sagemaker.amazonaws.com": "HyperPodPyTorchJob",
    "TrainingJob.kai.alibabacloud.com": "TrainingJob",
    "StatefulSet.apps < LeaderWorkerSet.leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "StatefulSet.apps < Pod < StatefulSet.apps < LeaderWorkerSet.leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "StatefulSet.apps < LeaderWorkerSet.leaderworkerset.x-k8s.io < DisaggregatedSet.disaggregatedset.x-k8s.io": (
        "LeaderWorkerSet"
    ),
    # what a wrapper holds decides, and the wrapper makes it again
    "AppWrapper.workload.codeflare.dev": "AppWrapper",  # of a bare pod
    "Job.batch < AppWrapper.workload.codeflare.dev": "AppWrapper",
    "PyTorchJob.kubeflow.org < AppWrapper.workload.codeflare.dev": "AppWrapper",
    "RayCluster.ray.io < RayJob.ray.io < AppWrapper.workload.codeflare.dev": "AppWrapper",
    "RayCluster.ray.io < AppWrapper.workload.codeflare.dev": "",
    "RayCluster.ray.io < RayService.ray.io < AppWrapper.workload.codeflare.dev": "",
    "StatefulSet.apps < Notebook.kubeflow.org < AppWrapper.workload.codeflare.dev": "",
    # others that make Jobs, or what makes them
    "Job.batch < KaiwoJob.kaiwo.silogen.ai": "Job",
    "RayCluster.ray.io < RayJob.ray.io < KaiwoJob.kaiwo.silogen.ai": "RayJob",
    "Job.batch < Workspace.kaito.sh": "Job",  # it tunes
    "Job.batch < Workflow.argoproj.io": "Job",  # a step that applies a manifest
    "PyTorchJob.kubeflow.org < DistributedWorkload.run.ai": "PyTorchJob",
    # programs one after another, or side by side
    "Workflow.argoproj.io": "",
    "Workflow.argoproj.io < CronWorkflow.argoproj.io": "",
    "TaskRun.tekton.dev < PipelineRun.tekton.dev": "",
    # who tries a pod again is not known to have one program: their pods save, and people set the variable
    "ElasticJob.elastic.iml.github.io": "",
    "RunaiJob.run.ai": "",
    "RunaiJob.run.ai < TrainingWorkload.run.ai": "",
}
"""The owners of a pod, the nearest first, and the kind of the one whose uid is its run."""

_WITHOUT_A_RUN = """
Deployment.apps ReplicaSet.apps StatefulSet.apps DaemonSet.apps ReplicationController
CloneSet.apps.kruise.io StatefulSet.apps.kruise.io DaemonSet.apps.kruise.io DeploymentConfig.apps.openshift.io
Rollout.argoproj.io NodeSet.slinky.slurm.net WorkflowTemplate.argoproj.io LMEvalJob.trustyai.opendatahub.io
PodCliqueSet.grove.io PodClique.grove.io PodCliqueScalingGroup.grove.io RoleBasedGroup.workloads.x-k8s.io
SparkApplication.sparkoperator.k8s.io ScheduledSparkApplication.sparkoperator.k8s.io
SparkApplication.sparkoperator.hpe.com
DaskCluster.kubernetes.dask.org DaskJob.kubernetes.dask.org DaskWorkerGroup.kubernetes.dask.org
VirtualMachine.kubevirt.io VirtualMachineInstance.kubevirt.io
InferenceService.serving.kserve.io LLMInferenceService.serving.kserve.io InferenceService.ome.io
Service.serving.knative.dev Configuration.serving.knative.dev Revision.serving.knative.dev
SeldonDeployment.machinelearning.seldon.io Server.mlops.seldon.io
NIMService.apps.nvidia.com NIMPipeline.apps.nvidia.com InferenceWorkload.run.ai KaiwoService.kaiwo.silogen.ai
DynamoGraphDeployment.nvidia.com DynamoComponentDeployment.nvidia.com DynamoGraphDeploymentRequest.nvidia.com
RAGEngine.kaito.sh InferenceSet.kaito.sh MultiRoleInference.kaito.sh Model.kubeai.org
Playground.inference.llmaz.io Service.inference.llmaz.io
ModelServing.workload.serving.volcano.sh ModelBooster.workload.serving.volcano.sh
StormService.orchestration.aibrix.ai RoleSet.orchestration.aibrix.ai PodSet.orchestration.aibrix.ai
VLLMRuntime.production-stack.vllm.ai
JumpStartModel.inference.sagemaker.aws.amazon.com InferenceEndpointConfig.inference.sagemaker.aws.amazon.com
Notebook.kubeflow.org DevWorkspace.workspace.devfile.io Workspace.kubeflow.org AmaltheaSession.amalthea.dev
Workspace.workspace.jupyter.org InteractiveWorkload.run.ai
"""
FOR_GOOD_OR_DATA = _WITHOUT_A_RUN.split()
"""Kinds that serve, that somebody sits at, or that run for good or work on data: a pod of theirs has no run."""


def kind_of(text: str) -> GroupKind:
    kind, _, group = text.partition(".")
    return GroupKind(group, kind)


def owners(text: str) -> list[WorkloadBuilder]:
    """The owners of a pod, the nearest first: each is owned by the next."""
    kinds = [kind_of(each) for each in text.split(" < ")]
    built = [
        a_workload(f"{each.group}/v1".lstrip("/"), each.kind, f"{each.kind.lower()}-{place}")
        for place, each in enumerate(kinds)
    ]
    above = [each.owned_by(owner) for each, owner in pairwise(built)]
    return [*above, built[-1]]


async def run_of_a_pod(*chain: WorkloadBuilder, pod: PodBuilder | None = None) -> str:
    """GPU_TIERS_RUN of a pod that the first of these owns."""
    asks = pod or a_pod().asking(command=["torchrun", "train.py"])
    made = asks.annotated(LISTENS).owned_by(chain[0]) if chain else asks.annotated(LISTENS)
    world = FakeApi(*chain)
    patched = (await world.mutate(made)).patched
    assert (await world.mutate(patched)).patch == []
    environment = {each["name"]: each.get("value") for each in patched["spec"]["containers"][0]["env"]}
    assert "PYTHONPATH" in environment, "it saves in any case"
    return environment.get("GPU_TIERS_RUN", "")


@pytest.mark.parametrize("text", [*RUNS, *FOR_GOOD_OR_DATA])
async def test_the_run_is_the_owner_that_survives_the_retries_of_one_program(text: str) -> None:
    chain, wanted = owners(text), RUNS.get(text, "")
    uids = {each.json()["kind"]: each.json()["metadata"]["uid"] for each in chain}
    assert await run_of_a_pod(*chain) == (uids[wanted] if wanted else "")


async def test_a_pod_without_an_owner_has_none() -> None:
    assert await run_of_a_pod() == ""


SHARDS = {
    "ranks that train together": (4, 4, "uid-of-work"),
    "shards, more than run at once: each is a program of its own": (12, 4, "uid-of-work-3"),
}


@pytest.mark.parametrize("name", SHARDS)
async def test_the_pods_of_an_indexed_job(name: str) -> None:
    completions, parallelism, run = SHARDS[name]
    index = a_pod().asking().annotated({"batch.kubernetes.io/job-completion-index": "3"})
    job = a_job(completionMode="Indexed", completions=completions, parallelism=parallelism)
    assert await run_of_a_pod(job, pod=index) == run


def test_each_kind_of_the_table_is_decided_here() -> None:
    tried = {kind_of(each) for text in [*RUNS, *FOR_GOOD_OR_DATA] for each in text.split(" < ")}
    assert tried == set(BUILT_IN.by_kind), "a new row says by whose uid its pods resume, or that they don't"


def test_each_gang_has_a_run_of_its_own_or_within_it() -> None:
    """A gang's pods come again together; only a cluster that people use by hand makes an exception."""
    named = {kind_of(text.split(" < ")[-1]) for text, run in RUNS.items() if run}
    gangs = {row.group_kind for row in BUILT_IN.rows if row.gang}
    assert gangs - named == {GroupKind("ray.io", "RayCluster")}
