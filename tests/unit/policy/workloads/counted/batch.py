"""Workloads of the kinds in webhook/policy/workloads/kinds/batch.py, and how many GPUs their pods hold."""

from tests.builders import GPU, WorkloadBuilder, a_workload
from tests.builders.operators import HEAD, MODEL, a_daskcluster

STEP = {"image": "x", "script": "nvidia-smi", "computeResources": {"limits": {"nvidia.com/gpu": "1"}}}
GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
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
    "a DaskCluster": (a_daskcluster(), 2),
    "a DaskJob": (
        a_workload(
            "kubernetes.dask.org/v1", "DaskJob", job={"spec": HEAD}, cluster={"spec": a_daskcluster().json()["spec"]}
        ),
        3,
    ),
    "a DaskWorkerGroup": (
        a_workload("kubernetes.dask.org/v1", "DaskWorkerGroup", worker={"replicas": 2, "spec": HEAD}),
        2,
    ),
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
    "a SparkApplication of another vendor's operator": (
        a_workload("sparkoperator.hpe.com/v1beta2", "SparkApplication", driver={"template": {"spec": HEAD}}),
        1,
    ),
}
