"""Kinds that train: the operator exists for nothing else. Data."""

from webhook.policy import pod_counts as pods
from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Row, Templates, present

_TRAINING_OPERATOR = "https://github.com/kubeflow/trainer/tree/release-1.9"
_MPI_OPERATOR = "https://github.com/kubeflow/mpi-operator"
_KATIB = "https://github.com/kubeflow/katib"


def _kubeflow(kind: str, plural: str, specs: str, source: str = _TRAINING_OPERATOR) -> Row:
    label = "training.kubeflow.org/job-name"
    templates = (Templates(f"spec.{specs}.*", "template", pods.replicas),)
    return Row(
        "kubeflow.org",
        kind,
        plural,
        source,
        WorkloadType.TRAINING,
        labels=present(label),
        gang_label=label,
        templates=templates,
    )


def _katib(kind: str, plural: str) -> Row:
    label = f"katib.kubeflow.org/{kind.lower()}"
    return Row("kubeflow.org", kind, plural, _KATIB, WorkloadType.TRAINING, labels=present(label))


TRAINING_KINDS = (
    _kubeflow("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _kubeflow("MPIJob", "mpijobs", "mpiReplicaSpecs", _MPI_OPERATOR),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    _katib("Experiment", "experiments"),
    _katib("Trial", "trials"),
    Row(
        "trainer.kubeflow.org",
        "TrainJob",
        "trainjobs",
        "https://github.com/kubeflow/trainer",
        WorkloadType.TRAINING,
        templates=(Templates("spec", "trainer.resourcesPerNode", pods.train_nodes, "resources"),),
    ),
    Row(
        "elastic.iml.github.io",
        "ElasticJob",
        "elasticjobs",
        "https://github.com/intelligent-machine-learning/dlrover",
        WorkloadType.TRAINING,
        labels=present("elasticjob.dlrover/name"),
        templates=(Templates("spec.replicaSpecs.*", "template", pods.replicas),),
    ),
)
