"""GPUs that the policy does not count are named, network cards are not."""

from time import perf_counter

import pytest

from tests.builders import PodBuilder, a_deployment, a_pod, a_policy, a_pytorchjob
from tests.builders.world import World
from webhook.policy.quota.not_counted import not_counted

GPUS = (
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.99gb",
    "nvidia.com/GRID_A100-10C",
    "nvidia.com/a100",
    "nvidia.com/gpumem",
    "amd.com/cpx_nps4",
    "gpu.intel.com/tiles",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-core",
    "volcano.sh/vgpu-number",
    "koordinator.sh/gpu-core",
)
OTHERS = (
    "cpu",
    "memory",
    "nvidia.com/hostdev",
    "nvidia.com/rdma_shared_device_a",
    "nvidia.com/sriov_rdma_vf",
    "nvidia.com/mlnxnics",
    "nvidia.com/cx5_sriov_switchdev",
    "rdma/hca_shared_devices_a",
    "amd.com/vnic",
    "gpu.intel.com/i915_monitoring",
    "google.com/tpu",
    "example.com/fpga",
)


@pytest.mark.parametrize("resource", GPUS)
def test_a_gpu_is_named(resource: str) -> None:
    assert not_counted(a_pod().asking(resource=resource).view(), a_policy()) == (resource,)


@pytest.mark.parametrize("resource", OTHERS)
def test_what_is_no_gpu_is_not(resource: str) -> None:
    assert not_counted(a_pod().asking(resource=resource).view(), a_policy()) == ()


NAMED: dict[str, tuple[PodBuilder, tuple[str, ...]]] = {
    "what counts": (a_pod().asking(1).asking(1, resource="nvidia.com/mig-1g.10gb"), ()),
    "none of it": (a_pod().asking(0, resource="nvidia.com/gpu.shared"), ()),
    "an init container": (a_pod().running("sh").with_init(1, resource="nvidia.com/gpu.shared"), GPUS[:1]),
    "beside what counts": (a_pod().asking(1).asking(1, resource="nvidia.com/gpu.shared"), GPUS[:1]),
    "how much of a vGPU that counts": (a_pod().asking(1).asking(3000, resource="nvidia.com/gpumem", name="a"), ()),
    "a fraction": (a_pod().running("sh").annotated({"gpu-fraction": "0.5"}), ("annotation gpu-fraction",)),
    "an empty annotation": (a_pod().running("sh").annotated({"gpu-fraction": ""}), ()),
}


@pytest.mark.parametrize(("pod", "names"), NAMED.values(), ids=NAMED)
def test_named_of(pod: PodBuilder, names: tuple[str, ...]) -> None:
    assert not_counted(pod.view(), a_policy()) == names


def test_what_the_policy_lists_is_not_named() -> None:
    policy = a_policy(resources=[{"name": "nvidia.com/gpu.shared", "weight": "0.25"}, {"annotation": "gpu-fraction"}])
    pod = a_pod().asking(resource="nvidia.com/gpu.shared").annotated({"gpu-fraction": "0.5"})
    assert not_counted(pod.view(), policy) == ()


WARNING = "[gpu-not-counted] no quota counts nvidia.com/gpu.shared: the policy does not list it; ask the platform team"


async def test_a_workload_is_warned_about_whether_it_is_ours_or_not() -> None:
    world = World()
    slices = a_pod().asking(2, resource="nvidia.com/gpu.shared")
    for pod in (slices, slices.asking(1, name="whole")):
        answer = await world.validate(a_deployment(pod))
        assert answer.allowed
        assert WARNING in answer.warnings


async def test_a_name_of_100_kb_is_no_resource_and_holds_nobody_up() -> None:
    """Custom resources are not checked as pods are, so such a name does arrive."""
    named = a_pod().asking(resource=f"nvidia.com/{'/-' * 50_000}")
    begun = perf_counter()
    assert (await World().validate(a_pytorchjob(named))).warnings == []
    assert perf_counter() - begun < 5


async def test_an_update_is_not_warned_again() -> None:
    deployment = a_deployment(a_pod().asking(resource="nvidia.com/gpu.shared"))
    answer = await World().update(deployment, deployment.having("spec.replicas", 3))
    assert answer.warnings == []


async def test_a_bare_pod_is_warned_about_and_a_workloads_pod_is_not() -> None:
    job = a_pytorchjob()
    world = World(job)
    pod = a_pod().asking(1).asking(1, resource="nvidia.com/gpu.shared", name="second")
    for each, warned in ((pod, True), (pod.owned_by(job), False)):
        stored = world.stored((await world.mutate(each)).patched)
        assert (WARNING in (await world.validate(stored)).warnings) is warned
