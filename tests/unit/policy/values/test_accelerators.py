"""The names that device plugins and schedulers use for accelerators count; network cards and other devices do not."""

from decimal import Decimal

import msgspec
import pytest

from tests.builders import a_pod, a_policy
from webhook.cluster.listed import gpu_node
from webhook.objects.pods import Pod
from webhook.objects.quantities import MOST_GPUS
from webhook.objects.refusal import Refused
from webhook.policy.quota.demand import demand_of, gpu_holders, refuse_unlisted, unlisted_warnings
from webhook.policy.values.weights import looks_like_accelerator, table
from webhook.sentences.sentence import warning_words

POLICY = a_policy()
ONE_LISTED = a_policy(resources=[{"name": "nvidia.com/gpu"}])

OTHER_DEVICES = (
    # network cards, by the examples of NVIDIA's network operator, of those who install it, and of its own tools
    "nvidia.com/hostdev nvidia.com/hostdev1 nvidia.com/mlnxnics nvidia.com/sriovlegacy nvidia.com/sriovswitchdev",
    "nvidia.com/sriov_rdma nvidia.com/sriov-rdma-vf nvidia.com/sriov_resource nvidia.com/sriov_resource_rail_0",
    "nvidia.com/rdma-vf nvidia.com/rdma_vf nvidia.com/rdma0 nvidia.com/rdma_ib nvidia.com/rdma_roce",
    "nvidia.com/rdma_shared_device_a nvidia.com/resibs1 nvidia.com/resibp12s0 nvidia.com/ibs1 nvidia.com/ib0",
    "nvidia.com/ens1f0np0 nvidia.com/enp12s0f0 nvidia.com/eno1 nvidia.com/eth0 nvidia.com/resens3 nvidia.com/mlx5_0",
    "nvidia.com/rail0 nvidia.com/rail-1 nvidia.com/rail_0_plane_1 nvidia.com/rail0p0 nvidia.com/infiniband",
    "nvidia.com/bf2_sf nvidia.com/bf3-p0-vfs nvidia.com/cx5_sriov_switchdev nvidia.com/cx6dx_vf nvidia.com/cx7_qsfp",
    "nvidia.com/vdpa_mlx_vhost nvidia.com/ct6dx_vdpa_vhost nvidia.com/connectx7 nvidia.com/roce_gdr nvidia.com/dpu",
    # parts of its boards that KubeVirt hands out
    "nvidia.com/GH100_NVSWITCH nvidia.com/TU102_High_Definition_Audio_Controller nvidia.com/TU102_USB_31_HOST",
    # AMD's network operator and FPGAs
    "amd.com/nic amd.com/vnic amd.com/npu amd.com/xilinx_u250_gen3x16_xdma_4_1_202210_1-0 amd.com/ama_u30",
    # Intel's other device plugins, and those of its network cards
    "gpu.intel.com/i915_monitoring gpu.intel.com/xe_monitoring gpu.intel.com/monitoring npu.intel.com/accel",
    "qat.intel.com/generic qat.intel.com/cy qat.intel.com/dc qat.intel.com/asym-dc qat.intel.com/sym-decomp",
    "intel.com/qat sgx.intel.com/epc sgx.intel.com/enclave sgx.intel.com/provision dlb.intel.com/pf dlb.intel.com/vf",
    "dsa.intel.com/wq-user-dedicated dsa.intel.com/wq-user-shared dsa.intel.com/vfio iaa.intel.com/wq-user-shared",
    "fpga.intel.com/arria10-nlb0 fpga.intel.com/region-ce48969398f05f33946d560708be108a fpga.intel.com/d5005-nlb3",
    "intel.com/intel_sriov_netdevice intel.com/intel_sriov_dpdk intel.com/intel_fpga intel.com/intel_rdma",
    "intel.com/e800_default intel.com/x700_gtp intel.com/intel_x710vfio intel.com/intel_fec_acc100 intel.com/sriov",
    # others' network cards, and what else plugins offer
    "rdma/hca_shared_devices_a rdma/rdma_shared_device_a rdma/ib mellanox.com/mlnx_connectx5 mellanox.com/mlnx_rdma",
    "openshift.io/intelnics_radio_uplink openshift.io/mlxnics openshift.io/dpu k8s.io/vfio vpc.amazonaws.com/efa",
    "aws.amazon.com/efa koordinator.sh/rdma koordinator.sh/fpga kubernetes.io/batch-cpu kubernetes.io/batch-memory",
    "networking.gke.io.networks/rdma-0 google.com/nic xilinx.com/fpga-xilinx_u200_gen3x16_xdma_1_202110_1-0",
    "devices.kubevirt.io/kvm devices.kubevirt.io/vhost-net devices.kubevirt.io/tun devices.kubevirt.io/sev",
    "smarter-devices/fuse example.com/fpga hugepages-2Mi example.com/memory example.com/cores cpu memory",
)
ACCELERATORS = (
    "habana.ai/gaudi huawei.com/npu huawei.com/Ascend310P huawei.com/Ascend910 huawei.com/Ascend910B4-1",
    "huawei.com/Ascend910-2c huawei.com/Ascend950 cambricon.com/mlu cambricon.com/mlu370.mim-2m.8gb cambricon.com/vmlu",
    "hygon.com/dcu hygon.com/dcunum hygon.com/dcu-share-30c-16g dcu.com/gpu enflame.com/gcu enflame.com/drs-gcu",
    "enflame.com/shared-gcu iluvatar.com/gpu iluvatar.ai/gpu iluvatar.ai/BI-V100-vgpu metax-tech.com/gpu",
    "metax-tech.com/sgpu mthreads.com/gpu mthreads.com/vgpu birentech.com/gpu birentech.com/1-4-gpu kunlunxin.com/xpu",
    "kunlunxin.com/vxpu vastaitech.com/va vastaitech.com/vgpu alibabacloud.com/ppu aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice google.com/tpu furiosa.ai/rngd beta.furiosa.ai/npu rebellions.ai/ATOM",
    "rebellions.ai/atomplus rebellions.ai/npu tenstorrent.com/wormhole c600.graphcore.ai/ipu qualcomm.com/qaic",
    "ibm.com/spyre_pf ibm.com/spyre_vf example.com/npu hami.io/gpu volcano.sh/vgpu-number volcano.sh/gpu-number",
    "aliyun.com/gpu-count baidu.com/cgpu baidu.com/a100_80g_cgpu nvidia.com/vgpu nvidia.com/pgpu nvidia.com/gpu.sliced",
    "nvidia.com/RTX_3090 nvidia.com/1080ti nvidia.com/A40-6Q nvidia.com/GA100_A100_PCIE_40GB nvidia.com/L40S",
    "nvidia.com/GRID_T4-1Q nvidia.com/NVIDIA_A16-2Q nvidia.com/GH100_H100_SXM5_80GB nvidia.com/TU104GL_Tesla_T4",
    "nvidia.com/GP104_GEFORCE_GTX_1080 nvidia.com/T4 amd.com/spx_nps1 amd.com/mi300x koordinator.sh/gpu.shared",
    # names that only begin as those of network cards do
    "example.com/inference-gpu nvidia.com/inference example.com/ibm-gpu example.com/nice-gpu example.com/amazon-gpu",
    "example.com/ensemble-gpu example.com/bf16-gpu example.com/railway-gpu nvidia.com/ethos",
)


def names(lines: tuple[str, ...]) -> list[str]:
    return " ".join(lines).split()


def asking(**asked: object) -> Pod:
    pod = a_pod().asking()
    limits = {name: str(amount) for name, amount in asked.items()}
    return pod.having("spec.containers.0.resources", {"limits": limits, "requests": limits}).view()


@pytest.mark.parametrize("name", names(OTHER_DEVICES))
def test_another_device_counts_nothing_beside_gpus_and_alone(name: str) -> None:
    alone, with_gpus = asking(**{name: 8}), asking(**{"nvidia.com/gpu": 1, name: 8})
    assert [demand_of(each, (), POLICY) for each in (alone, with_gpus)] == [0, 1]
    assert unlisted_warnings(alone, POLICY) == ()


@pytest.mark.parametrize("name", names(ACCELERATORS))
def test_an_accelerator_counts_each_whatever_the_policy_lists(name: str) -> None:
    pod = asking(**{name: 2})
    assert [demand_of(pod, (), policy) for policy in (POLICY, ONE_LISTED)] == [2, 2]
    assert [dict(each.fields)["name"] for each in unlisted_warnings(pod, ONE_LISTED)] == [name]


TOGETHER: dict[str, tuple[dict[str, object], str]] = {
    "Moore Threads": ({"mthreads.com/vgpu": 1, "mthreads.com/sgpu-core": 8, "mthreads.com/sgpu-memory": 32}, "1"),
    "HAMi": ({"hami.io/gpu": 1, "hami.io/gpumem": 16000}, "1"),
    "HAMi's NVIDIA, as Volcano's": ({"nvidia.com/vgpu": 1, "nvidia.com/gpumem": 10000}, "1"),
    "two vGPUs of so much memory each": ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}, "2"),
    "two vGPUs of so many percent each": (
        {"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 50, "nvidia.com/gpucores": 30},
        "2",
    ),
    "Elastic GPU": ({"elasticgpu.io/gpu-core": 100, "elasticgpu.io/gpu-memory": 1}, "1"),
    "Ascend": ({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 32768}, "1"),
    "Ascend by its cores": ({"huawei.com/Ascend310P": 2, "huawei.com/Ascend310P-core": 40}, "2"),
    "Ascend, by Koordinator": (
        {
            "huawei.com/npu-core": 8,
            "huawei.com/npu-cpu": 7,
            "huawei.com/npu-dvpp": 100,
            "koordinator.sh/gpu-memory": "24Gi",
            "koordinator.sh/gpu-memory-ratio": 100,
        },
        "1",
    ),
    "Hygon": ({"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 60}, "1"),
    "Cambricon": (
        {"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vmemory": 20, "cambricon.com/mlu.smlu.vcore": 10},
        "1",
    ),
    "Cambricon, of a model": ({"cambricon.com/vmlu": 1, "cambricon.com/mlu370.smlu.vmemory": 4}, "1"),
    "MetaX": ({"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60, "metax-tech.com/vmemory": "4Gi"}, "1"),
    "Enflame": ({"enflame.com/drs-gcu": 1, "enflame.com/gcu-memory": 20480, "enflame.com/gcu-core": 40}, "1"),
    "Enflame, before": ({"enflame.com/vgcu": 1, "enflame.com/vgcu-percentage": 22}, "1"),
    "Iluvatar": ({"iluvatar.ai/BI-V100-vgpu": 1, "iluvatar.ai/BI-V100.vCore": 50, "iluvatar.ai/BI-V100.vMem": 64}, "1"),
    "Kunlunxin": ({"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 24576}, "1"),
    "AMD": ({"amd.com/gpu": 1, "amd.com/gpucores": 25, "amd.com/gpumem": 8192}, "1"),
    "GPUStack": ({"nvidia.com/gpu.sliced": 1, "nvidia.com/gpu.sliced.memory-mib": 8192}, "1"),
    "Koordinator's shared GPUs": (
        {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "4Gi"},
        "2",
    ),
    "Volcano": ({"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 3000, "volcano.sh/vgpu-cores": 50}, "2"),
    "Volcano's on Huawei Cloud": ({"volcano.sh/gpu-mem.128Mi": 16, "volcano.sh/gpu-core.percentage": 5}, "1"),
    "Aliyun": ({"aliyun.com/gpu-mem": 16, "aliyun.com/gpu-core.percentage": 30}, "1"),
    "Tencent": ({"tke.cloud.tencent.com/qgpu-core": 200, "tke.cloud.tencent.com/qgpu-memory": 20}, "2"),
    "Volcengine": ({"vke.volcengine.com/mgpu-core": 30, "vke.volcengine.com/mgpu-memory": 1024}, "1"),
    "Baidu": ({"baidu.com/cgpu": 1, "baidu.com/cgpu_core": 20, "baidu.com/cgpu_memory": 10}, "1"),
    "Neuron": ({"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2}, "1"),
    "a vendor that nobody knows": ({"example.com/xgpu": 2, "example.com/xgpu-cores": 132}, "2"),
    "a card of a name that nobody knows for each GPU": ({"nvidia.com/gpu": 8, "nvidia.com/blue": 8}, "8"),
    "eight cards": ({"nvidia.com/gpu": 8, **{f"nvidia.com/port-{number}": 1 for number in range(8)}}, "8"),
    "GPUs of two vendors": ({"nvidia.com/gpu": 1, "huawei.com/Ascend910": 2}, "3"),
    "GPUs of two models": ({"nvidia.com/gpu": 1, "nvidia.com/a100": 2}, "3"),
}


@pytest.mark.parametrize(("asked", "gpus"), TOGETHER.values(), ids=[*TOGETHER])
def test_parts_beside_what_they_are_of_count_once(asked: dict[str, object], gpus: str) -> None:
    assert demand_of(asking(**asked), (), POLICY) == Decimal(gpus)


DISTINCT: dict[str, tuple[tuple[dict[str, object], ...], str]] = {
    "cores of Trainium beside chips": (({"aws.amazon.com/neuron": 8}, {"aws.amazon.com/neuroncore": 16}), "16"),
    "the same chips by another name": (({"aws.amazon.com/neuron": 8}, {"aws.amazon.com/neurondevice": 8}), "16"),
    "memory alone, of GPUs of their own": (({"nvidia.com/gpu": 4}, *[{"nvidia.com/gpumem": 8000}] * 4), "8"),
    "each with its own part": ((*[{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}] * 3,), "3"),
    "a scheduler's words and a vendor's": (({"nvidia.com/gpu": 4}, {"koordinator.sh/gpu": 400}), "8"),
    "network cards in a sidecar": (({"nvidia.com/gpu": 8}, {"nvidia.com/blue": 8}), "8"),
    "more cards than GPUs": (({"nvidia.com/gpu": 4, "nvidia.com/blue": 6}, {"nvidia.com/gpu": 4}), "8"),
}


@pytest.mark.parametrize(("containers", "gpus"), DISTINCT.values(), ids=[*DISTINCT])
def test_a_part_describes_no_gpu_of_another_container(containers: tuple[dict[str, object], ...], gpus: str) -> None:
    pod = a_pod()
    for number, asked in enumerate(containers):
        limits = {name: str(amount) for name, amount in asked.items()}
        pod = pod.asking(name=f"c{number}").having(f"spec.containers.{number}.resources", {"limits": limits})
    assert demand_of(pod.view(), (), POLICY) == Decimal(gpus)


def test_a_part_that_another_container_could_tell_is_refused_where_the_policy_refuses_what_it_does_not_list() -> None:
    policy = a_policy(uncounted="Refuse")
    pod = a_pod().asking(1, name="a").asking(8000, resource="nvidia.com/gpumem", name="b")
    with pytest.raises(Refused) as refused:
        refuse_unlisted(pod.view(), policy)
    assert refused.value.refusal.field == "spec.containers[1].resources"


ALONE: dict[str, tuple[str, str, str]] = {
    "Koordinator's memory": ("koordinator.sh/gpu-memory", "16Gi", "1"),
    "Intel's memory": ("gpu.intel.com/memory.max", "10M", "1"),
    "HAMi's memory": ("nvidia.com/gpumem", "8Gi", "1"),
    "memory in a fraction": ("volcano.sh/vgpu-memory", "0.5", "1"),
    "no memory": ("nvidia.com/gpumem", "0Gi", "0"),
    "a parameter": ("koordinator.sh/gpu-memory", "{{memory}}", "1"),
    "a percentage of several": ("example.com/gpu-percentage", "250", "3"),
    "cores of which nobody knows how many a GPU has": ("example.com/gpu-cores", "132", "1"),
    "cores of Tencent": ("tke.cloud.tencent.com/qgpu-core", "300", "3"),
    "cores of Trainium": ("aws.amazon.com/neuroncore", "32", "16"),
    "a name that tells only the vendor": ("nvidia.com/blue", "8", "8"),
}


@pytest.mark.parametrize(("name", "amount", "gpus"), ALONE.values(), ids=[*ALONE])
def test_parts_alone_are_of_a_gpu(name: str, amount: str, gpus: str) -> None:
    pod = asking(**{name: amount})
    assert demand_of(pod, (), POLICY) == Decimal(gpus)
    assert gpu_holders(pod, (), POLICY) == ((0,) if Decimal(gpus) else ())


@pytest.mark.parametrize(
    ("name", "amount"),
    [("nvidia.com/gpu", "8Gi"), ("nvidia.com/gpumem", "-1Mi"), ("koordinator.sh/gpu-core", str(101 * MOST_GPUS))],
)
def test_what_is_no_amount_is_refused_by_its_field(name: str, amount: str) -> None:
    with pytest.raises(Refused) as refused:
        demand_of(asking(**{name: amount}), (), POLICY)
    assert refused.value.refusal.field == f"spec.containers[0].resources.requests.{name}"


def test_a_part_with_a_weight_of_its_own_counts_by_that() -> None:
    policy = a_policy(
        resources=[{"name": "nvidia.com/gpu", "weight": "0.1"}, {"name": "nvidia.com/gpumem", "weight": "0.00001"}]
    )
    assert demand_of(asking(**{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000}), (), policy) == Decimal("0.3")


def test_a_card_beside_gpus_is_named_and_adds_nothing() -> None:
    warnings = unlisted_warnings(asking(**{"nvidia.com/gpu": 8, "nvidia.com/blue": 8}), POLICY)
    adds_nothing = "nvidia.com/blue: adds no GPU, as the policy does not list it; "
    assert [warning_words(each) for each in warnings] == [adds_nothing + "ask the platform team"]


def test_every_accelerator_that_is_listed_is_known_by_its_name_too() -> None:
    """Otherwise it would be free under a list of the platform team's own that leaves it out."""
    counted = [name for name, weight in POLICY.resources.items() if weight]
    assert [name for name in counted if not looks_like_accelerator(name)] == []
    assert [name for name in table().units if not looks_like_accelerator(name)] == []


NODES = {
    "cards beside GPUs": ({"nvidia.com/gpu": "8", "nvidia.com/blue": "8", "nvidia.com/resibs1": "8"}, 8),
    "one device by two names, and its cores": (
        {"aws.amazon.com/neuron": "16", "aws.amazon.com/neurondevice": "16", "aws.amazon.com/neuroncore": "32"},
        16,
    ),
    "what a scheduler says of GPUs": (
        {"nvidia.com/gpu": "8", "koordinator.sh/gpu-core": "800", "koordinator.sh/gpu-memory": "640Gi"},
        8,
    ),
    "another vendor's": ({"huawei.com/Ascend910": "8"}, 8),
}


@pytest.mark.parametrize(("allocatable", "gpus"), NODES.values(), ids=[*NODES])
def test_a_node_has_each_accelerator_once(allocatable: dict[str, str], gpus: int) -> None:
    node = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    assert gpu_node(msgspec.json.encode(node), POLICY).gpus == gpus
