"""The names of GPUs: resources of device plugins, drivers of dynamic resource allocation, and slices of a GPU.

Sources: the device plugins and DRA drivers of NVIDIA, AMD and Intel; the device plugins of Habana; HAMi, Volcano,
Koordinator, Aliyun's and Tencent's GPU sharing; NVIDIA's and AMD's network operators for what is no GPU.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

LONGEST = 253 + 1 + 63
"""Characters of a resource's name, as validation has it; custom resources bring longer ones."""

GPU_LIKE = "^(nvidia[.]com|amd[.]com|gpu[.]intel[.]com|habana[.]ai)/.|./.*gpu|^tencent[.]com/vcuda-."
"""Found in what GPUs are called. Both of these stand in the chart's CEL too, as `make generate` writes them there."""
NO_GPU = (
    "(?i)./(.*[-_.])?(hostdev|rdma|roce|sriov|mlnx|connectx|cx[0-9]|bf|dpu|ib|v?nic|net|vf|pf|nvswitch|audio|usb|"
    "xilinx|ama|npu|monitoring)"
)
"""Found in what the same vendors call network cards, other parts of a graphics card, FPGAs, what only looks at GPUs."""
_GPU_LIKE, _NO_GPU = re.compile(GPU_LIKE), re.compile(NO_GPU)

_DRIVERS = {"gaudi.intel.com"}
"""Drivers of GPUs that have no `gpu` in their name."""
NO_GPU_DRIVERS = {"compute-domain.nvidia.com", "dra.net", "dra.cpu", "dra.memory"}
"""Drivers of other devices."""


def looks_like_gpu(name: str) -> bool:
    """Tells whether a resource is called as GPUs are."""
    return len(name) <= LONGEST and _GPU_LIKE.search(name) is not None and _NO_GPU.search(name) is None


def is_gpu_driver(name: str) -> bool:
    """Tells whether a driver of dynamic resource allocation is called as those of GPUs are."""
    return "gpu" in name or name in _DRIVERS


@dataclass(frozen=True, slots=True)
class Part:
    """A resource that says how much of another one is asked for: `units` of it are a GPU, 0 where that varies."""

    of: str
    units: int = 0


PARTS = {
    "nvidia.com/gpumem": Part("nvidia.com/gpu"),
    "nvidia.com/gpumem-percentage": Part("nvidia.com/gpu", 100),
    "nvidia.com/gpucores": Part("nvidia.com/gpu", 100),
    "nvidia.com/priority": Part("nvidia.com/gpu"),
    "volcano.sh/vgpu-memory": Part("volcano.sh/vgpu-number"),
    "volcano.sh/vgpu-memory-percentage": Part("volcano.sh/vgpu-number", 100),
    "volcano.sh/vgpu-cores": Part("volcano.sh/vgpu-number", 100),
    "volcano.sh/gpu-memory": Part("volcano.sh/gpu-number"),
    "koordinator.sh/gpu": Part("nvidia.com/gpu", 100),
    "koordinator.sh/gpu-core": Part("nvidia.com/gpu", 100),
    "koordinator.sh/gpu-memory": Part("koordinator.sh/gpu-core"),
    "koordinator.sh/gpu-memory-ratio": Part("koordinator.sh/gpu-core", 100),
    "aliyun.com/gpu-mem": Part("aliyun.com/gpu-count"),
    "aliyun.com/gpu-core.percentage": Part("aliyun.com/gpu-mem", 100),
    "tencent.com/vcuda-core": Part("nvidia.com/gpu", 100),
    "tencent.com/vcuda-memory": Part("tencent.com/vcuda-core"),
    "gpu.intel.com/millicores": Part("gpu.intel.com/i915", 1000),
    "gpu.intel.com/memory.max": Part("gpu.intel.com/i915"),
    "gpu.intel.com/tiles": Part("gpu.intel.com/i915"),
}
"""They count as many GPUs as their units come up to. Of one that is asked for in several ways the most counts."""


def whole_gpus(name: str, amount: Decimal) -> Decimal:
    """GPUs of which so much of a part is asked for, rounded up to whole ones."""
    units = PARTS[name].units
    return (amount / units).to_integral_value(ROUND_CEILING) if units else min(amount, Decimal(1))


def whole_of(name: str) -> str:
    """The resource that a part is of in the end, which no part is; any other name itself."""
    while name in PARTS:
        name = PARTS[name].of
    return name


MIG = "nvidia.com/mig-"
_SLICES = {"1": Decimal("0.25"), "2": Decimal("0.5"), "3": Decimal("0.5"), "4": Decimal(1), "7": Decimal(1)}
"""The largest share that so many compute slices have of any GPU that NVIDIA divides."""


def mig_profile(name: str) -> str:
    """The profile in a resource's name, such as 1g.10gb; "" where the resource is no MIG slice."""
    return name.removeprefix(MIG).removesuffix(".shared") if name.startswith(MIG) else ""


def mig_name(profile: str) -> str:
    """The resource that a profile is to a device plugin; DRA writes 1g.10gb+me where that has 1g.10gb.me."""
    return MIG + profile.replace("+", ".")


def share_of_profile(profile: str) -> Decimal:
    """The most that a slice of a profile can be of a GPU; all of it where the profile can't be read."""
    found = re.fullmatch(r"(?:[0-9]c\.)?([1-7])g\..+", profile)
    return _SLICES.get(found[1], Decimal(1)) if found else Decimal(1)


def is_told_by_another(name: str, asked: Collection[str]) -> bool:
    """Tells whether it says how much of a resource that is asked for as well."""
    part = PARTS.get(name)
    return part is not None and part.of in asked
