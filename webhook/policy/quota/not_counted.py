"""GPUs that a pod asks for and the policy does not count: resources and annotations that look like GPUs.

Sources: the device plugins of NVIDIA, AMD, Intel, Habana; KAI Scheduler, HAMi, Volcano, Koordinator, Aliyun's and
Tencent's GPU sharing.
"""

import re
from collections.abc import Iterator

from webhook.objects.pods import Pod
from webhook.policy.quota.shares import ANNOTATIONS
from webhook.policy.values.tier_policy import TierPolicy

GPU_LIKE = re.compile(r"(?:nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai)/.+|.+/.*gpu.*|tencent\.com/vcuda-.+")
"""Names of resources that GPUs have. The chart's matchConditions of workloads ask for the same in CEL."""

NO_GPU = re.compile(
    r".+/(?:.*[-_.])?(?:hostdev|rdma|roce|sriov|mlnx|connectx|cx\d|bf\d?|ib|v?nic|net|vf|pf|monitoring).*"
)
"""Names of the same vendors for network cards, and of monitors that only look at GPUs."""

LONGEST = 253 + 1 + 63
"""Characters of a resource's name, as validation has it; custom resources bring longer ones."""

DETAILS = {
    "nvidia.com/gpumem": "nvidia.com/gpu",
    "nvidia.com/gpumem-percentage": "nvidia.com/gpu",
    "nvidia.com/gpucores": "nvidia.com/gpu",
    "nvidia.com/priority": "nvidia.com/gpu",
    "volcano.sh/vgpu-memory": "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory-percentage": "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-cores": "volcano.sh/vgpu-number",
    "koordinator.sh/gpu-core": "nvidia.com/gpu",
    "koordinator.sh/gpu-memory": "nvidia.com/gpu",
    "koordinator.sh/gpu-memory-ratio": "nvidia.com/gpu",
    "tencent.com/vcuda-memory": "tencent.com/vcuda-core",
    "gpu.intel.com/millicores": "gpu.intel.com/i915",
    "gpu.intel.com/memory.max": "gpu.intel.com/i915",
    "gpu.intel.com/tiles": "gpu.intel.com/i915",
}
"""Resources that say how much of another one: where a pod asks for that one, and it counts, they add no GPUs."""


def not_counted(pod: Pod, policy: TierPolicy) -> tuple[str, ...]:
    """What a pod asks for that looks like GPUs and is not among the policy's resources."""
    return tuple(dict.fromkeys((*_resources(pod, policy), *_annotations(pod, policy))))


def _resources(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    asked = {name for _, each in pod.spec.every_container() for name in _asked(each.resources.requests)}
    asked |= {name for _, each in pod.spec.every_container() for name in _asked(each.resources.limits)}
    counted = asked & policy.weights.keys()
    yield from (name for name in sorted(asked - counted) if _is_gpu_like(name) and DETAILS.get(name) not in counted)


def _asked(resources: dict[str, str | int | float]) -> Iterator[str]:
    yield from (name for name, amount in resources.items() if str(amount) != "0")


def _is_gpu_like(name: str) -> bool:
    """Whether a resource is called as GPUs are."""
    return len(name) <= LONGEST and GPU_LIKE.fullmatch(name) is not None and NO_GPU.fullmatch(name) is None


def _annotations(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    counted = {each.annotation for each in policy.shares}
    yield from (
        f"annotation {each}" for each in ANNOTATIONS if each not in counted and pod.metadata.annotations.get(each)
    )
