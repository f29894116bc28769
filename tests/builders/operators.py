"""Workloads of operators, in the shapes that their CRDs have, of pods with a GPU and without."""

from tests.builders.built import Built, Tree
from tests.builders.pods import a_pod
from tests.builders.workloads import WorkloadBuilder, a_workload

GPU_POD = a_pod().asking().template()
CPU_POD = a_pod().running("sh").template()
HEAD = {"containers": [{"name": "head", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
MODEL = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
LIMITS = {"limits": {"nvidia.com/gpu": 8}}


def a_lws(**spec: object) -> WorkloadBuilder:
    return a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", **spec)


def a_raycluster(**workers: object) -> WorkloadBuilder:
    groups = [{"groupName": "gpu", "template": GPU_POD, **workers}]
    return a_workload("ray.io/v1", "RayCluster", headGroupSpec={"template": CPU_POD}, workerGroupSpecs=groups)


def an_inferenceservice(**spec: object) -> WorkloadBuilder:
    return a_workload("serving.kserve.io/v1beta1", "InferenceService", **spec)


def an_llminferenceservice(**spec: object) -> WorkloadBuilder:
    return a_workload("serving.kserve.io/v1alpha2", "LLMInferenceService", **spec)


def a_jobset(replicas: int, **job: object) -> WorkloadBuilder:
    jobs = [{"name": "node", "replicas": replicas, "template": {"spec": {**job, "template": GPU_POD}}}]
    return a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs)


def a_trainjob(**trainer: object) -> WorkloadBuilder:
    return a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", trainer=trainer)


def a_trainjob_of(runtime: Built, **spec: object) -> WorkloadBuilder:
    """A TrainJob that names its runtime."""
    named = {"name": runtime.tree["metadata"]["name"]}
    reference = named if runtime.tree["kind"].startswith("Cluster") else named | {"kind": runtime.tree["kind"]}
    return a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", "bert", runtimeRef=reference, **spec)


def a_seldondeployment(component: Tree, **predictor: object) -> WorkloadBuilder:
    predictors = [
        {"componentSpecs": [{"spec": CPU_POD["spec"]}]},
        {"componentSpecs": [{"spec": HEAD, **component}], **predictor},
    ]
    return a_workload("machinelearning.seldon.io/v1", "SeldonDeployment", predictors=predictors, replicas=4)


def a_nimservice(**spec: object) -> WorkloadBuilder:
    return a_workload("apps.nvidia.com/v1alpha1", "NIMService", resources=LIMITS, **spec)


def a_podcliqueset(replicas: int | None, *groups: Tree) -> WorkloadBuilder:
    prefill = {"name": "prefill", "spec": {"replicas": 2, "podSpec": HEAD}}
    router = {"name": "router", "spec": {"replicas": 1, "podSpec": CPU_POD["spec"]}}
    template = {"cliques": [prefill, router], "podCliqueScalingGroups": list(groups)}
    said = {} if replicas is None else {"replicas": replicas}
    return a_workload("grove.io/v1alpha1", "PodCliqueSet", template=template, **said)


def a_stormservice(**role: object) -> WorkloadBuilder:
    template = {"spec": {"roles": [{"name": "prefill", "template": GPU_POD, **role}]}}
    return a_workload("orchestration.aibrix.ai/v1alpha1", "StormService", replicas=2, template=template)


def an_amaltheasession(**spec: object) -> WorkloadBuilder:
    return a_workload("amalthea.dev/v1alpha1", "AmaltheaSession", session=MODEL, **spec)


def a_devworkspace(*, started: bool, **template: object) -> WorkloadBuilder:
    return a_workload("workspace.devfile.io/v1alpha2", "DevWorkspace", started=started, template=template)


def a_daskcluster() -> WorkloadBuilder:
    worker, scheduler = {"replicas": 2, "spec": HEAD}, {"spec": CPU_POD["spec"]}
    return a_workload("kubernetes.dask.org/v1", "DaskCluster", worker=worker, scheduler=scheduler)


def an_mpijob(launcher: Tree = CPU_POD, worker: Tree = GPU_POD, workers: int = 2) -> WorkloadBuilder:
    specs = {"Launcher": {"template": launcher}, "Worker": {"replicas": workers, "template": worker}}
    return a_workload("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs=specs)


def a_sparkapplication(**spec: object) -> WorkloadBuilder:
    said = {"sparkVersion": "3.5.1", "driver": {"cores": 1}, "executor": {"instances": 2}, **spec}
    return a_workload("sparkoperator.k8s.io/v1beta2", "SparkApplication", **said)


def a_replicated_job(name: str, *command: str, step: str = "", **container: object) -> Tree:
    """A job of a runtime, with the container that Trainer knows by its name."""
    node = {"name": "node", "image": "ghcr.io/kubeflow/trainer/deepspeed-runtime", **container}
    if command:
        node["command"] = list(command)
    metadata = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}} if step else {}
    pod = {"restartPolicy": "Never", "containers": [node]}
    return {"name": name, "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}}}


def a_runtime(
    *jobs: Tree, name: str = "torch-distributed", kind: str = "ClusterTrainingRuntime", **policy: object
) -> Built:
    """A runtime as Kubeflow ships them: one job of nodes, where no other jobs are given."""
    template = {"spec": {"replicatedJobs": list(jobs) or [a_replicated_job("node", "torchrun", step="trainer")]}}
    spec = {"mlPolicy": {"numNodes": 1, **policy}, "template": template}
    metadata = {"name": name} | ({} if kind.startswith("Cluster") else {"namespace": "team-alpha"})
    return Built({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
