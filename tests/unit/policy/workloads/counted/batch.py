"""Workloads of the kinds in webhook/policy/workloads/kinds/batch.yaml, and how many GPUs their pods hold."""

from tests.builders import GPU, WorkloadBuilder, a_workload
from tests.builders.operators import HEAD, MODEL, a_daskcluster, a_sparkapplication

STEP = {"image": "x", "script": "nvidia-smi", "computeResources": {"limits": {"nvidia.com/gpu": "1"}}}
NVIDIA = {"name": "nvidia.com/gpu", "quantity": 1}
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
    "a Spark driver and executors with GPUs of the field": (
        a_sparkapplication(driver={"gpu": NVIDIA}, executor={"instances": 2, "gpu": NVIDIA | {"quantity": 4}}),
        9,
    ),
    "a Spark executor of nobody's number": (a_sparkapplication(executor={"gpu": NVIDIA}), 1),
    "Spark executors by its configuration": (
        a_sparkapplication(
            executor={},
            sparkConf={
                "spark.executor.instances": "3",
                "spark.executor.resource.gpu.amount": "2",
                "spark.executor.resource.gpu.vendor": "nvidia.com",
            },
        ),
        6,
    ),
    "a Spark driver by its configuration and by its field": (
        a_sparkapplication(
            driver={"gpu": NVIDIA},
            sparkConf={"spark.driver.resource.gpu.amount": "4", "spark.driver.resource.gpu.vendor": "nvidia.com"},
        ),
        1,
    ),
    "a Spark configuration without a vendor": (
        a_sparkapplication(sparkConf={"spark.executor.resource.gpu.amount": "2"}),
        0,
    ),
    "Spark executors that grow": (
        a_sparkapplication(
            executor={"instances": 1, "gpu": NVIDIA},
            dynamicAllocation={"enabled": True, "initialExecutors": 2, "minExecutors": 1, "maxExecutors": 8},
        ),
        2,
    ),
    "Spark executors that grow by its configuration": (
        a_sparkapplication(
            executor={"gpu": NVIDIA},
            sparkConf={"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.minExecutors": "4"},
        ),
        4,
    ),
    "Spark executors that may not grow": (
        a_sparkapplication(executor={"gpu": NVIDIA}, dynamicAllocation={"enabled": False, "minExecutors": 5}),
        1,
    ),
    "a field that Spark's template leaves without use": (
        a_sparkapplication(executor={"template": {"spec": HEAD}, "gpu": NVIDIA | {"quantity": 8}}),
        1,
    ),
    "a sidecar with a GPU in Spark's driver": (a_sparkapplication(driver={"sidecars": HEAD["containers"]}), 1),
    "an LMEvalJob": (a_workload("trustyai.opendatahub.io/v1alpha1", "LMEvalJob", pod={"container": MODEL}), 1),
    "a SparkApplication of another vendor's operator": (
        a_workload("sparkoperator.hpe.com/v1beta2", "SparkApplication", driver={"template": {"spec": HEAD}}),
        1,
    ),
}
