"""Where a workload stands: whether it is suspended, and whether it has ended. Data, and two questions."""

from typing import Any

from webhook.objects.field_paths import at

Tree = dict[str, Any]

SUSPEND = ("spec.suspend", "spec.runPolicy.suspend")
"""Jobs, JobSets, TrainJobs, Ray's; the training operators'."""

ENDED_CONDITIONS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
"""Of a Job, a JobSet, a TrainJob, and of the training operators' jobs, each with status True."""

PHASES = ("status.state.phase", "status.jobDeploymentStatus", "status.phase")
"""Volcano's Job, a RayJob, and jobs of operators that have a phase alone."""

ENDED_PHASES = frozenset({"Complete", "Completed", "Succeeded", "Failed", "Terminated"})
SUSPENDED_PHASES = frozenset({"Aborted", "Suspended"})
"""A Volcano Job that was aborted may be resumed."""


def is_suspended(tree: Tree) -> bool:
    """Whether a workload makes no pods until somebody releases it."""
    return any(at(tree, place) is True for place in SUSPEND) or _phase(tree, SUSPENDED_PHASES)


def has_ended(tree: Tree) -> bool:
    """Whether a workload makes no pods any more."""
    conditions = at(tree, "status.conditions")
    told = conditions if isinstance(conditions, list) else ()
    ended = (each for each in told if isinstance(each, dict) and each.get("status") == "True")
    return any(each.get("type") in ENDED_CONDITIONS for each in ended) or _phase(tree, ENDED_PHASES)


def _phase(tree: Tree, phases: frozenset[str]) -> bool:
    return any(found in phases for found in (at(tree, place) for place in PHASES) if isinstance(found, str))
