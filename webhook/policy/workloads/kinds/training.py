"""Kinds of training operators. Data.

A kind proves training where its operator exists for nothing else. Two start processes of any program, by MPI and by
JAX: those usually train.
"""

from functools import partial

from msgspec.structs import replace

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.core import JOB
from webhook.policy.workloads.kinds.launchers import JOB_SET
from webhook.policy.workloads.kinds.table import (
    ENDING_SOURCES,
    Between,
    KindRow,
    RuntimeKinds,
    Source,
    Templates,
    present,
)
from webhook.policy.workloads.pod_counts import GroupCount, elastic_workers, needed_in_stage, once, trials_at_once
from webhook.policy.workloads.training_runtime import node_alone, with_runtime
from webhook.policy.workloads.workload_types import WorkloadType

_TRAINING_OPERATOR = "https://github.com/kubeflow/trainer/tree/release-1.9/manifests/base/crds"
_MPI_OPERATOR = "https://github.com/kubeflow/mpi-operator/tree/master/pkg/apis/kubeflow/v2beta1"
_KATIB = "https://github.com/kubeflow/katib/tree/master/manifests/v1beta1/components/crd"

_RUN: tuple[Source, ...] = ("command", "task")
"""They train, unless what they run is plainly something else: captioning on many nodes, a shell that waits."""
_trains = partial(KindRow, type=WorkloadType.TRAINING, unless=_RUN)

_JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_TRAINING_RUNTIME = RuntimeKinds(
    group="trainer.kubeflow.org",
    plurals={"ClusterTrainingRuntime": "clustertrainingruntimes", "TrainingRuntime": "trainingruntimes"},
    cluster_wide=frozenset({"ClusterTrainingRuntime"}),
    reference="spec.runtimeRef",
    merged=with_runtime,
)

_KUBEFLOW_FIELDS = ("pytorch", "tf", "mpi", "xgb", "jax", "paddle")


def _kubeflow(kind: str, plural: str, specs: str, *, scales: bool = False) -> KindRow:
    label = "training.kubeflow.org/job-name"
    return _trains(
        "kubeflow.org",
        kind,
        plural,
        _TRAINING_OPERATOR,
        labels={label: None, "training.kubeflow.org/operator-name": f"{kind.lower()}-controller"},
        gang=True,
        gang_label=label,
        scale=f"spec.{specs}.Worker.replicas" if scales else "",
        templates=(Templates(f"spec.{specs}.*", "template", pods.replicas, least=elastic_workers),),
    )


def _usually_trains(row: KindRow, source: str) -> KindRow:
    """The row of a kind that starts processes of any program: solvers, benchmarks and renderings too.

    Of the labelled MPIJobs fewer than half train (tests/workloads).
    """
    labels = {key: value for key, value in row.labels.items() if value is None}
    return replace(row, source=source, type=None, unless=(), usual=row.type, before_usual=ENDING_SOURCES, labels=labels)


def _katib(kind: str, plural: str, run: str, times: GroupCount) -> KindRow:
    """Trials are Jobs or one of Kubeflow's kinds."""
    templates = (
        Templates(run, "template", pods.job_pods, times=times),
        *(
            Templates(f"{run}.{field}ReplicaSpecs.*", "template", pods.replicas, times=times)
            for field in _KUBEFLOW_FIELDS
        ),
        Templates(run, "trainer.resourcesPerNode", pods.train_nodes, "resources", times=times, made=node_alone),
    )
    of_trial = (Between(f"{run.removesuffix('.spec')}.metadata"),)
    templates = tuple(replace(each, between=of_trial) for each in templates)
    label = f"katib.kubeflow.org/{kind.lower()}"
    return _trains("kubeflow.org", kind, plural, _KATIB, labels=present(label), templates=templates)


def _run_ai(kind: str, plural: str) -> KindRow:
    """A kind whose GPUs and commands stand in fields of its own."""
    return KindRow("run.ai", kind, plural, "https://github.com/run-ai/docs", WorkloadType.TRAINING)


TRAINING_KINDS = (
    _kubeflow("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", scales=True),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _usually_trains(_kubeflow("MPIJob", "mpijobs", "mpiReplicaSpecs"), _MPI_OPERATOR),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _usually_trains(_kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs", scales=True), _TRAINING_OPERATOR),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs", scales=True),
    _trains(
        "sagemaker.amazonaws.com",
        "HyperPodPyTorchJob",
        "hyperpodpytorchjobs",
        "https://github.com/aws/sagemaker-hyperpod-recipes/tree/main/launcher/nemo/k8s_templates/training",
        gang=True,
        templates=(Templates("spec.replicaSpecs.*", "template", pods.replicas),),
    ),
    _katib("Experiment", "experiments", "spec.trialTemplate.trialSpec.spec", trials_at_once),
    _katib("Trial", "trials", "spec.runSpec.spec", once),
    KindRow(
        "kai.alibabacloud.com",
        "TrainingJob",
        "trainingjobs",
        "https://github.com/AliyunContainerService/et-operator/tree/master/config/crd/bases",
        WorkloadType.TRAINING,
        labels=present("training-job-name"),
        gang=True,
        templates=(Templates("spec.etReplicaSpecs.*", "template", pods.replicas),),
    ),
    _trains(
        "trainer.kubeflow.org",
        "TrainJob",
        "trainjobs",
        "https://github.com/kubeflow/trainer/tree/master/manifests/base/crds",
        runs=("spec.trainer",),
        labels=present(_JOBSET_LABEL),
        gang=True,
        gang_label=_JOBSET_LABEL,  # an MPI launcher asks for no GPU
        runtime=_TRAINING_RUNTIME,
        templates=(
            Templates("spec", "trainer.resourcesPerNode", pods.train_nodes, "resources", made=node_alone),
            Templates(
                "runtime.spec.template.spec.replicatedJobs.*",
                "template.spec.template",
                pods.jobset_pods,
                least=needed_in_stage("runtime.spec.template.spec.replicatedJobs"),
                between=(
                    Between("runtime.spec.template.spec.replicatedJobs.*.template.metadata", JOB),
                    Between("runtime.spec.template.metadata", JOB_SET),
                ),
            ),
        ),
    ),
    _trains(
        "elastic.iml.github.io",
        "ElasticJob",
        "elasticjobs",
        "https://github.com/intelligent-machine-learning/dlrover/tree/master/go/elasticjob",
        labels=present("elasticjob.dlrover/name"),
        gang_label="elasticjob.dlrover/name",  # its master asks for no GPU
        templates=(Templates("spec.replicaSpecs.*", "template", pods.replicas),),
    ),
    _run_ai("TrainingWorkload", "trainingworkloads"),
    _run_ai("DistributedWorkload", "distributedworkloads"),
)
