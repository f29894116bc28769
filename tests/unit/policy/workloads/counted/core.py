"""Workloads of the kinds in webhook/policy/workloads/kinds/core.yaml, and how many GPUs their pods hold."""

from tests.builders import WorkloadBuilder, a_deployment, a_job, a_workload
from tests.builders.operators import GPU_POD

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a pod": (a_workload("v1", "Pod", **GPU_POD["spec"]), 1),
    "a Deployment": (a_deployment(replicas=3), 3),
    "a Deployment that leaves replicas out": (a_workload("apps/v1", "Deployment", template=GPU_POD), 1),
    "a Deployment scaled to zero": (a_deployment(replicas=0), 0),
    "a StatefulSet": (a_workload("apps/v1", "StatefulSet", replicas=2, template=GPU_POD), 2),
    "a ReplicationController": (a_workload("v1", "ReplicationController", replicas=2, template=GPU_POD), 2),
    "a DaemonSet, as far as can be told": (a_workload("apps/v1", "DaemonSet", template=GPU_POD), 1),
    "a Job": (a_job(), 1),
    "a parallel Job": (a_job(parallelism=4, completions=8), 4),
    "a Job of which two pods have to succeed yet": (
        a_job(parallelism=4, completions=8).having("status.succeeded", 6),
        2,
    ),
    "a Job of which two have succeeded and three indexes have failed for good": (
        a_job(parallelism=8, completions=8).having("status.succeeded", 2).having("status.failedIndexes", "1,4-5"),
        3,
    ),
    "a Job without completions, of which a pod has succeeded": (
        a_job(parallelism=4).having("status.succeeded", 1).having("status.active", 3),
        3,
    ),
    "a Job that needs fewer than it may run": (a_job(parallelism=4, completions=1), 1),
    "a work queue Job": (a_job(parallelism=4), 4),
    "a CronJob": (
        a_workload("batch/v1", "CronJob", jobTemplate={"spec": {"parallelism": 2, "template": GPU_POD}}),
        2,
    ),
    "a CloneSet": (a_workload("apps.kruise.io/v1alpha1", "CloneSet", replicas=2, template=GPU_POD), 2),
    "a Rollout": (a_workload("argoproj.io/v1alpha1", "Rollout", replicas=2, template=GPU_POD), 2),
    "a StatefulSet of OpenKruise": (
        a_workload("apps.kruise.io/v1beta1", "StatefulSet", replicas=2, template=GPU_POD),
        2,
    ),
    "a DaemonSet of OpenKruise": (a_workload("apps.kruise.io/v1alpha1", "DaemonSet", template=GPU_POD), 1),
    "a DeploymentConfig": (a_workload("apps.openshift.io/v1", "DeploymentConfig", replicas=3, template=GPU_POD), 3),
    "a BroadcastJob": (a_workload("apps.kruise.io/v1alpha1", "BroadcastJob", template=GPU_POD), 1),
    "a ScaledJob": (
        a_workload("keda.sh/v1alpha1", "ScaledJob", jobTargetRef={"parallelism": 2, "template": GPU_POD}),
        2,
    ),
}
