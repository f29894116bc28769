"""Kubernetes' own kinds: they say nothing of what runs in them, a Job and a CronJob but a little. Data."""

from msgspec.structs import replace

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.table import (
    ENDING_SOURCES,
    EVERY_SOURCE,
    Between,
    KindRow,
    Source,
    Templates,
    present,
)
from webhook.policy.workloads.pod_counts import GroupCount, PodCount
from webhook.policy.workloads.workload_types import WorkloadType

_KRUISE = "https://github.com/openkruise/kruise/tree/master/config/crd/bases"
_OPENSHIFT = "https://github.com/openshift/api/tree/master/apps/v1"
_KEDA = "https://github.com/kedacore/keda/tree/main/config/crd/bases"
_DOCS = "https://kubernetes.io/docs/concepts/workloads/"


_FOR_GOOD: tuple[Source, ...] = (*EVERY_SOURCE, "listens", "around")
"""A server never ends and listens: so a port tells that somebody asks it."""


def _apps(
    kind: str,
    plural: str,
    count: PodCount = pods.replicas,
    group: str = "apps",
    source: str = f"{_DOCS}controllers/",
) -> KindRow:
    return KindRow(
        group, kind, plural, source, before_usual=_FOR_GOOD, templates=(Templates("spec", "template", count),)
    )


def _job(
    kind: str,
    plural: str,
    spec: str,
    group: str = "batch",
    source: str = f"{_DOCS}controllers/job/",
    count: PodCount = pods.job_pods,
    *,
    gang: bool = False,
    between: tuple[Between, ...] = (),
    left: GroupCount | None = None,
) -> KindRow:
    return KindRow(
        group,
        kind,
        plural,
        source,
        usual=WorkloadType.BATCH,
        before_usual=ENDING_SOURCES,
        labels=present("batch.kubernetes.io/job-name"),
        gang=gang,
        templates=(Templates(spec, "template", count, left=left, between=between),),
    )


JOB = _job("Job", "jobs", "spec", gang=True, left=pods.job_pods_left)
DEPLOYMENT = _apps("Deployment", "deployments")

CORE_KINDS = (
    KindRow("", "Pod", "pods", _DOCS, templates=(Templates("", ""),)),
    DEPLOYMENT,
    _apps("ReplicaSet", "replicasets"),
    _apps("StatefulSet", "statefulsets"),
    _apps("DaemonSet", "daemonsets", pods.one_per_node),
    _apps("ReplicationController", "replicationcontrollers", group=""),
    _apps("CloneSet", "clonesets", group="apps.kruise.io", source=_KRUISE),
    _apps("StatefulSet", "statefulsets", group="apps.kruise.io", source=_KRUISE),
    _apps("DaemonSet", "daemonsets", pods.one_per_node, group="apps.kruise.io", source=_KRUISE),
    _apps("DeploymentConfig", "deploymentconfigs", group="apps.openshift.io", source=_OPENSHIFT),
    _apps(
        "Rollout",
        "rollouts",
        group="argoproj.io",
        source="https://github.com/argoproj/argo-rollouts/tree/master/manifests/crds",
    ),
    JOB,
    replace(
        _job("CronJob", "cronjobs", "spec.jobTemplate.spec", between=(Between("spec.jobTemplate.metadata", JOB),)),
        recurs=True,
    ),
    _job("BroadcastJob", "broadcastjobs", "spec", group="apps.kruise.io", count=pods.one, source=_KRUISE),
    replace(_job("ScaledJob", "scaledjobs", "spec.jobTargetRef", group="keda.sh", source=_KEDA), recurs=True),
)
