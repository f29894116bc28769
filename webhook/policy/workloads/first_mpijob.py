"""The pods of an MPIJob of kubeflow.org/v1alpha1: it has one template, and counts GPUs in fields beside it.

Source: allocateProcessingUnits, newWorker and newLauncher in pkg/controllers/v1alpha1/mpi_job_controller.go of
kubeflow/mpi-operator, before a334c4c (2021).
"""

from collections.abc import Callable
from typing import Any

from webhook.objects.refusal import Refused
from webhook.policy.workloads.pod_counts import whole

Tree = dict[str, Any]

_GPU = "nvidia.com/gpu"
_UNITS = (("gpus", "gpusPerNode"), ("processingUnits", "processingUnitsPerNode"))


def workers(spec: Tree) -> int:
    """As many as `replicas` says, or as `gpus` or `processingUnits` need at their number per node (1 if absent)."""
    units, per_node = _units(spec)
    return whole(spec, "replicas", 0) if units is None else max(units // per_node, 1)


def launcher_pod(template: Tree, _: Tree) -> Tree:
    """The first container of the launcher asks for nothing."""
    return _with_first(template, lambda first: {key: first[key] for key in first if key != "resources"})


def worker_pod(template: Tree, spec: Tree) -> Tree:
    """The first container of a worker waits for the launcher, with its share of the units."""
    units, per_node = _units(spec)
    return _with_first(template, lambda first: _waiting(first, spec, None if units is None else min(units, per_node)))


def _units(spec: Tree) -> tuple[int | None, int]:
    said = [pair for pair in _UNITS if spec.get(pair[0]) is not None]
    if not said:
        return None, 1
    if len(said) > 1:
        raise Refused("gpus, processingUnits: both are written; write one of the two")
    ((total, per_node),) = said
    units, most = whole(spec, total, 0, of="GPUs"), whole(spec, per_node, 1, of="GPUs")
    if most == 0:
        raise Refused(f"{per_node}: 0 leaves a node without any; write 1 or more")
    if units > most and units % most:
        raise Refused(
            f"{total}: {units} is no multiple of {per_node}, which is {most}; its operator makes no pods of it"
        )
    return units, most


def _waiting(container: Tree, spec: Tree, share: int | None) -> Tree:
    made = {key: container[key] for key in container if key not in ("command", "args")}
    if share is None:
        return made
    resource = "cpu" if spec.get("processingResourceType") == "cpu" else _GPU
    asked = made.get("resources")
    limits = asked.get("limits") if isinstance(asked, dict) else None
    return {**made, "resources": {"limits": {**(limits if isinstance(limits, dict) else {}), resource: share}}}


def _with_first(template: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The template with its first container changed; as it is, where it has none."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list) or not containers:
        return template
    first, *others = containers
    changed = change(first) if isinstance(first, dict) else first
    return {**template, "spec": {**spec, "containers": [changed, *others]}}
