"""Where a workload stands: whether it is suspended, and whether it has ended. Data, and two questions."""

from typing import Any

from webhook.objects.field_paths import all_at, at

Tree = dict[str, Any]

SUSPEND = ("spec.suspend", "spec.runPolicy.suspend")
"""Jobs, JobSets, TrainJobs, Ray's; the training operators'."""

ENDED_CONDITIONS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
"""Of a Job, a JobSet, a TrainJob, and of the training operators' jobs, each with status True."""

PHASES = ("status.state.phase", "status.jobDeploymentStatus", "status.phase")
"""Volcano's Job, a RayJob, and jobs of operators that have a phase alone."""

ENDED_PHASES = frozenset({"Complete", "Completed", "Succeeded", "Failed", "Terminated"})
ABORTED = ("status.state.phase", "Aborted")
"""A Volcano Job that was aborted may be resumed."""


def is_suspended(tree: Tree) -> bool:
    """Whether a workload makes no pods until somebody releases it."""
    place, phase = ABORTED
    return any(at(tree, each) is True for each in SUSPEND) or at(tree, place) == phase


def has_ended(tree: Tree) -> bool:
    """Whether a workload makes no pods any more."""
    conditions = at(tree, "status.conditions")
    told = conditions if isinstance(conditions, list) else ()
    ended = (each for each in told if isinstance(each, dict) and each.get("status") == "True")
    types = (each.get("type") for each in ended)
    phases = (at(tree, place) for place in PHASES)
    return any(_is_among(each, ENDED_CONDITIONS) for each in types) or any(
        _is_among(each, ENDED_PHASES) for each in phases
    )


SUCCEEDED = ("status.succeeded", "status.replicaStatuses.*.succeeded", "status.replicatedJobsStatus.*.succeeded")
"""How many pods or Jobs have: of a Job; the training operators'; of a JobSet."""


def is_partly_done(tree: Tree) -> bool:
    """Whether some of a workload's pods have succeeded."""
    return any(found for place in SUCCEEDED for _, found in all_at(tree, place))


def _is_among(found: object, names: frozenset[str]) -> bool:
    return isinstance(found, str) and found in names
