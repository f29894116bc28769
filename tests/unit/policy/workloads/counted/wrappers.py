"""Workloads of the kinds in webhook/policy/workloads/kinds/wrappers.yaml, and how many GPUs their pods hold."""

from tests.builders import Tree, WorkloadBuilder, a_workload
from tests.builders.operators import GPU_POD, a_jobset, a_raycluster

POD = {"apiVersion": "v1", "kind": "Pod", **GPU_POD, "metadata": {"name": "one"}}
JOBSET = a_jobset(2, parallelism=4, completions=4).json()
ELASTIC = a_raycluster(replicas=4, minReplicas=2, maxReplicas=4).having("spec.enableInTreeAutoscaling", True)


def an_appwrapper(*objects: Tree) -> WorkloadBuilder:
    components = [{"template": each} for each in objects]
    return a_workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=components)


GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "an AppWrapper": (an_appwrapper(JOBSET), 8),
    "an AppWrapper of several objects": (an_appwrapper(JOBSET, POD), 9),
    "an AppWrapper of what may shrink": (an_appwrapper(ELASTIC.json()), 4),
    "an AppWrapper of what is none of ours": (an_appwrapper({"apiVersion": "v1", "kind": "Service"}), 0),
}
