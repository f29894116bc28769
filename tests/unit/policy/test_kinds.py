"""How many pods each kind of workload makes, and what they hold: as its operator counts."""

from decimal import Decimal

import pytest

from tests.builders import GPU, Tree, WorkloadBuilder, a_deployment, a_job, a_pod, a_policy, a_pytorchjob, a_workload
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Refused
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.kinds import BUILT_IN
from webhook.policy.workloads.templates import pod_templates

POD = a_pod().asking().template()
SPEC = POD["spec"]
NO_GPU = a_pod().running("sh").template()


def a_lws(**spec: object) -> WorkloadBuilder:
    return a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", **spec)


def a_raycluster(**workers: object) -> WorkloadBuilder:
    groups = [{"groupName": "gpu", "template": POD, **workers}]
    return a_workload("ray.io/v1", "RayCluster", headGroupSpec={"template": NO_GPU}, workerGroupSpecs=groups)


def an_isvc(**spec: object) -> WorkloadBuilder:
    return a_workload("serving.kserve.io/v1beta1", "InferenceService", **spec)


def an_llm(**spec: object) -> WorkloadBuilder:
    return a_workload("serving.kserve.io/v1alpha2", "LLMInferenceService", **spec)


def a_jobset(replicas: int, **job: object) -> WorkloadBuilder:
    jobs = [{"name": "node", "replicas": replicas, "template": {"spec": {**job, "template": POD}}}]
    return a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs)


def a_trainjob(**trainer: object) -> WorkloadBuilder:
    return a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", trainer=trainer)


def a_seldon(component: Tree, **predictor: object) -> WorkloadBuilder:
    predictors = [
        {"componentSpecs": [{"spec": NO_GPU["spec"]}]},
        {"componentSpecs": [{"spec": HEAD, **component}], **predictor},
    ]
    return a_workload("machinelearning.seldon.io/v1", "SeldonDeployment", predictors=predictors, replicas=4)


def a_nim(**spec: object) -> WorkloadBuilder:
    return a_workload("apps.nvidia.com/v1alpha1", "NIMService", resources=LIMITS, **spec)


def cliques(replicas: int | None, *groups: Tree) -> WorkloadBuilder:
    prefill = {"name": "prefill", "spec": {"replicas": 2, "podSpec": HEAD}}
    router = {"name": "router", "spec": {"replicas": 1, "podSpec": NO_GPU["spec"]}}
    template = {"cliques": [prefill, router], "podCliqueScalingGroups": list(groups)}
    said = {} if replicas is None else {"replicas": replicas}
    return a_workload("grove.io/v1alpha1", "PodCliqueSet", template=template, **said)


def a_storm(**role: object) -> WorkloadBuilder:
    template = {"spec": {"roles": [{"name": "prefill", "template": POD, **role}]}}
    return a_workload("orchestration.aibrix.ai/v1alpha1", "StormService", replicas=2, template=template)


def an_amalthea(**spec: object) -> WorkloadBuilder:
    return a_workload("amalthea.dev/v1alpha1", "AmaltheaSession", session=MODEL, **spec)


def a_devworkspace(*, started: bool, **template: object) -> WorkloadBuilder:
    return a_workload("workspace.devfile.io/v1alpha2", "DevWorkspace", started=started, template=template)


def a_t9k(kind: str, **spec: object) -> WorkloadBuilder:
    return a_workload("batch.tensorstack.dev/v1beta1", kind, **spec)


def a_notebook() -> WorkloadBuilder:
    return a_workload("kubeflow.org/v1", "Notebook", template={"spec": SPEC})


def a_dask() -> WorkloadBuilder:
    worker, scheduler = {"replicas": 2, "spec": HEAD}, {"spec": NO_GPU["spec"]}
    return a_workload("kubernetes.dask.org/v1", "DaskCluster", worker=worker, scheduler=scheduler)


HEAD = {"containers": [{"name": "head", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
MODEL = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
STEP = {"image": "x", "script": "nvidia-smi", "computeResources": {"limits": {"nvidia.com/gpu": "1"}}}
LIMITS = {"limits": {"nvidia.com/gpu": 8}}
STOPPED = {"kubeflow-resource-stopped": "2026-11-01T08:00:00Z"}

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a pod": (a_workload("v1", "Pod", **SPEC), 1),
    "a Deployment": (a_deployment(replicas=3), 3),
    "a Deployment that leaves replicas out": (a_workload("apps/v1", "Deployment", template=POD), 1),
    "a Deployment scaled to zero": (a_deployment(replicas=0), 0),
    "a StatefulSet": (a_workload("apps/v1", "StatefulSet", replicas=2, template=POD), 2),
    "a ReplicationController": (a_workload("v1", "ReplicationController", replicas=2, template=POD), 2),
    "a DaemonSet, as far as can be told": (a_workload("apps/v1", "DaemonSet", template=POD), 1),
    "a Job": (a_job(), 1),
    "a parallel Job": (a_job(parallelism=4, completions=8), 4),
    "a Job that needs fewer than it may run": (a_job(parallelism=4, completions=1), 1),
    "a work queue Job": (a_job(parallelism=4), 4),
    "a CronJob": (
        a_workload("batch/v1", "CronJob", jobTemplate={"spec": {"parallelism": 2, "template": POD}}),
        2,
    ),
    "a PyTorchJob": (a_pytorchjob(workers=4), 4),
    "a PyTorchJob whose replica type is written small": (
        a_workload("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"worker": {"replicas": 2, "template": POD}}),
        2,
    ),
    "an MPIJob with a launcher": (
        a_workload(
            "kubeflow.org/v2beta1",
            "MPIJob",
            mpiReplicaSpecs={"Launcher": {"template": NO_GPU}, "Worker": {"replicas": 2, "template": POD}},
        ),
        2,
    ),
    "a TrainJob": (a_trainjob(numNodes=2, resourcesPerNode=LIMITS), 16),
    "a TrainJob of one node": (a_trainjob(resourcesPerNode={"requests": {"nvidia.com/gpu": "8"}}), 8),
    "a TrainJob that leaves its resources to the runtime": (a_trainjob(numNodes=2), 0),
    "a JobSet": (a_jobset(2, parallelism=4, completions=4), 8),
    "a JobSet whose jobs need fewer": (a_jobset(2, parallelism=4, completions=1), 2),
    "an LWS with a leader": (
        a_lws(replicas=2, leaderWorkerTemplate={"leaderTemplate": POD, "workerTemplate": POD, "size": 4}),
        8,
    ),
    "an LWS whose leader holds none": (
        a_lws(replicas=2, leaderWorkerTemplate={"leaderTemplate": NO_GPU, "workerTemplate": POD, "size": 4}),
        6,
    ),
    "an LWS without a leader's template": (
        a_lws(replicas=2, leaderWorkerTemplate={"workerTemplate": POD, "size": 4}),
        8,
    ),
    "an LWS that leaves all out": (a_lws(leaderWorkerTemplate={"workerTemplate": POD}), 1),
    "an LWS of leaders alone": (a_lws(leaderWorkerTemplate={"leaderTemplate": POD, "workerTemplate": POD}), 1),
    "Ray workers": (a_raycluster(replicas=2, minReplicas=0, maxReplicas=4), 2),
    "Ray workers of several hosts": (a_raycluster(replicas=2, numOfHosts=4), 8),
    "Ray workers that leave replicas out": (a_raycluster(minReplicas=3, maxReplicas=4), 3),
    "Ray workers that leave all out": (a_raycluster(), 0),
    "Ray workers below their least": (a_raycluster(replicas=1, minReplicas=3), 3),
    "Ray workers as the API server completes them": (a_raycluster(replicas=4, maxReplicas=2147483647), 4),
    "Ray workers above their most": (a_raycluster(replicas=9, maxReplicas=4), 4),
    "Ray workers that are suspended": (a_raycluster(replicas=2, suspend=True), 0),
    "a RayJob": (a_workload("ray.io/v1", "RayJob", rayClusterSpec=a_raycluster(replicas=2).json()["spec"]), 2),
    "a RayJob on a cluster that runs": (a_workload("ray.io/v1", "RayJob", clusterSelector={"x": "y"}), 0),
    "a RayService": (
        a_workload("ray.io/v1", "RayService", rayClusterConfig=a_raycluster(replicas=1).json()["spec"]),
        1,
    ),
    "an InferenceService": (an_isvc(predictor={"minReplicas": 2, "model": MODEL}), 2),
    "one that scales to zero": (an_isvc(predictor={"minReplicas": 0, "model": MODEL}), 0),
    "one of an old framework's field": (an_isvc(predictor={"triton": MODEL}), 1),
    "one with containers of its own": (an_isvc(predictor=HEAD), 1),
    "one with a transformer": (an_isvc(predictor={"model": MODEL}, transformer={"minReplicas": 2, **HEAD}), 3),
    "one with an explainer": (an_isvc(predictor={"model": MODEL}, explainer={"art": MODEL}), 2),
    "one that spans nodes": (
        an_isvc(predictor={"model": MODEL, "workerSpec": {"pipelineParallelSize": 3, **HEAD}}),
        3,
    ),
    "an LLMInferenceService": (an_llm(replicas=2, template=HEAD), 2),
    "one in groups by pipeline": (
        an_llm(replicas=2, parallelism={"pipeline": 3}, template=HEAD, worker=HEAD),
        6,
    ),
    "one in groups by data": (
        an_llm(parallelism={"data": 16, "dataLocal": 8}, template=HEAD, worker=HEAD),
        2,
    ),
    "one with prefill": (an_llm(template=HEAD, prefill={"replicas": 2, "template": HEAD, "worker": HEAD}), 3),
    "a Notebook": (a_notebook(), 1),
    "a Volcano Job": (a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=[{"replicas": 3, "template": POD}]), 3),
    "an ElasticJob": (
        a_workload(
            "elastic.iml.github.io/v1alpha1", "ElasticJob", replicaSpecs={"w": {"replicas": 2, "template": POD}}
        ),
        2,
    ),
    "a Knative Service": (a_workload("serving.knative.dev/v1", "Service", template=POD), 1),
    "a Knative Configuration": (a_workload("serving.knative.dev/v1", "Configuration", template=POD), 1),
    "a SeldonDeployment": (
        a_workload(
            "machinelearning.seldon.io/v1", "SeldonDeployment", predictors=[{"componentSpecs": [{"spec": HEAD}]}]
        ),
        1,
    ),
    "a SeldonDeployment of replicas": (a_seldon({"replicas": 3}), 3),
    "one whose predictor says how many": (a_seldon({}, replicas=2), 2),
    "a Seldon Server": (a_workload("mlops.seldon.io/v1alpha1", "Server", replicas=2, podSpec=HEAD), 2),
    "a NIMService": (a_nim(replicas=2), 16),
    "one over two nodes": (a_nim(replicas=2, multiNode={"parallelism": {"pipeline": 2, "tensor": 8}}), 32),
    "one that scales": (a_nim(scale={"enabled": True, "hpa": {"minReplicas": 3, "maxReplicas": 9}}), 24),
    "a NIMPipeline": (
        a_workload(
            "apps.nvidia.com/v1alpha1",
            "NIMPipeline",
            services=[
                {"name": "guard", "enabled": True, "spec": {"replicas": 2, "resources": LIMITS}},
                {"name": "chat", "enabled": False, "spec": {"replicas": 2, "resources": LIMITS}},
            ],
        ),
        16,
    ),
    "an Argo Workflow": (
        a_workload("argoproj.io/v1alpha1", "Workflow", templates=[{"name": "a", "container": HEAD["containers"][0]}]),
        1,
    ),
    "an Argo CronWorkflow": (
        a_workload(
            "argoproj.io/v1alpha1",
            "CronWorkflow",
            workflowSpec={"templates": [{"name": "a", "container": HEAD["containers"][0]}]},
        ),
        1,
    ),
    "a DaskCluster": (a_dask(), 2),
    "a DaskJob": (
        a_workload("kubernetes.dask.org/v1", "DaskJob", job={"spec": HEAD}, cluster={"spec": a_dask().json()["spec"]}),
        3,
    ),
    "a DaskWorkerGroup": (
        a_workload("kubernetes.dask.org/v1", "DaskWorkerGroup", worker={"replicas": 2, "spec": HEAD}),
        2,
    ),
    "a PodCliqueSet": (cliques(1), 2),
    "a PodCliqueSet of replicas": (cliques(3), 6),
    "a PodCliqueSet that leaves replicas out": (cliques(None), 0),
    "a clique in a scaling group": (cliques(2, {"name": "all", "replicas": 3, "cliqueNames": ["prefill"]}), 12),
    "a clique beside a scaling group": (cliques(2, {"name": "all", "replicas": 3, "cliqueNames": ["router"]}), 4),
    "a PodClique": (a_workload("grove.io/v1alpha1", "PodClique", replicas=2, podSpec=HEAD), 2),
    "a CloneSet": (a_workload("apps.kruise.io/v1alpha1", "CloneSet", replicas=2, template=POD), 2),
    "a Rollout": (a_workload("argoproj.io/v1alpha1", "Rollout", replicas=2, template=POD), 2),
    "an Argo script": (
        a_workload(
            "argoproj.io/v1alpha1",
            "WorkflowTemplate",
            templates=[{"name": "a", "script": {**HEAD["containers"][0], "source": "nvidia-smi"}}],
        ),
        1,
    ),
    "an Argo set of containers": (
        a_workload("argoproj.io/v1alpha1", "Workflow", templates=[{"containerSet": HEAD}]),
        1,
    ),
    "a TaskRun": (a_workload("tekton.dev/v1", "TaskRun", taskSpec={"steps": [STEP]}), 1),
    "a PipelineRun that asks for tasks that it names": (
        a_workload("tekton.dev/v1", "PipelineRun", taskRunSpecs=[{"computeResources": {"limits": {GPU: 2}}}]),
        2,
    ),
    "a PipelineRun": (
        a_workload("tekton.dev/v1", "PipelineRun", pipelineSpec={"tasks": [{"taskSpec": {"steps": [STEP]}}]}),
        1,
    ),
    "a KFServing InferenceService": (
        a_workload("serving.kubeflow.org/v1alpha2", "InferenceService", default={"predictor": {"sklearn": MODEL}}),
        1,
    ),
    "a Paddle operator's PaddleJob": (
        a_workload("batch.paddlepaddle.org/v1", "PaddleJob", worker={"replicas": 2, "template": POD}),
        2,
    ),
    "an elastic TrainingJob": (
        a_workload(
            "kai.alibabacloud.com/v1alpha1",
            "TrainingJob",
            etReplicaSpecs={"worker": {"replicas": 3, "template": POD}},
        ),
        3,
    ),
    "OneBlock's Notebook": (a_workload("ml.oneblock.ai/v1", "Notebook", template={"spec": SPEC}), 1),
    "TensorStack's Notebook": (a_workload("tensorstack.dev/v1beta1", "Notebook", template={"spec": SPEC}), 1),
    "a KaiwoJob": (a_workload("kaiwo.silogen.ai/v1alpha1", "KaiwoJob", job={"spec": {"template": POD}}), 1),
    "a KaiwoJob on Ray": (
        a_workload(
            "kaiwo.silogen.ai/v1alpha1",
            "KaiwoJob",
            ray=True,
            rayJob={"spec": {"rayClusterSpec": a_raycluster(replicas=2).json()["spec"]}},
        ),
        2,
    ),
    "a KaiwoService on Ray": (
        a_workload(
            "kaiwo.silogen.ai/v1alpha1",
            "KaiwoService",
            ray=True,
            rayService={"spec": {"rayClusterConfig": a_raycluster(replicas=2).json()["spec"]}},
        ),
        2,
    ),
    "a KaiwoService": (
        a_workload("kaiwo.silogen.ai/v1alpha1", "KaiwoService", deployment={"spec": {"replicas": 2, "template": POD}}),
        2,
    ),
    "a Slurm NodeSet": (a_workload("slinky.slurm.net/v1alpha1", "NodeSet", replicas=2, template=POD), 2),
    "a Slurm NodeSet whose slurmd asks": (
        a_workload("slinky.slurm.net/v1beta1", "NodeSet", replicas=2, slurmd=MODEL, template=NO_GPU),
        2,
    ),
    "a Slurm NodeSet on every node, as far as can be told": (
        a_workload("slinky.slurm.net/v1beta1", "NodeSet", replicas=2, scalingMode="DaemonSet", slurmd=MODEL),
        1,
    ),
    "a StormService": (a_storm(replicas=2), 4),
    "a StormService in groups of pods": (a_storm(replicas=2, podGroupSize=4), 16),
    "a StormService whose role leaves replicas out": (a_storm(), 0),
    "a RoleSet": (
        a_workload("orchestration.aibrix.ai/v1alpha1", "RoleSet", roles=[{"replicas": 2, "template": POD}]),
        2,
    ),
    "a PodSet": (a_workload("orchestration.aibrix.ai/v1alpha1", "PodSet", podGroupSize=4, template=POD), 4),
    "a RayClusterReplicaSet": (
        a_workload(
            "orchestration.aibrix.ai/v1alpha1",
            "RayClusterReplicaSet",
            replicas=2,
            template={"spec": a_raycluster(replicas=3).json()["spec"]},
        ),
        6,
    ),
    "a ModelServing": (
        a_workload(
            "workload.serving.volcano.sh/v1alpha1",
            "ModelServing",
            replicas=2,
            template={
                "roles": [
                    {"name": "decode", "replicas": 3, "workerReplicas": 1, "entryTemplate": POD, "workerTemplate": POD}
                ]
            },
        ),
        12,
    ),
    "a RunaiJob": (a_workload("run.ai/v1", "RunaiJob", template=POD, parallelism=2), 2),
    "a Spark executor by its pod's template": (
        a_workload(
            "sparkoperator.k8s.io/v1beta2", "SparkApplication", executor={"instances": 3, "template": {"spec": HEAD}}
        ),
        3,
    ),
    "a Spark driver, on a schedule": (
        a_workload(
            "sparkoperator.k8s.io/v1beta2",
            "ScheduledSparkApplication",
            template={"driver": {"template": {"spec": HEAD}}},
        ),
        1,
    ),
    "an LMEvalJob": (a_workload("trustyai.opendatahub.io/v1alpha1", "LMEvalJob", pod={"container": MODEL}), 1),
    "a PyTorchTrainingJob": (a_t9k("PyTorchTrainingJob", replicaSpecs=[{"replicas": 2, "template": POD}]), 2),
    "a TensorFlowTrainingJob": (a_t9k("TensorFlowTrainingJob", replicaSpecs=[{"replicas": 2, "template": POD}]), 2),
    "an XGBoostTrainingJob": (a_t9k("XGBoostTrainingJob", replicaSpecs=[{"replicas": 2, "template": POD}]), 2),
    "a DeepSpeedJob": (a_t9k("DeepSpeedJob", worker={"replicas": 2, "template": POD}), 2),
    "a ColossalAIJob": (a_t9k("ColossalAIJob", worker={"replicas": 2, "template": POD}), 2),
    "an AmaltheaSession": (an_amalthea(), 1),
    "an AmaltheaSession that sleeps": (an_amalthea(hibernated=True), 0),
    "a JupyterServer": (a_workload("amalthea.dev/v1alpha1", "JupyterServer", jupyterServer=MODEL), 1),
    "a DevWorkspace by its container": (
        a_devworkspace(started=True, components=[{"attributes": {"container-overrides": MODEL}}]),
        1,
    ),
    "a DevWorkspace by its pod": (
        a_devworkspace(started=True, attributes={"pod-overrides": {"spec": HEAD}}),
        1,
    ),
    "a DevWorkspace that is not started": (
        a_devworkspace(started=False, attributes={"pod-overrides": {"spec": HEAD}}),
        0,
    ),
    "a RayClusterFleet": (
        a_workload(
            "orchestration.aibrix.ai/v1alpha1",
            "RayClusterFleet",
            template={"spec": {"headGroupSpec": {"template": POD}}},
        ),
        1,
    ),
    "an ElasticJob of PyTorch": (
        a_workload(
            "elastic.pytorch.org/v1alpha1",
            "ElasticJob",
            replicaSpecs={"Worker": {"replicas": 2, "template": POD}},
        ),
        2,
    ),
    "a HyperPodPyTorchJob": (
        a_workload(
            "sagemaker.amazonaws.com/v1",
            "HyperPodPyTorchJob",
            replicaSpecs=[{"name": "pods", "replicas": 3, "template": POD}],
        ),
        3,
    ),
    "a DynamoGraphDeployment": (
        a_workload(
            "nvidia.com/v1beta1",
            "DynamoGraphDeployment",
            components=[{"name": "Frontend"}, {"name": "decode", "replicas": 2, "podTemplate": POD}],
        ),
        2,
    ),
    "a DynamoComponentDeployment": (
        a_workload("nvidia.com/v1beta1", "DynamoComponentDeployment", replicas=2, podTemplate=POD),
        2,
    ),
    "a RayCronJob": (
        a_workload("ray.io/v1", "RayCronJob", jobTemplate={"rayClusterSpec": {"headGroupSpec": {"template": POD}}}),
        1,
    ),
    "an InferenceEndpointConfig": (
        a_workload(
            "inference.sagemaker.aws.amazon.com/v1alpha1",
            "InferenceEndpointConfig",
            replicas=2,
            worker=POD["spec"]["containers"][0],
        ),
        2,
    ),
    "a Workspace of Jupyter": (
        a_workload("workspace.jupyter.org/v1alpha1", "Workspace", resources={"limits": {GPU: 1}}),
        1,
    ),
    "a StatefulSet of OpenKruise": (a_workload("apps.kruise.io/v1beta1", "StatefulSet", replicas=2, template=POD), 2),
    "a DaemonSet of OpenKruise": (a_workload("apps.kruise.io/v1alpha1", "DaemonSet", template=POD), 1),
    "a DeploymentConfig": (a_workload("apps.openshift.io/v1", "DeploymentConfig", replicas=3, template=POD), 3),
    "a SparkApplication of another vendor's operator": (
        a_workload("sparkoperator.hpe.com/v1beta2", "SparkApplication", driver={"template": {"spec": HEAD}}),
        1,
    ),
    "a Katib Experiment of Jobs": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount=3,
            trialTemplate={"trialSpec": {"kind": "Job", "spec": {"template": POD}}},
        ),
        1,
    ),
    "a Katib Trial of PyTorch": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Trial",
            runSpec={"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}}},
        ),
        2,
    ),
    "a BroadcastJob": (a_workload("apps.kruise.io/v1alpha1", "BroadcastJob", template=POD), 1),
    "a ScaledJob": (a_workload("keda.sh/v1alpha1", "ScaledJob", jobTargetRef={"parallelism": 2, "template": POD}), 2),
    "a RoleBasedGroup": (
        a_workload(
            "workloads.x-k8s.io/v1alpha2",
            "RoleBasedGroup",
            roles=[
                {"name": "router", "standalonePattern": {"template": POD}},
                {"name": "decode", "replicas": 2, "leaderWorkerPattern": {"size": 2, "template": POD}},
            ],
        ),
        5,
    ),
    "a stopped Notebook": (a_notebook().annotated(STOPPED), 0),
}


def gpus_of(workload: WorkloadBuilder) -> Decimal:
    members = workload.view().members
    return sum((demand_of(member.template, (), a_policy()) * member.count for member in members), Decimal(0))


@pytest.mark.parametrize(("workload", "gpus"), GPUS.values(), ids=GPUS)
def test_the_gpus_of(workload: WorkloadBuilder, gpus: int) -> None:
    assert gpus_of(workload) == Decimal(gpus)


def test_every_kind_of_the_table_is_tried_here() -> None:
    tried = {
        GroupKind(workload.json()["apiVersion"].rpartition("/")[0], workload.json()["kind"])
        for workload, _ in GPUS.values()
    }
    like_pytorchjob = {"TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "MXJob", "ReplicaSet"}
    with_templates = {kind for kind, row in BUILT_IN.by_kind.items() if row.templates}
    assert with_templates - tried == {
        kind
        for kind in BUILT_IN.by_kind
        if (kind.kind in like_pytorchjob and kind.group in ("kubeflow.org", "apps"))
        or kind.group == "training.kubedl.io"
    }


@pytest.mark.parametrize(
    "kind", ["TFJob:tf", "XGBoostJob:xgb", "JAXJob:jax", "PaddleJob:paddle", "MPIJob:mpi", "MXJob:mx"]
)
def test_the_other_kubeflow_jobs_differ_in_one_field(kind: str) -> None:
    name, _, field = kind.partition(":")
    job = a_workload("kubeflow.org/v1", name, **{f"{field}ReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}})
    assert gpus_of(job) == 2


@pytest.mark.parametrize("kind", ["PyTorchJob:pytorch", "TFJob:tf", "XGBoostJob:xgb", "MPIJob:mpi"])
def test_kubedl_has_them_in_a_group_of_its_own(kind: str) -> None:
    name, _, field = kind.partition(":")
    specs = {f"{field}ReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}}
    assert gpus_of(a_workload("training.kubedl.io/v1alpha1", name, **specs)) == 2


def test_a_template_is_found_at_its_place() -> None:
    paths = [member.path for member in a_raycluster(replicas=1).view().members]
    assert paths == ["spec.headGroupSpec.template", "spec.workerGroupSpecs.0.template"]


def test_labels_beside_a_bare_spec_are_its_pods_labels() -> None:
    service = an_isvc(predictor={"model": MODEL, "labels": {"team": "a"}, "annotations": {"note": "b"}})
    (member,) = service.view().members
    assert (member.template.metadata.labels, member.template.metadata.annotations) == ({"team": "a"}, {"note": "b"})


@pytest.mark.parametrize("workload", [each for each, _ in GPUS.values()], ids=GPUS)
def test_every_form_of_template_can_be_had_as_a_pod(workload: WorkloadBuilder) -> None:
    tree = workload.json()
    kind = GroupKind(tree["apiVersion"].rpartition("/")[0], tree["kind"])
    for template, member in zip(pod_templates(tree, BUILT_IN.by_kind[kind]), workload.view().members, strict=True):
        assert isinstance(template.pod, dict)
        assert template.pod["spec"]["containers"]
        assert (template.path, template.count) == (member.path, member.count)


BROKEN: dict[str, tuple[WorkloadBuilder, str]] = {
    "replicas of a predictor that are no number": (
        a_seldon({}, replicas="x"),
        'spec.predictors.1.replicas: "x" is no count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas that are no number": (
        a_deployment().having("spec.replicas", "two"),
        'spec.replicas: "two" is no count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas below nothing": (
        a_raycluster(replicas=-1),
        'spec.workerGroupSpecs.0.replicas: "-1" is no count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas that are true": (
        a_deployment().having("spec.replicas", True),
        'spec.replicas: "True" is no count of pods; write a whole number from 0 to 1000000',
    ),
    "more pods than there can be": (
        a_jobset(100_000, parallelism=100_000),
        "spec.replicatedJobs.0: makes 10000000000 pods; a workload may make 1000000 at most",
    ),
    "containers that are no list": (
        a_job().having("spec.template.spec", {"containers": "x"}).having("spec.template.spec.containers", "y"),
        "spec.template.spec.containers: expected `array`, got `str`",
    ),
    "a bare spec's containers that are no list": (
        an_isvc(predictor={"model": MODEL, "containers": 5}),
        "spec.predictor.containers: expected `array`, got `int`",
    ),
    "a template that is no map": (
        a_workload("apps/v1", "Deployment", template="x"),
        "spec.template: expected `object`, got `str`",
    ),
    "an affinity of another shape": (
        a_job().having("spec.template.spec.affinity", {"nodeAffinity": []}),
        "spec.template.spec.affinity.nodeAffinity: expected `object`, got `array`",
    ),
}


@pytest.mark.parametrize(("workload", "sentence"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_template_is_refused_with_its_place(workload: WorkloadBuilder, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        workload.view()
    assert refused.value.sentence == sentence


ODD: list[Tree] = [{}, {"spec": None}, {"spec": []}, {"spec": {"template": None}}, {"spec": "x"}]


@pytest.mark.parametrize("tree", ODD)
def test_a_workload_that_holds_no_template_makes_no_pods(tree: Tree) -> None:
    assert not [each for row in BUILT_IN.rows if row.kind != "Pod" for each in pod_templates(tree, row)]


def test_gang_labels_are_those_of_kinds_whose_members_may_hold_no_gpu() -> None:
    """The chart's matchConditions list the same. With a Job's among them, a dead webhook would stop all Jobs."""
    assert sorted(BUILT_IN.gang_labels) == [
        "dask.org/cluster-name",
        "elasticjob.dlrover/name",
        "grove.io/podgang",
        "jobset.sigs.k8s.io/jobset-name",
        "leaderworkerset.sigs.k8s.io/name",
        "ray.io/cluster",
        "training.kubeflow.org/job-name",
        "volcano.sh/job-name",
    ]
