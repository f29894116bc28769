"""Tiers that count on eviction, where kube-scheduler evicts nobody for GPUs: the person who applies is told."""

from typing import Any

import pytest

from tests.builders import a_claim_template, a_claiming_pod, a_job, a_pod, a_policy, a_tenant
from tests.builders.claims import a_device_class
from tests.builders.world import FakeApi
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tier_policy import TierPolicy

RESOURCE = "example.com/gpu"
CLASS = a_device_class("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'", resource=RESOURCE)
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
DRA_ALONE = EvictionScope(frozenset())


def a_world(scope: EvictionScope = DRA_ALONE, *objects: Any, policy: TierPolicy | None = None) -> FakeApi:
    world = FakeApi(CLASS, a_claim_template(), *objects, policy=policy)
    world.known.scope = scope
    return world


async def warnings_of(world: FakeApi, applied: Any) -> list[str]:
    answer = await world.create(applied)
    assert answer.allowed
    return [each for each in answer.warnings if each.startswith("[evicts-nobody]")]


def warning(name: str, tier: str = "gpu-training") -> list[str]:
    return [f"[evicts-nobody] kube-scheduler evicts nobody for {name} (DRA): {tier} waits until GPUs are free"]


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (a_claiming_pod(), "gpu.nvidia.com"),
        (a_pod().asking(1, resource=RESOURCE), RESOURCE),
        (a_pod().asking(1, resource=IMPLICIT), "gpu.nvidia.com"),
    ],
    ids=["a claim", "a resource", "the name of a class"],
)
async def test_a_tier_that_evicts_others_warns_where_gpus_come_by_dra(pod: Any, name: str) -> None:
    high = pod.of_tier("gpu-training")
    for applied in (high, a_job(high)):
        assert await warnings_of(a_world(), applied) == warning(name)
        assert await warnings_of(a_world(EvictionScope(frozenset(), devices=True)), applied) == [], (
            "a later version evicts"
        )
    for tier in ("gpu-interactive",):
        assert await warnings_of(a_world(), pod.of_tier(tier)) == [], "it evicts nobody anyway"
    calm = a_policy(adoption=True)
    assert await warnings_of(a_world(policy=calm), high) == [], "during adoption no tier does"


async def test_where_a_device_plugin_has_the_resource_or_nodes_are_not_known_nothing_is_said() -> None:
    pod = a_pod().asking(1, resource=RESOURCE).of_tier("gpu-training")
    for scope in (EvictionScope(frozenset({RESOURCE})), EvictionScope()):
        assert await warnings_of(a_world(scope), pod) == []
    both = a_claiming_pod().asking(1, name="second", resource=RESOURCE).of_tier("gpu-training")
    assert await warnings_of(a_world(EvictionScope(frozenset({RESOURCE}))), both) == warning("gpu.nvidia.com"), (
        "it needs both"
    )


async def test_the_lowest_tier_has_nobody_to_evict() -> None:
    tiers = [{"name": "high", "value": 9}, {"name": "low", "value": 5}]
    policy = a_policy(preset="", tiers=tiers, workloadTypes={}, defaultTier="low", resources=[{"name": RESOURCE}])
    world = a_world(policy=policy)
    assert await warnings_of(world, a_claiming_pod().of_tier("low")) == []
    assert await warnings_of(world, a_claiming_pod().of_tier("high")) == warning("gpu.nvidia.com", "high")


async def test_kueue_and_other_schedulers_evict_by_their_own_rules() -> None:
    pod = a_claiming_pod().of_tier("gpu-training")
    assert await warnings_of(a_world(), pod.labelled({"kueue.x-k8s.io/queue-name": "team"})) == []
    assert await warnings_of(a_world(), pod.having("spec.schedulerName", "volcano")) == []


async def test_a_pod_that_is_demoted_is_not_said_to_be_evicted_for_its_gpus() -> None:
    tenant = a_tenant().allowing("0", tier="gpu-training").having("spec.onExceed", "Demote")
    pod = a_claiming_pod().of_tier("gpu-training")
    demoted = "tenant alpha has no room for it in gpu-training: this pod runs as gpu-batch"
    assert demoted in (await a_world(DRA_ALONE, tenant).mutate(pod)).warnings
    later = await a_world(EvictionScope(devices=True), tenant).mutate(pod)
    assert f"{demoted}, which gpu-training, gpu-serving may evict" in later.warnings
