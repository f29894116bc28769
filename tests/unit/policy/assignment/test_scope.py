"""The pods that are ours: the pod alone says whether to look anything up, and the findings decide."""

import pytest

from tests.builders import PodBuilder, WorkloadBuilder, a_job, a_pod, a_policy, some_facts
from tests.builders.operators import CPU_POD, a_raycluster, an_mpijob
from webhook.policy.assignment.request import concerns, may_concern
from webhook.policy.quota.demand import demand_of

CPU = a_pod().running("sleep")
GANG = {"training.kubeflow.org/job-name": "x"}
RAY = {"ray.io/cluster": "x"}
PODS: dict[str, tuple[PodBuilder, tuple[WorkloadBuilder, ...], str | None, tuple[bool, bool]]] = {
    "no GPU": (CPU, (), None, (False, False)),
    "a GPU": (a_pod().asking(), (), None, (True, True)),
    "a GPU in a sidecar": (CPU.with_sidecar(), (), None, (True, True)),
    "a GPU asked for zero times": (a_pod().asking(0), (), None, (True, False)),
    "a tier label": (CPU.of_tier("gpu-batch"), (), None, (True, True)),
    "a tier's class": (CPU.of_class("gpu-batch"), (), None, (True, True)),
    "a tier's class during adoption": (CPU.of_class("gpu-batch-nonpreempting"), (), None, (True, True)),
    "another class": (CPU.of_class("house"), (), None, (False, False)),
    "a claim that is no GPU's": (CPU.having("spec.resourceClaims", [{"name": "nic"}]), (), None, (True, False)),
    "a group of a tier": (CPU.in_group("gang"), (), "gpu-batch", (True, True)),
    "a group without one": (CPU.in_group("gang"), (), "", (True, False)),
    "a launcher of GPU workers": (CPU.labelled(GANG), (an_mpijob(),), None, (True, True)),
    "a launcher of CPU workers": (CPU.labelled(GANG), (an_mpijob(worker=CPU_POD),), None, (True, False)),
    "a Ray head": (CPU.labelled(RAY), (a_raycluster(replicas=1),), None, (True, True)),
    "a Ray head whose workers come later": (CPU.labelled(RAY), (a_raycluster(maxReplicas=4),), None, (True, True)),
    "a pod of a CPU Job": (CPU.labelled({"batch.kubernetes.io/job-name": "x"}), (a_job(CPU),), None, (False, False)),
}


@pytest.mark.parametrize(("pod", "owners", "group", "ours"), PODS.values(), ids=PODS)
def test_a_pod_is_ours_by(
    pod: PodBuilder, owners: tuple[WorkloadBuilder, ...], group: str | None, ours: tuple[bool, bool]
) -> None:
    policy, seen = a_policy(), pod.view()
    facts = some_facts(*owners, group=group)
    assert (may_concern(seen, policy), concerns(seen, demand_of(seen, (), policy), facts, policy)) == ours
