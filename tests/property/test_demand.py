"""A pod's demand, whatever its containers ask for."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import GPU, PodBuilder, a_pod, a_policy
from webhook.policy.quota.demand import demand_of

RESOURCES = st.sampled_from([GPU, "nvidia.com/mig-3g.40gb", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "cpu"])
CONTAINERS = st.lists(st.tuples(st.sampled_from(["app", "init", "sidecar"]), RESOURCES, st.integers(0, 64)), max_size=6)


def built(containers: list[tuple[str, str, int]]) -> PodBuilder:
    pod = a_pod()
    for role, resource, gpus in containers:
        match role:
            case "app":
                pod = pod.asking(gpus, resource=resource)
            case "init":
                pod = pod.with_init(gpus, resource=resource)
            case "sidecar":
                pod = pod.with_init(gpus, resource=resource, restartPolicy="Always")
    return pod


@given(CONTAINERS, st.sampled_from(["app", "init", "sidecar"]), RESOURCES, st.integers(0, 64))
def test_a_further_container_never_lowers_a_pod_s_demand(
    containers: list[tuple[str, str, int]], role: str, resource: str, gpus: int
) -> None:
    policy = a_policy()
    before = demand_of(built(containers).view(), (), policy)
    after = demand_of(built([*containers, (role, resource, gpus)]).view(), (), policy)
    weight = policy.weights[resource]
    assert 0 <= before <= after <= before + gpus * weight


@given(CONTAINERS)
def test_a_demand_lies_between_what_runs_together_and_the_sum_of_all(containers: list[tuple[str, str, int]]) -> None:
    policy = a_policy()
    weighed = [(role, policy.weights[resource] * gpus) for role, resource, gpus in containers]
    running = sum((gpus for role, gpus in weighed if role != "init"), Decimal(0))
    assert running <= demand_of(built(containers).view(), (), policy) <= sum((gpus for _, gpus in weighed), Decimal(0))
