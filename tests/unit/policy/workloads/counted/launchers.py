"""Workloads of the kinds in webhook/policy/workloads/kinds/launchers.yaml, and how many GPUs their pods hold."""

from tests.builders import WorkloadBuilder, a_workload
from tests.builders.operators import CPU_POD, GPU_POD, HEAD, MODEL, a_jobset, a_lws, a_podcliqueset, a_raycluster

PAIR = {"workerTemplate": GPU_POD, "size": 2}

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a JobSet": (a_jobset(2, parallelism=4, completions=4), 8),
    "a JobSet whose jobs need fewer": (a_jobset(2, parallelism=4, completions=1), 2),
    "an LWS with a leader": (
        a_lws(replicas=2, leaderWorkerTemplate={"leaderTemplate": GPU_POD, "workerTemplate": GPU_POD, "size": 4}),
        8,
    ),
    "an LWS whose leader holds none": (
        a_lws(replicas=2, leaderWorkerTemplate={"leaderTemplate": CPU_POD, "workerTemplate": GPU_POD, "size": 4}),
        6,
    ),
    "an LWS without a leader's template": (
        a_lws(replicas=2, leaderWorkerTemplate={"workerTemplate": GPU_POD, "size": 4}),
        8,
    ),
    "an LWS that leaves all out": (a_lws(leaderWorkerTemplate={"workerTemplate": GPU_POD}), 1),
    "an LWS of leaders alone": (a_lws(leaderWorkerTemplate={"leaderTemplate": GPU_POD, "workerTemplate": GPU_POD}), 1),
    "a DisaggregatedSet": (
        a_workload(
            "disaggregatedset.x-k8s.io/v1",
            "DisaggregatedSet",
            roles=[
                {"name": name, "spec": a_lws(replicas=groups, leaderWorkerTemplate=PAIR).json()["spec"]}
                for name, groups in (("prefill", 2), ("decode", 3))
            ],
        ),
        10,
    ),
    "Ray workers": (a_raycluster(replicas=2, minReplicas=0, maxReplicas=4), 2),
    "Ray workers of several hosts": (a_raycluster(replicas=2, numOfHosts=4), 8),
    "Ray workers that leave replicas out": (a_raycluster(minReplicas=3, maxReplicas=4), 3),
    "Ray workers that leave all out": (a_raycluster(), 0),
    "Ray workers below their least": (a_raycluster(replicas=1, minReplicas=3), 3),
    "Ray workers as the API server completes them": (a_raycluster(replicas=4, maxReplicas=2147483647), 4),
    "Ray workers above their most": (a_raycluster(replicas=9, maxReplicas=4), 4),
    "Ray workers that are suspended": (a_raycluster(replicas=2, suspend=True), 0),
    "a RayJob": (a_workload("ray.io/v1", "RayJob", rayClusterSpec=a_raycluster(replicas=2).json()["spec"]), 2),
    "a RayJob on a cluster that runs": (a_workload("ray.io/v1", "RayJob", clusterSelector={"x": "y"}), 0),
    "a RayJob whose submitter asks for a GPU": (
        a_workload(
            "ray.io/v1", "RayJob", rayClusterSpec=a_raycluster(replicas=2).json()["spec"], submitterPodTemplate=GPU_POD
        ),
        3,
    ),
    "a RayJob that is submitted without a pod": (
        a_workload("ray.io/v1", "RayJob", submissionMode="HTTPMode", submitterPodTemplate=GPU_POD),
        0,
    ),
    "a Volcano Job": (a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=[{"replicas": 3, "template": GPU_POD}]), 3),
    "a Volcano CronJob": (
        a_workload(
            "batch.volcano.sh/v1alpha1",
            "CronJob",
            jobTemplate={"spec": {"minAvailable": 1, "tasks": [{"replicas": 3, "template": GPU_POD}]}},
        ),
        3,
    ),
    "a PodCliqueSet": (a_podcliqueset(1), 2),
    "a PodCliqueSet of replicas": (a_podcliqueset(3), 6),
    "a PodCliqueSet that leaves replicas out": (a_podcliqueset(None), 0),
    "a clique in a scaling group": (a_podcliqueset(2, {"name": "all", "replicas": 3, "cliqueNames": ["prefill"]}), 12),
    "a clique beside a scaling group": (
        a_podcliqueset(2, {"name": "all", "replicas": 3, "cliqueNames": ["router"]}),
        4,
    ),
    "a PodClique": (a_workload("grove.io/v1alpha1", "PodClique", replicas=2, podSpec=HEAD), 2),
    "a KaiwoJob": (a_workload("kaiwo.silogen.ai/v1alpha1", "KaiwoJob", job={"spec": {"template": GPU_POD}}), 1),
    "a KaiwoJob on Ray": (
        a_workload(
            "kaiwo.silogen.ai/v1alpha1",
            "KaiwoJob",
            ray=True,
            rayJob={"spec": {"rayClusterSpec": a_raycluster(replicas=2).json()["spec"]}},
        ),
        2,
    ),
    "a Slurm NodeSet": (a_workload("slinky.slurm.net/v1alpha1", "NodeSet", replicas=2, template=GPU_POD), 2),
    "a Slurm NodeSet whose slurmd asks": (
        a_workload("slinky.slurm.net/v1beta1", "NodeSet", replicas=2, slurmd=MODEL, template=CPU_POD),
        2,
    ),
    "a Slurm NodeSet on every node, as far as can be told": (
        a_workload("slinky.slurm.net/v1beta1", "NodeSet", replicas=2, scalingMode="DaemonSet", slurmd=MODEL),
        1,
    ),
    "a RunaiJob": (a_workload("run.ai/v1", "RunaiJob", template=GPU_POD, parallelism=2), 2),
    "a RayCronJob": (
        a_workload("ray.io/v1", "RayCronJob", jobTemplate={"rayClusterSpec": {"headGroupSpec": {"template": GPU_POD}}}),
        1,
    ),
}
