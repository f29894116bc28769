"""The presets: each is a whole policy, and its slices of a GPU are weighed right."""

import pytest

from tests.builders import policy_file
from webhook.config.load import parse, presets
from webhook.policy.values.tier_policy import Hook
from webhook.policy.workloads.kind_table import WorkloadType

PRESETS = {
    "four-tier": (
        {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200},
        "gpu-interactive",
    ),
    "three-tier": ({"critical": 1000, "normal": 500, "scavenger": 100}, "scavenger"),
    "inference-first": ({"high-priority-inference": 1_000_000, "low-priority-training": 1000}, "low-priority-training"),
}


@pytest.mark.parametrize(("name", "tiers", "default"), [(name, *found) for name, found in PRESETS.items()])
def test_each_preset_is_a_whole_policy(name: str, tiers: dict[str, int], default: str) -> None:
    policy = parse(policy_file(preset=name))
    assert {tier.name: tier.value for tier in policy.tiers} == tiers
    assert policy.default_tier == default
    assert set(policy.tier_of_type) == set(WorkloadType)
    assert policy.checkpoint.hooks == {WorkloadType.TRAINING: Hook("file", 120, "/run/gpu-tiers")}
    assert policy.weights["nvidia.com/gpu"] == 1
    assert policy.weights["deviceclass.resource.kubernetes.io/gpu.nvidia.com"] == 1


DIVIDED = {
    "A100 40 GB": {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    "H100 80 GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100 NVL": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    "GH200": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.48gb": 2, "4g.48gb": 1, "7g.96gb": 1},
    "H200": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "B200": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "GB200": {"1g.23gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "4g.93gb": 1, "7g.186gb": 1},
    "B300": {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    "GB300": {"1g.35gb": 7, "1g.70gb": 4, "2g.70gb": 3, "3g.139gb": 2, "4g.139gb": 1, "7g.278gb": 1},
    "A30": {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
    "RTX PRO 6000": {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
    "mixed H200": {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1},
}
"""How often a GPU can be divided so, at most, as the GPU operator's own configurations have it."""


@pytest.mark.parametrize(("gpu", "slices"), DIVIDED.items(), ids=DIVIDED)
def test_the_slices_of_a_divided_gpu_never_add_up_to_more_than_one(gpu: str, slices: dict[str, int]) -> None:
    weights = parse(policy_file(preset="four-tier")).weights
    shares = {name: weights[f"nvidia.com/mig-{name}"] * count for name, count in slices.items()}
    assert all(0 < share <= 1 for share in shares.values()), shares
    if gpu.startswith("mixed"):
        assert sum(shares.values()) == 1
    else:
        assert list(shares.values())[-1] == 1


def test_a_preset_s_default_tier_evicts_nobody() -> None:
    for name in presets():
        policy = parse(policy_file(preset=name))
        default = policy.tiers.get(policy.default_tier)
        assert default
        assert default.preemption_policy == "Never"


def test_the_presets_are_those_that_are_tested_here() -> None:
    assert presets() == sorted(PRESETS)
