"""Kinds whose work ends and starts again without a person waiting for it: pipelines and data processing. Data."""

from msgspec.structs import replace

from webhook.policy.workloads import spark
from webhook.policy.workloads.kinds.table import ENDING_SOURCES, Between, KindRow, Templates, present
from webhook.policy.workloads.pod_counts import replicas
from webhook.policy.workloads.workload_types import WorkloadType

_BATCH = WorkloadType.BATCH
_ARGO = "https://github.com/argoproj/argo-workflows/tree/main/manifests/base/crds/full"
_TEKTON = "https://github.com/tektoncd/pipeline/tree/main/pkg/apis/pipeline"
_SPARK = "https://github.com/kubeflow/spark-operator/tree/master/api/v1beta2"
_HPE_SPARK = "https://github.com/HPEEzmeral/ezua-tutorials/tree/develop/current-release/Data-Analytics"
_DASK = "https://github.com/dask/dask-kubernetes/tree/main/dask_kubernetes/operator/customresources"


def _argo(kind: str, plural: str, spec: str, makes: tuple[Between, ...] = ()) -> KindRow:
    of_all = (Between(f"{spec}.podMetadata"), Between(f"{spec}.workflowMetadata"), *makes)
    of_step = (Between(f"{spec}.templates.*.metadata"), Between(f"{spec}.templateDefaults.metadata"), *of_all)
    templates = (
        Templates(f"{spec}.templates.*", "container", form="container", between=of_step),
        Templates(f"{spec}.templates.*", "script", form="container", between=of_step),
        Templates(f"{spec}.templates.*", "containerSet", form="spec", between=of_step),
        Templates(f"{spec}.arguments.parameters.*", "", form="parameter", between=of_all),
    )
    labels = present("workflows.argoproj.io/workflow")
    return KindRow(
        "argoproj.io",
        kind,
        plural,
        _ARGO,
        usual=_BATCH,
        before_usual=ENDING_SOURCES,
        labels=labels,
        at_once=False,
        templates=templates,
    )


def _tekton(
    kind: str, plural: str, label: str, steps: str, resources: Templates, between: tuple[Between, ...] = ()
) -> KindRow:
    """Steps that stand in it, and resources for a task that it names."""
    return KindRow(
        "tekton.dev",
        kind,
        plural,
        _TEKTON,
        usual=_BATCH,
        before_usual=ENDING_SOURCES,
        labels=present(label),
        at_once=False,
        templates=(Templates(f"{steps}.*", "", form="container", between=between), resources),
    )


def _spark(kind: str, plural: str, spec: str, group: str = "sparkoperator.k8s.io", source: str = _SPARK) -> KindRow:
    return KindRow(
        group,
        kind,
        plural,
        source,
        _BATCH,
        unless=("command",),
        runs=(f"{spec}.mainApplicationFile",),
        labels=present("sparkoperator.k8s.io/app-name", "spark-app-selector"),
        templates=(
            Templates(spec, "driver", made=spark.driver_pod),
            Templates(spec, "executor", spark.executors, made=spark.executor_pod),
        ),
    )


def _dask(kind: str, plural: str, usual: WorkloadType, *templates: Templates) -> KindRow:
    label = "dask.org/cluster-name"
    return KindRow(
        "kubernetes.dask.org",
        kind,
        plural,
        _DASK,
        usual=usual,
        before_usual=ENDING_SOURCES,  # its pods listen for one another
        labels=present(label),
        gang_label=label,
        templates=templates,
    )


_WORKFLOW = _argo("Workflow", "workflows", "spec")
_TASK_RUN = _tekton(
    "TaskRun",
    "taskruns",
    "tekton.dev/taskRun",
    "spec.taskSpec.steps",
    Templates("spec", "computeResources", form="resources"),
)

BATCH_KINDS = (
    _WORKFLOW,
    replace(
        _argo("CronWorkflow", "cronworkflows", "spec.workflowSpec", (Between("spec.workflowMetadata", _WORKFLOW),)),
        recurs=True,
    ),
    replace(_argo("WorkflowTemplate", "workflowtemplates", "spec"), recurs=True),
    _tekton(
        "PipelineRun",
        "pipelineruns",
        "tekton.dev/pipelineRun",
        "spec.pipelineSpec.tasks.*.taskSpec.steps",
        Templates(
            "spec.taskRunSpecs.*",
            "computeResources",
            form="resources",
            between=(Between("spec.taskRunSpecs.*.metadata", _TASK_RUN),),
        ),
        (Between("spec.pipelineSpec.tasks.*.taskSpec.metadata", _TASK_RUN),),
    ),
    _TASK_RUN,
    _spark("SparkApplication", "sparkapplications", "spec"),
    replace(_spark("ScheduledSparkApplication", "scheduledsparkapplications", "spec.template"), recurs=True),
    _spark("SparkApplication", "sparkapplications", "spec", "sparkoperator.hpe.com", _HPE_SPARK),
    KindRow(
        "trustyai.opendatahub.io",
        "LMEvalJob",
        "lmevaljobs",
        "https://github.com/trustyai-explainability/trustyai-service-operator/tree/main/config/components/lmes/crd",
        _BATCH,
        labels={"app.kubernetes.io/name": "ta-lmes"},
        templates=(Templates("spec.pod", "container", form="container"),),
    ),
    _dask(
        "DaskCluster",
        "daskclusters",
        WorkloadType.INTERACTIVE,
        Templates("spec.scheduler", "spec", form="spec"),
        Templates("spec.worker", "spec", replicas, "spec"),
    ),
    _dask(
        "DaskJob",
        "daskjobs",
        _BATCH,
        Templates("spec.job", "spec", form="spec"),
        Templates("spec.cluster.spec.scheduler", "spec", form="spec"),
        Templates("spec.cluster.spec.worker", "spec", replicas, "spec"),
    ),
    _dask(
        "DaskWorkerGroup",
        "daskworkergroups",
        WorkloadType.INTERACTIVE,
        Templates("spec.worker", "spec", replicas, "spec"),
    ),
)
