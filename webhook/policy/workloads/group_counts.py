"""How often a workload makes the pods of one of its parts, told from the whole workload.

A PodCliqueSet makes its cliques once for each of its replicas. A field left out has the operator's default. Each
function raises Refused where a field is no count of pods. Its docstring stands in docs/workloads.md.
"""

from collections.abc import Callable

from webhook.objects.field_paths import all_at, at
from webhook.policy.workloads.pod_counts import Tree, ray_workers, whole

GroupCount = Callable[[Tree, Tree], int]
"""Told by the workload, and the part that holds a template."""


def once(_: Tree, __: Tree) -> int:
    """Once: the part itself counts all of its pods."""
    return 1


def groups(workload: Tree, _: Tree) -> int:
    """As often as the workload has replicas."""
    return whole(workload, "spec.replicas", 1)


def groups_if_said(workload: Tree, _: Tree) -> int:
    """As often as the workload has replicas; not at all if it doesn't say."""
    return whole(workload, "spec.replicas", 0)


def clique_groups(workload: Tree, clique: Tree) -> int:
    """As often as the PodCliqueSet has replicas, times the replicas of the clique's scaling group."""
    times = groups_if_said(workload, clique)
    for taken, group in all_at(workload, "spec.template.podCliqueScalingGroups.*"):
        if isinstance(group, dict) and any(name == clique.get("name") for _, name in all_at(group, "cliqueNames.*")):
            times *= whole(group, "replicas", 1, f"{'.'.join(taken)}.")
    return times


def predictor_replicas(workload: Tree, component: Tree) -> int:
    """As often as its predictor or the SeldonDeployment says, if the component doesn't."""
    if component.get("replicas") is not None:
        return 1
    for taken, predictor in all_at(workload, "spec.predictors.*"):
        if isinstance(predictor, dict) and any(each is component for _, each in all_at(predictor, "componentSpecs.*")):
            return whole(predictor, "replicas", groups(workload, component), f"{'.'.join(taken)}.")
    return 1


def trials_at_once(experiment: Tree, _: Tree) -> int:
    """As often as the Experiment's `parallelTrialCount` says (3 if absent), at most `maxTrialCount`."""
    together = whole(experiment, "spec.parallelTrialCount", 3, of="trials")
    return min(together, whole(experiment, "spec.maxTrialCount", together, of="trials"))


def elastic_workers(workload: Tree, replica: Tree) -> int:
    """As many as the workload's `elasticPolicy.minReplicas` says, else all of its replicas."""
    return whole(workload, "spec.elasticPolicy.minReplicas", whole(replica, "replicas", 1))


def one_group(_: Tree, spec: Tree) -> int:
    """The workers of one group: others come and go beside it."""
    leaders = 1 if at(spec, "leaderWorkerTemplate.leaderTemplate") is not None else 0
    return max(whole(spec, "leaderWorkerTemplate.size", 1) - leaders, 0)


def least_ray_workers(workload: Tree, group: Tree) -> int:
    """Where Ray scales it: the group's `minReplicas`, times `numOfHosts`. Else all."""
    scaled = (at(workload, f"{spec}.enableInTreeAutoscaling") is True for spec in ("spec", "spec.rayClusterSpec"))
    return whole(group, "minReplicas", 0) * whole(group, "numOfHosts", 1) if any(scaled) else ray_workers(group)


def needed_of_task(job: Tree, task: Tree) -> int:
    """As many as the task's `minAvailable` says, else all of its replicas; all tasks together as many as the Job's.

    Where the Job's `minAvailable` is more than that of its tasks, the first ones need more; where it is less, the last
    ones need less: Volcano then starts it with any of them.
    """
    tasks = [found for _, found in all_at(job, "spec.tasks.*") if isinstance(found, dict)]
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
    """Once, if the workspace is started."""
    return 1 if at(workload, "spec.started") is True else 0
