"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie. Data, no decision.

A new operator is a row here and an example, not a class. `type` is what the kind proves. `usual` is what it is
mostly used for, where the kind is a general launcher and proves nothing. Sources stand in docs/workloads.md.
"""

from dataclasses import dataclass

from webhook.policy.facts import Kind
from webhook.policy.tier_policy import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType


@dataclass(frozen=True, slots=True)
class Templates:
    """Where pod templates lie. `counts` are multiplied; `*` in them stands for what it matched in `path`.

    `bare` marks a pod spec without metadata around it, as KServe has it; `less` is taken off the count.
    """

    path: str
    counts: tuple[str, ...] = ()
    less: int = 0
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of workload."""

    group: str
    kind: str
    plural: str
    type: WorkloadType | None = None
    usual: WorkloadType | None = None
    labels: tuple[str, ...] = ()
    templates: tuple[Templates, ...] = ()


_TEMPLATE = Templates("spec.template", ("spec.replicas",))
_KUBEFLOW_LABELS = ("training.kubeflow.org/job-name",)


def _kubeflow(kind: str, plural: str, field: str) -> Row:
    replicas = Templates(f"spec.{field}.*.template", (f"spec.{field}.*.replicas",))
    return Row("kubeflow.org", kind, plural, TRAINING, labels=_KUBEFLOW_LABELS, templates=(replicas,))


def _ray(kind: str, plural: str, cluster: str, kind_type: WorkloadType | None, usual: WorkloadType | None) -> Row:
    worker = f"{cluster}.workerGroupSpecs.*"
    templates = (
        Templates(f"{cluster}.headGroupSpec.template"),
        Templates(f"{worker}.template", (f"{worker}.replicas", f"{worker}.numOfHosts")),
    )
    return Row("ray.io", kind, plural, kind_type, usual, ("ray.io/cluster",), templates)


KINDS = (
    Row("apps", "Deployment", "deployments", templates=(_TEMPLATE,)),
    Row("apps", "ReplicaSet", "replicasets", templates=(_TEMPLATE,)),
    Row("apps", "StatefulSet", "statefulsets", templates=(_TEMPLATE,)),
    Row("apps", "DaemonSet", "daemonsets", templates=(Templates("spec.template"),)),
    Row("", "ReplicationController", "replicationcontrollers", templates=(_TEMPLATE,)),
    Row(
        "batch",
        "Job",
        "jobs",
        usual=BATCH,
        labels=("batch.kubernetes.io/job-name",),
        templates=(Templates("spec.template", ("spec.parallelism",)),),
    ),
    Row(
        "batch",
        "CronJob",
        "cronjobs",
        usual=BATCH,
        templates=(Templates("spec.jobTemplate.spec.template", ("spec.jobTemplate.spec.parallelism",)),),
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
        labels=("notebook-name",),
        templates=(Templates("spec.template"),),
    ),
    Row("trainer.kubeflow.org", "TrainJob", "trainjobs", TRAINING),
    Row(
        "jobset.x-k8s.io",
        "JobSet",
        "jobsets",
        usual=TRAINING,
        labels=("jobset.sigs.k8s.io/jobset-name",),
        templates=(
            Templates(
                "spec.replicatedJobs.*.template.spec.template",
                ("spec.replicatedJobs.*.replicas", "spec.replicatedJobs.*.template.spec.parallelism"),
            ),
        ),
    ),
    Row(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        usual=SERVING,
        labels=("leaderworkerset.sigs.k8s.io/name",),
        templates=(
            Templates("spec.leaderWorkerTemplate.leaderTemplate", ("spec.replicas",)),
            Templates(
                "spec.leaderWorkerTemplate.workerTemplate",
                ("spec.leaderWorkerTemplate.size", "spec.replicas"),
                less=1,
            ),
        ),
    ),
    _ray("RayCluster", "rayclusters", "spec", None, INTERACTIVE),
    _ray("RayJob", "rayjobs", "spec.rayClusterSpec", BATCH, None),
    _ray("RayService", "rayservices", "spec.rayClusterConfig", SERVING, None),
    Row(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        SERVING,
        labels=("serving.kserve.io/inferenceservice",),
        templates=(Templates("spec.predictor", ("spec.predictor.minReplicas",), bare=True),),
    ),
    Row(
        "serving.kserve.io",
        "LLMInferenceService",
        "llminferenceservices",
        SERVING,
        templates=(
            Templates("spec.template", ("spec.replicas",), bare=True),
            Templates("spec.worker", bare=True),
        ),
    ),
)

ROW_OF: dict[Kind, Row] = {Kind(row.group, row.kind): row for row in KINDS}
