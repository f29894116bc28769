"""Kinds whose work ends and starts again without a person waiting for it: pipelines and data processing. Data."""

from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Row, Source, Templates, present
from webhook.policy.pod_counts import replicas

_BATCH = WorkloadType.BATCH
_ARGO = "https://github.com/argoproj/argo-workflows"
_TEKTON = "https://github.com/tektoncd/pipeline"
_SPARK = "https://github.com/kubeflow/spark-operator"
_DASK = "https://github.com/dask/dask-kubernetes"
_STEPS: tuple[Source, ...] = ("command", "name")
"""A pipeline's step may train; what image it takes says little."""


def _argo(kind: str, plural: str, spec: str) -> Row:
    templates = (Templates(f"{spec}.templates.*", "container", form="container"),)
    labels = present("workflows.argoproj.io/workflow")
    return Row(
        "argoproj.io", kind, plural, _ARGO, usual=_BATCH, before_usual=_STEPS, labels=labels, templates=templates
    )


def _tekton(kind: str, plural: str, label: str) -> Row:
    return Row("tekton.dev", kind, plural, _TEKTON, usual=_BATCH, before_usual=_STEPS, labels=present(label))


def _spark(kind: str, plural: str) -> Row:
    labels = present("sparkoperator.k8s.io/app-name", "spark-app-selector")
    return Row("sparkoperator.k8s.io", kind, plural, _SPARK, _BATCH, labels=labels)


def _dask(kind: str, plural: str, *templates: Templates) -> Row:
    label = "dask.org/cluster-name"
    return Row(
        "kubernetes.dask.org",
        kind,
        plural,
        _DASK,
        usual=_BATCH,
        labels=present(label),
        gang_label=label,
        templates=templates,
    )


BATCH_KINDS = (
    _argo("Workflow", "workflows", "spec"),
    _argo("CronWorkflow", "cronworkflows", "spec.workflowSpec"),
    _tekton("PipelineRun", "pipelineruns", "tekton.dev/pipelineRun"),
    _tekton("TaskRun", "taskruns", "tekton.dev/taskRun"),
    _spark("SparkApplication", "sparkapplications"),
    _spark("ScheduledSparkApplication", "scheduledsparkapplications"),
    _dask(
        "DaskCluster",
        "daskclusters",
        Templates("spec.scheduler", "spec", form="spec"),
        Templates("spec.worker", "spec", replicas, "spec"),
    ),
    _dask(
        "DaskJob",
        "daskjobs",
        Templates("spec.job", "spec", form="spec"),
        Templates("spec.cluster.spec.scheduler", "spec", form="spec"),
        Templates("spec.cluster.spec.worker", "spec", replicas, "spec"),
    ),
    _dask("DaskWorkerGroup", "daskworkergroups", Templates("spec.worker", "spec", replicas, "spec")),
)
