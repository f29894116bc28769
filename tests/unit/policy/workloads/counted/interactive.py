"""Workloads of the kinds in webhook/policy/workloads/kinds/interactive.yaml, and how many GPUs their pods hold."""

from tests.builders import GPU, WorkloadBuilder, a_notebook, a_pod, a_workload
from tests.builders.operators import HEAD, MODEL, a_devworkspace, an_amaltheasession

STOPPED = {"kubeflow-resource-stopped": "2026-11-01T08:00:00Z"}
GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a Notebook": (a_notebook(a_pod().asking()), 1),
    "an AmaltheaSession": (an_amaltheasession(), 1),
    "an AmaltheaSession that sleeps": (an_amaltheasession(hibernated=True), 0),
    "a DevWorkspace by its container": (
        a_devworkspace(started=True, components=[{"attributes": {"container-overrides": MODEL}}]),
        1,
    ),
    "a DevWorkspace by its pod": (
        a_devworkspace(started=True, attributes={"pod-overrides": {"spec": HEAD}}),
        1,
    ),
    "a DevWorkspace that is not started": (
        a_devworkspace(started=False, attributes={"pod-overrides": {"spec": HEAD}}),
        0,
    ),
    "a Workspace of Jupyter": (
        a_workload("workspace.jupyter.org/v1alpha1", "Workspace", resources={"limits": {GPU: 1}}),
        1,
    ),
    "a stopped Notebook": (a_notebook(a_pod().asking()).annotated(STOPPED), 0),
}
