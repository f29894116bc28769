"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie. Data, no decision.

A new operator is a row here and an example, not a class. `type` is what the kind proves. `usual` is what it is
mostly used for, where the kind is a general launcher and proves nothing. Sources stand in docs/workloads.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.policy import pod_counts as pods
from webhook.policy.facts import Kind
from webhook.policy.pod_counts import PodCount
from webhook.policy.tier_policy import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

Form = Literal["template", "spec", "resources"]
"""What lies at a template's place: a pod template, a pod spec without metadata, or one container's resources."""


@dataclass(frozen=True, slots=True)
class Templates:
    """Where pod templates lie: at `path` below each `holder`; `*` in that is each list item or map value.

    `count` tells from the holder how many pods each makes. `containers` are fields beside `containers` that hold one
    container each, as KServe has them.
    """

    holder: str
    path: str
    count: PodCount = pods.one
    form: Form = "template"
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of workload. `labels` are those that its operator puts on its pods, a value where only that one tells.

    `gang_label` is the one of them by which a member that asks for no GPU is known to share its gang's tier.
    """

    group: str
    kind: str
    plural: str
    type: WorkloadType | None = None
    usual: WorkloadType | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    gang_label: str | None = None
    templates: tuple[Templates, ...] = ()


def _any(*keys: str) -> Mapping[str, str | None]:
    return dict.fromkeys(keys)


def _apps(kind: str, plural: str, count: PodCount = pods.replicas, group: str = "apps") -> Row:
    return Row(group, kind, plural, templates=(Templates("spec", "template", count),))


def _kubeflow(kind: str, plural: str, specs: str) -> Row:
    label = "training.kubeflow.org/job-name"
    templates = Templates(f"spec.{specs}.*", "template", pods.replicas)
    return Row("kubeflow.org", kind, plural, TRAINING, None, _any(label), label, (templates,))


def _ray(kind: str, plural: str, cluster: str, *, usual: WorkloadType | None = None, serve: bool = False) -> Row:
    label = "ray.io/cluster"
    templates = (
        Templates(cluster, "headGroupSpec.template"),
        Templates(f"{cluster}.workerGroupSpecs.*", "template", pods.ray_workers),
    )
    labels = _any(label, "ray.io/serve") if serve else _any(label)
    return Row("ray.io", kind, plural, SERVING if serve else None, usual, labels, label, templates)


_KSERVE_CONTAINERS = (
    *("model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm"),
    *("paddle", "art"),
)


def _kserve(component: str) -> Templates:
    return Templates(f"spec.{component}", "", pods.kserve_replicas, "spec", _KSERVE_CONTAINERS)


KINDS = (
    Row("", "Pod", "pods", templates=(Templates("", ""),)),
    _apps("Deployment", "deployments"),
    _apps("ReplicaSet", "replicasets"),
    _apps("StatefulSet", "statefulsets"),
    _apps("DaemonSet", "daemonsets", pods.one),
    _apps("ReplicationController", "replicationcontrollers", group=""),
    Row(
        "batch",
        "Job",
        "jobs",
        usual=BATCH,
        labels=_any("batch.kubernetes.io/job-name"),
        templates=(Templates("spec", "template", pods.job_pods),),
    ),
    Row(
        "batch",
        "CronJob",
        "cronjobs",
        usual=BATCH,
        labels=_any("batch.kubernetes.io/job-name"),
        templates=(Templates("spec.jobTemplate.spec", "template", pods.job_pods),),
    ),
    _kubeflow("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _kubeflow("MPIJob", "mpijobs", "mpiReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    Row(
        "kubeflow.org",
        "Notebook",
        "notebooks",
        INTERACTIVE,
        labels=_any("notebook-name"),
        templates=(Templates("", "spec.template", pods.notebook_pods),),
    ),
    Row(
        "trainer.kubeflow.org",
        "TrainJob",
        "trainjobs",
        TRAINING,
        templates=(Templates("spec", "trainer.resourcesPerNode", pods.train_nodes, "resources"),),
    ),
    Row(
        "jobset.x-k8s.io",
        "JobSet",
        "jobsets",
        usual=TRAINING,
        labels=_any("jobset.sigs.k8s.io/jobset-name"),
        gang_label="jobset.sigs.k8s.io/jobset-name",
        templates=(Templates("spec.replicatedJobs.*", "template.spec.template", pods.jobset_pods),),
    ),
    Row(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        usual=SERVING,
        labels=_any("leaderworkerset.sigs.k8s.io/name"),
        gang_label="leaderworkerset.sigs.k8s.io/name",
        templates=(
            Templates("spec", "leaderWorkerTemplate.leaderTemplate", pods.replicas),
            Templates("spec", "leaderWorkerTemplate.workerTemplate", pods.group_workers),
        ),
    ),
    _ray("RayCluster", "rayclusters", "spec", usual=INTERACTIVE),
    _ray("RayJob", "rayjobs", "spec.rayClusterSpec", usual=BATCH),
    _ray("RayService", "rayservices", "spec.rayClusterConfig", serve=True),
    Row(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        SERVING,
        labels=_any("serving.kserve.io/inferenceservice"),
        templates=(
            _kserve("predictor"),
            _kserve("transformer"),
            _kserve("explainer"),
            Templates("spec.predictor", "workerSpec", pods.kserve_workers, "spec"),
        ),
    ),
    Row(
        "serving.kserve.io",
        "LLMInferenceService",
        "llminferenceservices",
        SERVING,
        labels={"app.kubernetes.io/part-of": "llminferenceservice"},
        templates=(
            Templates("spec", "template", pods.replicas, "spec"),
            Templates("spec", "worker", pods.llm_workers, "spec"),
            Templates("spec.prefill", "template", pods.replicas, "spec"),
            Templates("spec.prefill", "worker", pods.llm_workers, "spec"),
        ),
    ),
)

ROW_OF: dict[Kind, Row] = {Kind(row.group, row.kind): row for row in KINDS}
