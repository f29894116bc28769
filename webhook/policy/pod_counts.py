"""How many pods an operator makes of a template, told by the object that holds it; never what those pods ask for.

Each function takes that holder: a Job's spec, one worker group of a Ray cluster. A field left out has the operator's
own default. Raises Refused where a field is no count of pods. Sources stand in docs/workloads.md.
"""

from collections.abc import Callable
from typing import Any

from webhook.policy.places import at
from webhook.policy.refusal import Refused

Tree = dict[str, Any]
PodCount = Callable[[Tree], int]

MOST_PODS = 1_000_000
"""More pods than any cluster holds: a count above it is a mistake, not a workload."""

NOTEBOOK_STOPPED = "kubeflow-resource-stopped"


def one(_: Tree) -> int:
    """One pod; also a DaemonSet's, whose nodes nobody knows beforehand."""
    return 1


def replicas(holder: Tree) -> int:
    """As many as `replicas` says."""
    return _whole(holder, "replicas", 1)


def counted_at(path: str) -> PodCount:
    """As many as the field at a path of the holder says, one where it is absent."""
    return lambda holder: _whole(holder, path, 1)


def job_pods(spec: Tree) -> int:
    """What a Job runs at once: never more than the completions it wants."""
    parallelism = _whole(spec, "parallelism", 1)
    return min(parallelism, _whole(spec, "completions", parallelism))


def jobset_pods(replicated_job: Tree) -> int:
    """The pods of so many like Jobs."""
    job = at(replicated_job, "template.spec")
    return replicas(replicated_job) * job_pods(job if isinstance(job, dict) else {})


def group_workers(spec: Tree) -> int:
    """A LeaderWorkerSet's groups, the leaders left out; without a leaderTemplate the workers' makes the leader too."""
    leaders = 1 if at(spec, "leaderWorkerTemplate.leaderTemplate") is not None else 0
    return replicas(spec) * max(_whole(spec, "leaderWorkerTemplate.size", 1) - leaders, 0)


def ray_workers(group: Tree) -> int:
    """The replicas wished for, within the group's bounds, of so many hosts each. A suspended group has none."""
    if group.get("suspend") is True:
        return 0
    least = _whole(group, "minReplicas", 0)
    wished = min(max(_whole(group, "replicas", least), least), _whole(group, "maxReplicas", MOST_PODS))
    return wished * _whole(group, "numOfHosts", 1)


def kserve_replicas(component: Tree) -> int:
    """What a component keeps running; 0 scales to zero."""
    return _whole(component, "minReplicas", 1)


def kserve_workers(predictor: Tree) -> int:
    """The pods beside the head of a predictor that spans nodes."""
    return kserve_replicas(predictor) * max(_whole(predictor, "workerSpec.pipelineParallelSize", 1) - 1, 0)


def llm_workers(spec: Tree) -> int:
    """The pods beside the leader of each group, which is as large as the parallelism asks."""
    data, local = _whole(spec, "parallelism.data", 0), _whole(spec, "parallelism.dataLocal", 0)
    size = max(data, 1) // max(local, 1) if data or local else _whole(spec, "parallelism.pipeline", 1)
    return replicas(spec) * max(size - 1, 0)


def train_nodes(spec: Tree) -> int:
    """A TrainJob's nodes. Where it doesn't say, its runtime does, which is another object: one at least."""
    return _whole(spec, "trainer.numNodes", 1)


def notebook_pods(notebook: Tree) -> int:
    """One, none while the notebook is stopped."""
    return 0 if at(notebook, f"metadata.annotations.{NOTEBOOK_STOPPED}") is not None else 1


def _whole(holder: Tree, path: str, default: int) -> int:
    value = at(holder, path)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_PODS:
        raise Refused(f'{path}: "{str(value)[:40]}" is no count of pods; write a whole number from 0 to {MOST_PODS}')
    return value
