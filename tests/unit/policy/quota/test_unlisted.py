"""GPUs that the policy does not list count as what they are called; network cards do not."""

from decimal import Decimal
from time import process_time

import pytest
from msgspec.structs import replace

from tests.builders import PodBuilder, a_deployment, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.world import FakeApi
from webhook.policy.quota.demand import demand_of, not_counted, unlisted_warnings
from webhook.policy.values.tier_policy import TierPolicy

GPUS = {
    "nvidia.com/gpu.shared": (2, "2"),
    "nvidia.com/mig-1g.10gb.shared": (2, "0.25"),
    "nvidia.com/mig-1g.99gb": (1, "0.25"),
    "nvidia.com/mig-2c.3g.99gb": (1, "0.5"),
    "nvidia.com/GRID_A100-10C": (1, "1"),
    "nvidia.com/GA102GL_A10": (1, "1"),
    "nvidia.com/a100": (1, "1"),
    "nvidia.com/gpumem": (3000, "1"),
    "nvidia.com/gpucores": (150, "2"),
    "amd.com/cpx_nps4": (8, "8"),
    "gpu.intel.com/tiles": (2, "1"),
    "gpu.intel.com/millicores": (1500, "2"),
    "aliyun.com/gpu-mem": (16, "1"),
    "aliyun.com/gpu-count": (2, "2"),
    "tencent.com/vcuda-core": (400, "4"),
    "volcano.sh/vgpu-number": (2, "2"),
    "koordinator.sh/gpu-core": (50, "1"),
}
OTHERS = (
    "cpu",
    "memory",
    "hugepages-2Mi",
    "nvidia.com/hostdev",
    "nvidia.com/rdma_shared_device_a",
    "nvidia.com/sriov_rdma_vf",
    "nvidia.com/mlnxnics",
    "nvidia.com/cx5_sriov_switchdev",
    "nvidia.com/GH100_NVSWITCH",
    "rdma/hca_shared_devices_a",
    "amd.com/vnic",
    "amd.com/xilinx_u250_gen3x16_xdma_4_1_202210_1-0",
    "gpu.intel.com/i915_monitoring",
    "gpu.intel.com/xe_monitoring",
    "example.com/fpga",
    "devices.kubevirt.io/kvm",
)
WARN = replace(a_policy(), uncounted="Warn")


@pytest.mark.parametrize(("resource", "asked", "gpus"), [(name, *how) for name, how in GPUS.items()], ids=[*GPUS])
def test_a_gpu_counts_whole_or_is_named(resource: str, asked: int, gpus: str) -> None:
    pod = a_pod().asking(asked, resource=resource).view()
    assert (demand_of(pod, (), a_policy()), not_counted(pod, a_policy())) == (Decimal(gpus), ())
    assert (demand_of(pod, (), WARN), not_counted(pod, WARN)) == (0, (resource,))


@pytest.mark.parametrize("resource", OTHERS)
def test_what_is_no_gpu_is_not(resource: str) -> None:
    pod = a_pod().asking(resource=resource).view()
    assert (demand_of(pod, (), a_policy()), not_counted(pod, WARN)) == (0, ())


def in_one_container(asked: dict[str, int]) -> PodBuilder:
    limits = {name: str(amount) for name, amount in asked.items()}
    return a_pod().running("sh").having("spec.containers.0.resources", {"limits": limits})


TOGETHER = {
    "percent of each vGPU": ({"nvidia.com/gpu": 2, "nvidia.com/gpucores": 100}, "2"),
    "memory of eight, with less of their cores": (
        {"koordinator.sh/gpu-core": 1, "koordinator.sh/gpu-memory-ratio": 800},
        "8",
    ),
    "more in parts than whole": ({"nvidia.com/gpu": 1, "koordinator.sh/gpu": 300}, "3"),
    "parts of parts": ({"tencent.com/vcuda-core": 200, "tencent.com/vcuda-memory": 90}, "2"),
    "of other makers": ({"nvidia.com/gpucores": 100, "gpu.intel.com/millicores": 1000}, "2"),
}


@pytest.mark.parametrize(("asked", "gpus"), TOGETHER.values(), ids=[*TOGETHER])
def test_of_a_gpu_and_its_parts_the_most_counts(asked: dict[str, int], gpus: str) -> None:
    assert demand_of(in_one_container(asked).view(), (), a_policy()) == Decimal(gpus)


SHARED = "nvidia.com/gpu.shared"
NAMED: dict[str, tuple[PodBuilder, tuple[str, ...]]] = {
    "what counts": (a_pod().asking(1).asking(1, resource="nvidia.com/mig-1g.10gb"), ()),
    "none of it": (a_pod().asking(0, resource=SHARED), ()),
    "an init container": (a_pod().running("sh").with_init(1, resource=SHARED), (SHARED,)),
    "beside what counts": (a_pod().asking(1).asking(1, resource=SHARED), (SHARED,)),
    "how much of a vGPU that counts": (in_one_container({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}), ()),
    "a fraction": (a_pod().running("sh").annotated({"gpu-fraction": "0.5"}), ("annotation gpu-fraction",)),
    "an empty annotation": (a_pod().running("sh").annotated({"gpu-fraction": ""}), ()),
}


@pytest.mark.parametrize(("pod", "names"), NAMED.values(), ids=NAMED)
def test_named_of(pod: PodBuilder, names: tuple[str, ...]) -> None:
    assert not_counted(pod.view(), WARN) == names


def test_how_much_of_a_gpu_counts_only_where_the_gpu_itself_is_asked_for() -> None:
    """A vGPU of no GPU is a vGPU all the same."""
    memory, whole = {"nvidia.com/gpumem": 3000}, {"nvidia.com/gpu": 2}
    for asked, gpus in ((memory, 1), (memory | whole, 2), (memory | {"nvidia.com/gpu": 0}, 1)):
        assert demand_of(in_one_container(asked).view(), (), a_policy()) == gpus


def test_what_the_policy_lists_is_not_named() -> None:
    policy = a_policy(
        resources=[
            {"name": SHARED, "weight": "0.25"},
            {"name": "nvidia.com/odd", "weight": "0"},
            {"annotation": "gpu-fraction"},
        ]
    )
    pod = a_pod().asking(resource=SHARED).asking(resource="nvidia.com/odd", name="b").annotated({"gpu-fraction": "0.5"})
    assert unlisted_warnings(pod.view(), policy) == ()
    assert demand_of(a_pod().asking(resource="nvidia.com/odd").view(), (), policy) == 0


WARNING = f"[gpu-not-counted] {SHARED}: counts as 1 GPU, as the policy does not list it; ask the platform team"


@pytest.mark.parametrize(
    ("policy", "warning"), [(a_policy(), WARNING), (WARN, WARNING.replace("counts as 1 GPU", "no quota counts it"))]
)
async def test_a_workload_is_warned_about_whether_it_is_ours_or_not(policy: TierPolicy, warning: str) -> None:
    world = FakeApi(policy=policy)
    slices = a_pod().asking(2, resource=SHARED)
    for pod in (slices, slices.asking(1, name="whole")):
        answer = await world.validate(a_deployment(pod))
        assert answer.allowed
        assert warning in answer.warnings


async def test_a_name_in_the_plural_is_told_from_one_that_is_missing() -> None:
    answer = await FakeApi(policy=a_policy()).validate(a_deployment(a_pod().asking(2, resource="nvidia.com/gpus")))
    assert any(each.endswith("; did you mean nvidia.com/gpu?") for each in answer.warnings), answer.warnings


async def test_what_the_policy_refuses_is_refused_by_its_name() -> None:
    world = FakeApi(policy=replace(a_policy(), uncounted="Refuse"))
    slices = a_pod().asking(2, resource=SHARED)
    says = (
        f"spec.containers[0].resources: {SHARED} looks like GPUs, and the policy does not list it; ask for a resource "
        f'that the policy lists, or have the platform team add {{name: {SHARED}, weight: "1"}} to the policy\'s '
        f'resources, with the weight "0" if {SHARED} is no GPU'
    )
    assert (await world.validate(slices)).sentence == says
    assert (await world.validate(a_deployment(slices))).sentence == f"spec.template.{says}"
    assert (await world.validate(a_deployment(a_pod().asking(2)))).allowed


async def test_a_name_of_100_kb_is_no_resource_and_holds_nobody_up() -> None:
    """Custom resources are not checked as pods are, so such a name does arrive."""
    named = a_pod().asking(resource=f"nvidia.com/{'/-' * 50_000}")
    begun = process_time()
    assert (await FakeApi().validate(a_pytorchjob(named))).warnings == []
    assert process_time() - begun < 5


@pytest.mark.parametrize("part", ["/-i", "-i", "/-", "mem-mib"])
async def test_names_that_patterns_take_long_for_hold_nobody_up(part: str) -> None:
    """All reviews wait for one, and a custom resource may have names that no pod has."""
    names = (f"nvidia.com/{(part * 150)[:295]}{number:05d}" for number in range(31))
    many = a_pod().asking().having("spec.containers.0.resources", {"limits": dict.fromkeys(names, "1")})
    begun = process_time()
    await FakeApi(a_tenant().allowing("4")).validate(a_pytorchjob(many))
    assert process_time() - begun < 5


async def test_an_update_is_not_warned_again() -> None:
    deployment = a_deployment(a_pod().asking(resource=SHARED))
    answer = await FakeApi().update(deployment, deployment.having("spec.replicas", 3))
    assert answer.warnings == []


async def test_a_bare_pod_is_warned_about_and_a_workloads_pod_is_not() -> None:
    job = a_pytorchjob()
    world = FakeApi(job)
    pod = a_pod().asking(1).asking(1, resource=SHARED, name="second")
    for each, warned in ((pod, True), (pod.owned_by(job), False)):
        stored = world.stored((await world.mutate(each)).patched)
        assert (WARNING in (await world.validate(stored)).warnings) is warned
