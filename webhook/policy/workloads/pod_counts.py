"""How many pods an operator makes of a template, told from the object that holds it.

Each function takes that holder: a Job's spec, one worker group of a Ray cluster. A field left out has the operator's
default. Each raises Refused where a field is no count of pods. Its docstring stands in docs/workloads.md, with sources.
"""

from collections.abc import Callable
from typing import Any

from webhook.objects.field_paths import at
from webhook.objects.refusal import Refused

Tree = dict[str, Any]
PodCount = Callable[[Tree], int]

MOST_PODS = 1_000_000
"""More pods than any cluster holds: a count above it is a mistake, not a workload."""

NOTEBOOK_STOPPED = "kubeflow-resource-stopped"


def one(_: Tree) -> int:
    """One pod."""
    return 1


def one_per_node(_: Tree) -> int:
    """Counted as one pod; a DaemonSet makes one on each node."""
    return 1


def replicas(holder: Tree) -> int:
    """As many as `replicas` says."""
    return whole(holder, "replicas", 1)


def counted_at(path: str) -> PodCount:
    """As many as the field at a path of the holder says, one where it is absent."""

    def count(holder: Tree) -> int:
        return whole(holder, path, 1)

    count.__doc__ = f"As many as `{path}` says."
    return count


def job_pods(spec: Tree) -> int:
    """As many as the Job runs at once: `parallelism`, at most `completions`."""
    parallelism = whole(spec, "parallelism", 1)
    return min(parallelism, whole(spec, "completions", parallelism))


def jobset_pods(replicated_job: Tree) -> int:
    """The pods of one Job, times `replicas`."""
    job = at(replicated_job, "template.spec")
    return replicas(replicated_job) * job_pods(job if isinstance(job, dict) else {})


def group_workers(spec: Tree) -> int:
    """`replicas` groups of `size` pods, without the leaders if there is a leaderTemplate."""
    leaders = 1 if at(spec, "leaderWorkerTemplate.leaderTemplate") is not None else 0
    return replicas(spec) * max(whole(spec, "leaderWorkerTemplate.size", 1) - leaders, 0)


def ray_workers(group: Tree) -> int:
    """`replicas` within `minReplicas` and `maxReplicas`, times `numOfHosts`; none if the group is suspended."""
    if group.get("suspend") is True:
        return 0
    least = whole(group, "minReplicas", 0)
    wished = min(max(whole(group, "replicas", least), least), _most(group))
    return wished * whole(group, "numOfHosts", 1)


def ray_submitters(spec: Tree) -> int:
    """One pod in `submissionMode: K8sJobMode`, which is the default."""
    return 1 if spec.get("submissionMode") in (None, "", "K8sJobMode") else 0


def _most(group: Tree) -> int:
    """The group's `maxReplicas`. KubeRay's CRD defaults it to 2147483647, which means no bound."""
    said = group.get("maxReplicas")
    return MOST_PODS if isinstance(said, int) and said > MOST_PODS else whole(group, "maxReplicas", MOST_PODS)


def kserve_replicas(component: Tree) -> int:
    """As many as `minReplicas` says; 0 scales to zero."""
    return whole(component, "minReplicas", 1)


def kserve_workers(predictor: Tree) -> int:
    """The pods beside the head of a predictor that spans nodes."""
    return kserve_replicas(predictor) * max(whole(predictor, "workerSpec.pipelineParallelSize", 1) - 1, 0)


def llm_workers(spec: Tree) -> int:
    """The pods beside each group's leader; the parallelism gives the size of a group."""
    data, local = whole(spec, "parallelism.data", 0), whole(spec, "parallelism.dataLocal", 0)
    size = max(data, 1) // max(local, 1) if data or local else whole(spec, "parallelism.pipeline", 1)
    return replicas(spec) * max(size - 1, 0)


def train_nodes(spec: Tree) -> int:
    """As many as `numNodes` says, else one."""
    return whole(spec, "trainer.numNodes", 1)


def nim_pods(service: Tree) -> int:
    """As many as `replicas`, or the autoscaler's `minReplicas`, times the pipeline stages."""
    scaled = at(service, "spec.scale.enabled") is True
    wished = whole(service, "spec.scale.hpa.minReplicas" if scaled else "spec.replicas", 1)
    return wished * max(whole(service, "spec.multiNode.parallelism.pipeline", 1), 1)


def nim_stage_pods(service: Tree) -> int:
    """As for a NIMService; none if the service is not enabled."""
    return nim_pods(service) if service.get("enabled") is True else 0


def role_pods(role: Tree) -> int:
    """`replicas` groups (0 if absent) of `podGroupSize` pods."""
    return whole(role, "replicas", 0) * max(whole(role, "podGroupSize", 1), 1)


def pattern_pods(role: Tree) -> int:
    """`replicas` groups of `size` pods."""
    return replicas(role) * max(whole(role, "leaderWorkerPattern.size", 1), 1)


def entry_workers(role: Tree) -> int:
    """`replicas` times `workerReplicas`, beside the entry of each replica."""
    return replicas(role) * whole(role, "workerReplicas", 0)


def node_set_pods(spec: Tree) -> int:
    """As many as `replicas` says; one if it scales like a DaemonSet."""
    return 1 if spec.get("scalingMode") == "DaemonSet" else replicas(spec)


def unless_hibernated(session: Tree) -> int:
    """One pod; none while the session is hibernated."""
    return 0 if session.get("hibernated") is True else 1


def notebook_pods(notebook: Tree) -> int:
    """One pod; none while the notebook is stopped."""
    return 0 if at(notebook, f"metadata.annotations.{NOTEBOOK_STOPPED}") is not None else 1


def whole(holder: Tree, path: str, default: int, where: str = "", of: str = "pods") -> int:
    """The number at a path. `where` is the holder's own path, with a dot at its end, for the sentence of a refusal."""
    value = at(holder, path)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_PODS:
        raise no_count(f"{where}{path}", value, of)
    return value


def no_count(place: str, value: object, of: str = "pods") -> Refused:
    """What is said of a value that is no count."""
    return Refused(f'{place}: "{str(value)[:40]}" is no count of {of}; write a whole number from 0 to {MOST_PODS}')
