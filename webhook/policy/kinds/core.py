"""Kubernetes' own kinds: they say nothing of what runs in them, a Job and a CronJob but a little. Data."""

from webhook.policy import pod_counts as pods
from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Row, Templates, present
from webhook.policy.pod_counts import PodCount

_DOCS = "https://kubernetes.io/docs/concepts/workloads/"


def _apps(kind: str, plural: str, count: PodCount = pods.replicas, group: str = "apps") -> Row:
    return Row(group, kind, plural, f"{_DOCS}controllers/", templates=(Templates("spec", "template", count),))


def _job(kind: str, plural: str, spec: str) -> Row:
    return Row(
        "batch",
        kind,
        plural,
        f"{_DOCS}controllers/job/",
        usual=WorkloadType.BATCH,
        before_usual=("command", "name"),  # a Job ends, whatever image it takes and whatever port that exposes
        labels=present("batch.kubernetes.io/job-name"),
        templates=(Templates(spec, "template", pods.job_pods),),
    )


CORE_KINDS = (
    Row("", "Pod", "pods", _DOCS, templates=(Templates("", ""),)),
    _apps("Deployment", "deployments"),
    _apps("ReplicaSet", "replicasets"),
    _apps("StatefulSet", "statefulsets"),
    _apps("DaemonSet", "daemonsets", pods.one),
    _apps("ReplicationController", "replicationcontrollers", group=""),
    _job("Job", "jobs", "spec"),
    _job("CronJob", "cronjobs", "spec.jobTemplate.spec"),
)
