"""Counts the pods that an operator makes of a template, and how often a workload makes those of one of its parts.

The first number follows from the object with the template: a Job's spec, one worker group of a Ray cluster. The second
follows from the whole workload: a PodCliqueSet makes its cliques once for each of its replicas. An absent field has the
operator's default. Each function raises Refused if a field is not a count of pods. Its docstring appears in
docs/workload-kinds.md, with sources.
"""

import re
from collections.abc import Callable
from itertools import combinations

from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import Tree, all_at, at, mapped

PodCount = Callable[[Tree], int]
"""Returns the number for the object with a template."""
GroupCount = Callable[[Tree, Tree], int]
"""Returns the number for the workload and the object with a template."""

MOST_PODS = 1_000_000
"""More pods than any cluster holds: a count above it is a mistake, not a workload."""
MOST_IN_STAGES = 6
"""Jobs of a JobSet whose stages are separated. Each set of them is examined, which takes about 1 ms."""
MOST_TEMPLATES = 250
"""Templates of a workload that are judged. Each takes some 0.2 ms, and all other reviews wait meanwhile."""

_INDEXES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
NOTEBOOK_STOPPED = "kubeflow-resource-stopped"


def one(_: Tree) -> int:
    """One pod."""
    return 1


def one_per_node(_: Tree) -> int:
    """Counted as one pod; a DaemonSet makes one on each node."""
    return 1


def replicas(holder: Tree) -> int:
    """`replicas`."""
    return whole(holder, "replicas", 1)


def counted_at(path: str) -> PodCount:
    """The number in a field of the holder, or one if absent."""

    def count(holder: Tree) -> int:
        return whole(holder, path, 1)

    count.__doc__ = f"`{path}`."
    return count


def job_pods(spec: Tree) -> int:
    """`parallelism`, at most `completions`."""
    parallelism = whole(spec, "parallelism", 1)
    return min(parallelism, whole(spec, "completions", parallelism))


def jobset_pods(replicated_job: Tree) -> int:
    """The pods of one Job, times `replicas`."""
    job = at(replicated_job, "template.spec")
    return replicas(replicated_job) * job_pods(job if isinstance(job, dict) else {})


def group_workers(spec: Tree) -> int:
    """`replicas` groups of `size` pods, without the leaders if there is a leaderTemplate."""
    return replicas(spec) * one_group(spec, spec)


def ray_workers(group: Tree) -> int:
    """`replicas` within `minReplicas` and `maxReplicas`, times `numOfHosts`; none if suspended."""
    if group.get("suspend") is True:
        return 0
    least = whole(group, "minReplicas", 0)
    wished, said = max(whole(group, "replicas", least), least), group.get("maxReplicas")
    # KubeRay's CRD defaults it to 2147483647, which means no bound.
    most = MOST_PODS if isinstance(said, int) and said > MOST_PODS else whole(group, "maxReplicas", MOST_PODS)
    return min(wished, most) * whole(group, "numOfHosts", 1)


def ray_submitters(spec: Tree) -> int:
    """One pod in `submissionMode: K8sJobMode`, which is the default."""
    return 1 if spec.get("submissionMode") in (None, "", "K8sJobMode") else 0


def kserve_replicas(component: Tree) -> int:
    """`minReplicas`; 0 scales to zero."""
    return whole(component, "minReplicas", 1)


def kserve_workers(predictor: Tree) -> int:
    """The workers of a predictor that spans nodes."""
    return kserve_replicas(predictor) * max(whole(predictor, "workerSpec.pipelineParallelSize", 1) - 1, 0)


def llm_workers(spec: Tree) -> int:
    """The workers of each group; its parallelism gives the size."""
    data, local = whole(spec, "parallelism.data", 0), whole(spec, "parallelism.dataLocal", 0)
    size = max(data, 1) // max(local, 1) if data or local else whole(spec, "parallelism.pipeline", 1)
    return replicas(spec) * max(size - 1, 0)


def train_nodes(spec: Tree) -> int:
    """`numNodes`, or one if absent."""
    return whole(spec, "trainer.numNodes", 1)


def nim_pods(service: Tree) -> int:
    """`replicas` or the autoscaler's `minReplicas`, times the pipeline stages."""
    scaled = at(service, "spec.scale.enabled") is True
    wished = whole(service, "spec.scale.hpa.minReplicas" if scaled else "spec.replicas", 1)
    return wished * max(whole(service, "spec.multiNode.parallelism.pipeline", 1), 1)


def nim_stage_pods(service: Tree) -> int:
    """The same as for a NIMService; none if not enabled."""
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
    """`replicas`; one if it scales like a DaemonSet."""
    return 1 if spec.get("scalingMode") == "DaemonSet" else replicas(spec)


def unless_hibernated(session: Tree) -> int:
    """One pod; none while the session is hibernated."""
    return 0 if session.get("hibernated") is True else 1


def notebook_pods(notebook: Tree) -> int:
    """One pod; none while the notebook is stopped."""
    return 0 if at(notebook, f"metadata.annotations.{NOTEBOOK_STOPPED}") is not None else 1


def whole(holder: Tree, path: str, default: int, where: str = "", of: str = "pods") -> int:
    """Return the number at a path. `where` is the holder's own path, with a dot at its end, for a refusal."""
    value = at(holder, path)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_PODS:
        raise no_count(f"{where}{path}", value, of)
    return value


def too_many_templates() -> Refused:
    """Return the refusal of a gang with more pod templates than are judged."""
    return Refused(Reason.INVALID, "too-many-templates", most=MOST_TEMPLATES)


def no_count(place: str, value: object, of: str = "pods") -> Refused:
    """Return the refusal of a value that is not a count."""
    return Refused(Reason.INVALID, "no-pod-count", place, value=str(value)[:40], of=of, most=MOST_PODS)


def once(_: Tree, __: Tree) -> int:
    """One.

    The part itself counts all of its pods.
    """
    return 1


def groups(workload: Tree, _: Tree) -> int:
    """`spec.replicas` of the workload."""
    return whole(workload, "spec.replicas", 1)


def groups_if_said(workload: Tree, _: Tree) -> int:
    """`spec.replicas` of the workload, or none if absent."""
    return whole(workload, "spec.replicas", 0)


def clique_groups(workload: Tree, clique: Tree) -> int:
    """`spec.replicas` of the PodCliqueSet, times the replicas of the clique's scaling group."""
    times = groups_if_said(workload, clique)
    for taken, group in all_at(workload, "spec.template.podCliqueScalingGroups.*"):
        if isinstance(group, dict) and any(name == clique.get("name") for _, name in all_at(group, "cliqueNames.*")):
            times *= whole(group, "replicas", 1, f"{'.'.join(taken)}.")
    return times


def job_pods_left(job: Tree, spec: Tree) -> int:
    """At most the pods that must still succeed, without failed indexes. Without `completions`: the running pods, once
    one has succeeded.
    """
    # A JobSet has no such count, because it may restart Jobs that have succeeded.
    succeeded = whole(job, "status.succeeded", 0)
    if spec.get("completions") is None:
        return whole(job, "status.active", 0) if succeeded else MOST_PODS
    # The Job controller writes the indexes as 1,3-5,7.
    said = at(job, "status.failedIndexes")
    found = [_INDEXES.fullmatch(each) for each in said.split(",")] if isinstance(said, str) else []
    spans = ((int(each[1]), int(each[2] or each[1])) for each in found if each)
    failed = sum(last - first + 1 for first, last in spans if first <= last)
    return max(whole(spec, "completions", 1) - succeeded - failed, 0)


def predictor_replicas(workload: Tree, component: Tree) -> int:
    """`replicas` of its predictor or the SeldonDeployment, if the component has none."""
    if component.get("replicas") is not None:
        return 1
    for taken, predictor in all_at(workload, "spec.predictors.*"):
        if isinstance(predictor, dict) and any(each is component for _, each in all_at(predictor, "componentSpecs.*")):
            return whole(predictor, "replicas", groups(workload, component), f"{'.'.join(taken)}.")
    return 1


def trials_at_once(experiment: Tree, _: Tree) -> int:
    """The Experiment's `parallelTrialCount` (3 if absent), at most `maxTrialCount`."""
    together = whole(experiment, "spec.parallelTrialCount", 3, of="trials")
    return min(together, whole(experiment, "spec.maxTrialCount", together, of="trials"))


def elastic_workers(workload: Tree, replica: Tree) -> int:
    """The workload's `elasticPolicy.minReplicas`, or all replicas if absent."""
    return whole(workload, "spec.elasticPolicy.minReplicas", whole(replica, "replicas", 1))


def one_group(_: Tree, spec: Tree) -> int:
    """The workers of one group."""
    leaders = 1 if at(spec, "leaderWorkerTemplate.leaderTemplate") is not None else 0
    return max(whole(spec, "leaderWorkerTemplate.size", 1) - leaders, 0)


def least_ray_workers(workload: Tree, group: Tree) -> int:
    """`minReplicas` times `numOfHosts` if Ray scales it, otherwise all."""
    scaled = (at(workload, f"{spec}.enableInTreeAutoscaling") is True for spec in ("spec", "spec.rayClusterSpec"))
    return whole(group, "minReplicas", 0) * whole(group, "numOfHosts", 1) if any(scaled) else ray_workers(group)


def needed_in_stage(workload: Tree, replicated_job: Tree) -> int:
    """All pods, except of Jobs that `dependsOn` keeps from running with the stage that asks for most."""
    # 1. The Jobs of a JobSet, or those of the runtime of a TrainJob.
    runtime = at(workload, "runtime.spec.template.spec.replicatedJobs")
    listed = at(workload, "spec.replicatedJobs") if runtime is None else runtime
    if not isinstance(listed, list) or len(listed) > MOST_IN_STAGES:
        return MOST_PODS
    stage = jobs = [each for each in listed if isinstance(each, dict)]

    # 2. A Job that waits until another is Complete runs neither with it nor with the Jobs that one waits for.
    ended: dict[str, frozenset[str]] = {}
    for each in jobs:
        waits = [found for _, found in all_at(each, "dependsOn.*") if isinstance(found, dict)]
        direct = frozenset(str(found.get("name", "")) for found in waits if found.get("status") == "Complete")
        before = (ended.get(str(found.get("name", "")), ()) for found in waits)
        ended[str(each.get("name", ""))] = direct.union(*before)

    # 3. The stage is the Jobs that may run together and ask for most; all of them if none waits for another's end.
    if any(ended.values()):
        sets = ([*chosen] for size in range(len(jobs), 0, -1) for chosen in combinations(jobs, size))
        named = ((chosen, {str(each.get("name", "")) for each in chosen}) for chosen in sets)
        concurrent = (chosen for chosen, names in named if not any(ended[name] & names for name in names))
        devices = {id(each): _devices(each) for each in jobs}
        stage = max(concurrent, key=lambda chosen: sum(devices[id(each)] for each in chosen), default=jobs)
    return MOST_PODS if any(each is replicated_job for each in stage) else 0


def _devices(replicated_job: Tree) -> int:
    """Return the number of devices of one Job's pods, by device plugin or by claim."""
    spec = mapped(at(replicated_job, "template.spec.template.spec"))
    claims = sum(1 for _ in all_at(spec, "resourceClaims.*"))
    limits = (mapped(found) for _, found in all_at(spec, "containers.*.resources.limits"))
    asked = (str(value) for each in limits for name, value in each.items() if "/" in str(name))
    numbers = sum(int(each) for each in asked if each.isdecimal() and len(each) < _DIGITS)
    try:
        return jobset_pods(replicated_job) * (claims + numbers)
    except Refused:
        return 0  # refused with its place when its own pods are counted


_DIGITS = 10


def needed_of_task(job: Tree, task: Tree) -> int:
    """The task's `minAvailable`, or all replicas if absent; all tasks together the Job's `minAvailable`.

    If the Job's `minAvailable` exceeds that of its tasks, the first ones need more; if it is less, the last ones need
    less, because Volcano then starts it with any of them.
    """
    tasks = [found for _, found in all_at(job, "spec.tasks.*") if isinstance(found, dict)]
    if len(tasks) > MOST_TEMPLATES:  # before each is derived from all of them
        raise too_many_templates()
    needed = {id(each): whole(each, "minAvailable", whole(each, "replicas", 1)) for each in tasks}
    total = sum(needed.values())
    missing = (whole(job, "spec.minAvailable", 0) or total) - total
    for each in tasks if missing > 0 else reversed(tasks):
        least = needed[id(each)]
        change = max(-least, min(missing, whole(each, "replicas", 1) - least))
        if each is task:
            return least + change
        missing -= change
    return 0


def if_started(workload: Tree, _: Tree) -> int:
    """1 if the workspace is started."""
    return 1 if at(workload, "spec.started") is True else 0


_OF_A_PART: tuple[PodCount, ...] = (
    one_per_node, job_pods, jobset_pods, group_workers, ray_workers, ray_submitters, kserve_replicas,
    kserve_workers, llm_workers, train_nodes, nim_pods, nim_stage_pods, role_pods, pattern_pods, entry_workers,
    node_set_pods, unless_hibernated, notebook_pods,
)  # fmt: skip
_OF_THE_WHOLE: tuple[GroupCount, ...] = (
    once, groups, groups_if_said, clique_groups, job_pods_left, predictor_replicas, trials_at_once,
    elastic_workers, one_group, least_ray_workers, needed_in_stage, needed_of_task, if_started,
)  # fmt: skip
POD_COUNTS = {count.__name__: count for count in _OF_A_PART}
GROUP_COUNTS = {count.__name__: count for count in _OF_THE_WHOLE}
"""The counts that the table of kinds may name (policy/workloads/kinds/)."""
