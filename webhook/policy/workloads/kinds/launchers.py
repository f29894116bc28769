"""General launchers: people run anything on them. The kind proves nothing, what runs in its pods tells more. Data."""

from msgspec.structs import replace

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.core import JOB
from webhook.policy.workloads.kinds.table import ENDING_SOURCES, Between, KindRow, Source, Templates, present
from webhook.policy.workloads.pod_counts import (
    GroupCount,
    clique_groups,
    least_ray_workers,
    needed_in_stage,
    needed_of_task,
    once,
    one_group,
    ray_workers,
)
from webhook.policy.workloads.workload_types import WorkloadType

_TRAINING, SERVING, _BATCH, _INTERACTIVE = WorkloadType
_KUBERAY = "https://github.com/ray-project/kuberay/tree/master/ray-operator/config/crd/bases"
_KAIWO = "https://github.com/silogen/kaiwo/tree/main/apis/kaiwo/v1alpha1"
_GROVE = "https://github.com/ai-dynamo/grove/tree/main/operator/api/core/v1alpha1"
_RAY_LABEL = "ray.io/cluster"
_RAY_MADE = "ray.io/originated-from-cr-name"
"""KubeRay 1.7 and newer writes it on the pod that submits a RayJob."""

_NO_PORTS: tuple[Source, ...] = ("command", "variable", "image", "name")
"""Their pods listen for one another."""


def ray_cluster(place: str, times: GroupCount = once, between: tuple[Between, ...] = ()) -> tuple[Templates, Templates]:
    """The head's and each worker group's, in the RayClusterSpec at a place, wherever an operator embeds one."""
    return (
        Templates(place, "headGroupSpec.template", times=times, between=between),
        Templates(
            f"{place}.workerGroupSpecs.*",
            "template",
            ray_workers,
            times=times,
            least=least_ray_workers,
            between=between,
        ),
    )


def _ray_job(kind: str, plural: str, spec: str) -> KindRow:
    """A cluster, and a pod that submits to it what runs on it."""
    row = _ray(kind, plural, f"{spec}.rayClusterSpec", _BATCH, runs=f"{spec}.entrypoint")
    submitter = Templates(spec, "submitterPodTemplate", pods.ray_submitters)
    labels = present(_RAY_LABEL, _RAY_MADE)
    return replace(row, labels=labels, gang_label=_RAY_MADE, templates=(*row.templates, submitter))


def _ray(kind: str, plural: str, cluster: str, usual: WorkloadType, *, runs: str = "") -> KindRow:
    return KindRow(
        "ray.io",
        kind,
        plural,
        _KUBERAY,
        usual=usual,
        before_usual=ENDING_SOURCES if runs else _NO_PORTS,
        runs=(runs,) if runs else (),
        labels=present(_RAY_LABEL),
        gang=True,
        gang_label=_RAY_LABEL,
        templates=ray_cluster(cluster),
    )


def _grove(kind: str, plural: str, *templates: Templates) -> KindRow:
    label = "grove.io/podgang"
    return KindRow(
        "grove.io",
        kind,
        plural,
        _GROVE,
        usual=SERVING,
        labels=present(label),
        gang_label=label,
        templates=templates,
    )


_LEADER_WORKER_SET = KindRow(
    "leaderworkerset.x-k8s.io",
    "LeaderWorkerSet",
    "leaderworkersets",
    "https://github.com/kubernetes-sigs/lws/tree/main/api/leaderworkerset/v1",
    usual=SERVING,
    labels=present("leaderworkerset.sigs.k8s.io/name"),
    gang=True,
    gang_label="leaderworkerset.sigs.k8s.io/name",
    scale="spec.replicas",
    templates=(
        Templates("spec", "leaderWorkerTemplate.leaderTemplate", pods.replicas, least=once),
        Templates("spec", "leaderWorkerTemplate.workerTemplate", pods.group_workers, least=one_group),
    ),
)
_DISAGGREGATED_SET = replace(
    _LEADER_WORKER_SET,
    group="disaggregatedset.x-k8s.io",
    kind="DisaggregatedSet",
    plural="disaggregatedsets",
    source="https://github.com/kubernetes-sigs/lws/tree/main/api/disaggregatedset/v1",
    labels=present("disaggregatedset.x-k8s.io/name"),
    gang=False,
    scale="",
    templates=tuple(
        replace(
            each,
            holder="spec.roles.*.spec",
            least=None,
            between=(Between("spec.roles.*.metadata", _LEADER_WORKER_SET),),
        )
        for each in _LEADER_WORKER_SET.templates
    ),
)
"""A LeaderWorkerSet for each of its roles, each a gang of its own."""
_VOLCANO_JOB = KindRow(
    "batch.volcano.sh",
    "Job",
    "jobs",
    "https://github.com/volcano-sh/volcano/tree/master/config/crd/volcano/bases",
    usual=_BATCH,
    before_usual=ENDING_SOURCES,
    labels=present("volcano.sh/job-name"),
    gang=True,
    gang_label="volcano.sh/job-name",
    class_field="spec.priorityClassName",
    templates=(Templates("spec.tasks.*", "template", pods.replicas, least=needed_of_task),),
)
_VOLCANO_CRON_JOB = replace(
    _VOLCANO_JOB,
    kind="CronJob",
    plural="cronjobs",
    gang=False,
    recurs=True,
    class_field="spec.jobTemplate.spec.priorityClassName",
    templates=(
        Templates(
            "spec.jobTemplate.spec.tasks.*",
            "template",
            pods.replicas,
            between=(Between("spec.jobTemplate.metadata", _VOLCANO_JOB),),
        ),
    ),
)
RAY_CLUSTER = _ray("RayCluster", "rayclusters", "spec", _INTERACTIVE)
_RAY_JOB = _ray_job("RayJob", "rayjobs", "spec")
JOB_SET = KindRow(
    "jobset.x-k8s.io",
    "JobSet",
    "jobsets",
    "https://github.com/kubernetes-sigs/jobset/tree/main/api/jobset/v1alpha2",
    usual=_TRAINING,
    before_usual=(*_NO_PORTS, "server"),
    labels=present("jobset.sigs.k8s.io/jobset-name"),
    gang=True,
    gang_label="jobset.sigs.k8s.io/jobset-name",
    templates=(
        Templates(
            "spec.replicatedJobs.*",
            "template.spec.template",
            pods.jobset_pods,
            least=needed_in_stage("spec.replicatedJobs"),
            between=(Between("spec.replicatedJobs.*.template.metadata", JOB),),
        ),
    ),
)


LAUNCHER_KINDS = (
    JOB_SET,
    _LEADER_WORKER_SET,
    _DISAGGREGATED_SET,
    RAY_CLUSTER,
    _RAY_JOB,
    replace(_ray_job("RayCronJob", "raycronjobs", "spec.jobTemplate"), gang=False, recurs=True),
    _VOLCANO_JOB,
    _VOLCANO_CRON_JOB,
    _grove(
        "PodCliqueSet",
        "podcliquesets",
        Templates(
            "spec.template.cliques.*", "spec.podSpec", pods.counted_at("spec.replicas"), "spec", times=clique_groups
        ),
    ),
    _grove("PodClique", "podcliques", Templates("spec", "podSpec", pods.replicas, "spec")),
    _grove("PodCliqueScalingGroup", "podcliquescalinggroups"),
    KindRow(
        "kaiwo.silogen.ai",
        "KaiwoJob",
        "kaiwojobs",
        _KAIWO,
        usual=_BATCH,
        before_usual=ENDING_SOURCES,
        runs=("spec.entrypoint", "spec.rayJob.spec.entrypoint"),
        gpu_fields=("spec.gpus", "spec.gpusPerReplica"),
        labels={"kaiwo.silogen.ai/type": "job"},
        templates=(
            Templates("spec.job.spec", "template", pods.job_pods, between=(Between("spec.job.metadata", JOB),)),
            *ray_cluster("spec.rayJob.spec.rayClusterSpec", between=(Between("spec.rayJob.metadata", _RAY_JOB),)),
        ),
    ),
    KindRow(
        "slinky.slurm.net",
        "NodeSet",
        "nodesets",
        "https://github.com/SlinkyProject/slurm-operator/tree/main/api/v1beta1",
        usual=_BATCH,
        before_usual=(),
        labels={"app.kubernetes.io/name": "slurmd"},
        templates=(
            Templates("spec", "slurmd", pods.node_set_pods, "container", between=(Between("spec.template.metadata"),)),
            Templates("spec", "template", pods.node_set_pods),
        ),
    ),
    KindRow(
        "run.ai",
        "RunaiJob",
        "runaijobs",
        "https://github.com/NVIDIA/KAI-Scheduler/tree/main/pkg/podgrouper/podgrouper/plugins/runaijob",
        usual=_TRAINING,
        before_usual=ENDING_SOURCES,
        templates=(Templates("spec", "template", pods.job_pods),),
    ),
)
