"""Weighs whatever a pod can ask for in GPUs: by the policy's list, else by what its name or its DeviceClass tells.

Sources of the names: the device plugins and DRA drivers of NVIDIA, AMD and Intel; the device plugins of Habana; HAMi,
Volcano, Koordinator, Aliyun's and Tencent's GPU sharing; NVIDIA's and AMD's network operators for what is no GPU.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal

import msgspec

from webhook.policy.workloads.claims import drivers_in, profile_in

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


class Part(msgspec.Struct, frozen=True):
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


class DeviceClass(msgspec.Struct, frozen=True):
    """A DeviceClass, and the name under which a pod may ask for its devices as for a resource, if it has one.

    `found` are drivers of its devices that are a GPU's by what they offer, whatever their name.
    """

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource_name: str = ""
    found: frozenset[str] = frozenset()

    @property
    def other_drivers(self) -> tuple[str, ...]:
        """The drivers that its devices must have and that are no GPU's."""
        return tuple(each for each in drivers_in(self.selectors) if not is_gpu_driver(each) and each not in self.found)

    @property
    def unknown_drivers(self) -> tuple[str, ...]:
        """The drivers that its devices must have and of which only what they offer can tell whether it is GPUs."""
        return tuple(each for each in drivers_in(self.selectors) if not (is_gpu_driver(each) or each in NO_GPU_DRIVERS))

    @property
    def may_be_gpus(self) -> bool:
        """Tells whether a GPU can be among its devices: no selector plainly asks for a driver of something else."""
        return not self.other_drivers

    @property
    def profile(self) -> str:
        """The MIG profile that all of its devices have; "" where that isn't told."""
        return profile_in(self.selectors)


IMPLICIT_CLAIM = "deviceclass.resource.kubernetes.io/"
"""Starts the resource name under which a device class is asked for without a claim (KEP-5004)."""

NOTHING, WHOLE = Decimal(0), Decimal(1)


class Weights:
    """GPUs per unit, by resource name. `name in weights` tells whether it counts.

    `listed` are those of the policy, device classes by their implicit names; `classes` are those of the cluster. A
    class of which neither tells counts whole, as it may be a GPU's once it is there; so do resources that are called as
    GPUs are, if `unlisted` ones count.
    """

    def __init__(self, listed: Mapping[str, Decimal], classes: Mapping[str, DeviceClass], *, unlisted: bool) -> None:
        self.listed = listed
        self._classes = classes
        self._unlisted = unlisted
        self._by_resource: dict[str, list[str]] = {}
        for each in (found for found in classes.values() if found.extended_resource_name):
            self._by_resource.setdefault(each.extended_resource_name, []).append(each.name)

    def __contains__(self, name: str) -> bool:
        return ("/" in name or name in self.listed) and self[name] > 0

    def __getitem__(self, name: str) -> Decimal:
        found = self.listed.get(name)
        if found is not None:
            return found
        if "/" not in name:  # cpu, memory: nearly all
            return NOTHING
        return max(self._by_what_it_is(name), default=NOTHING)

    def of_devices(self, device_class: str, profile: str = "") -> Decimal:
        """GPUs that a device of a class is, of which a request may tell the MIG profile."""
        listed = self.listed.get(IMPLICIT_CLAIM + device_class)
        if listed is not None:
            return listed
        found = self._classes.get(device_class) or DeviceClass(device_class)
        return self._of_profile(profile or found.profile) if found.may_be_gpus else NOTHING

    def each_once(self, held: Mapping[str, Decimal]) -> dict[str, Decimal]:
        """The resources that a pod holds and that count, each GPU once: of it and its parts whichever comes to most."""
        if len(held) == 1:  # nearly always
            return dict(held)
        most: dict[str, str] = {}
        for name in sorted(held, key=lambda name: (self.is_part(name), name)):
            whole = whole_of(name) if self.is_part(name) else name
            if whole not in most or held[name] * self[name] > held[most[whole]] * self[most[whole]]:
                most[whole] = name
        return {name: held[name] for name in most.values()}

    def gpus(self, name: str, amount: Decimal) -> Decimal:
        """The factor of the weight: the amount of a resource, or the GPUs that a part comes up to."""
        return whole_gpus(name, amount) if self.is_part(name) else amount

    def is_part(self, name: str) -> bool:
        """Tells whether it says how much of a GPU is asked for, and the policy does not say how that counts."""
        return name in PARTS and name not in self.listed

    def has_class(self, name: str) -> bool:
        """Tells whether a DeviceClass may give it, so that it need not be among the resources of a node."""
        return name.startswith(IMPLICIT_CLAIM) or name in self._by_resource

    def is_of_class(self, name: str) -> bool:
        """Tells whether it is asked of a DeviceClass, and counts by that."""
        return self.has_class(name) and name not in self.listed

    def is_unlisted(self, name: str) -> bool:
        """Tells whether it looks like GPUs, and nobody says how many it is."""
        return not (name in self.listed or self.is_of_class(name)) and looks_like_gpu(name)

    def _by_what_it_is(self, name: str) -> Iterator[Decimal]:
        if name.startswith(IMPLICIT_CLAIM):
            yield self.of_devices(name.removeprefix(IMPLICIT_CLAIM))
        yield from map(self.of_devices, self._by_resource.get(name, ()))
        if self._unlisted and self.is_unlisted(name):
            yield self._of_profile(mig_profile(name))

    def _of_profile(self, profile: str) -> Decimal:
        if not profile:
            return WHOLE
        found = self.listed.get(mig_name(profile))
        return share_of_profile(profile) if found is None else found
