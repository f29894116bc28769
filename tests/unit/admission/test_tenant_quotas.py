"""A TenantQuota as it is applied: warned about, and admitted."""

import pytest

from tests.builders import a_namespace, a_pod, a_policy, a_tenant
from tests.builders.world import FakeApi

ONE = a_tenant("alpha", namespace="team-alpha").allowing(4)


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
async def test_its_author_hears_of_a_mistake_in_every_mode(mode: str) -> None:
    world = FakeApi(a_namespace(), policy=a_policy(mode=mode))
    answer = await world.validate(ONE.having("spec.maxTier", "gold"), namespace="")
    assert answer.allowed
    assert answer.warnings == [
        (
            '[unknown-tier] spec.maxTier: unknown tier "gold"; '
            "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
        )
    ]
    assert [record[0] for record in world.records] == ["validate"], "it is counted"


async def test_names_of_the_policy_that_helm_brings_with_it_are_known_before_that_policy_is_active() -> None:
    with_it = ONE.having("metadata.annotations", {"gpu-tiers.dev/checked-names": "gpu-training gold"})
    world = FakeApi(a_namespace())
    assert (await world.validate(with_it.having("spec.maxTier", "gold"), namespace="")).warnings == []
    typed = await world.validate(with_it.having("spec.maxTier", "glod"), namespace="")
    assert typed.warnings[0].startswith('[unknown-tier] spec.maxTier: unknown tier "glod"'), "edited by hand since"


async def test_nothing_is_said_of_the_ranks_of_tiers_that_helm_brings_with_it() -> None:
    """An upgrade that puts platinum above gpu-training, and spare below gpu-interactive."""
    above = ONE.having("spec.maxTier", "platinum").allowing(4, tier="gpu-training")
    lends = ONE.having("spec.onExceed", "Demote").allowing(4, tier="platinum")
    world = FakeApi(a_namespace())
    for each in (above, lends):
        with_it = each.having("metadata.annotations", {"gpu-tiers.dev/checked-names": "platinum gpu-training spare"})
        assert (await world.validate(with_it, namespace="")).warnings == []
        assert (await world.validate(each, namespace="")).warnings, "by hand, and no tier is named platinum"


async def test_a_good_one_is_admitted_silently() -> None:
    assert (await FakeApi(a_namespace()).validate(ONE, namespace="")).warnings == []


async def test_a_lowered_quota_is_compared_with_what_is_in_use() -> None:
    world = FakeApi(a_namespace(), ONE)
    assert (await world.create(a_pod("train").asking(4))).allowed
    lowered = ONE.having("spec.quotas.0.gpus", 3)
    assert (await world.update(ONE, lowered, namespace="")).warnings == [
        (
            "[below-use] spec.quotas[0].gpus: 3 is below the 4 in use (total); "
            "nothing is evicted, and new pods are over the quota"
        )
    ]


async def test_an_overlap_with_another_tenant() -> None:
    world = FakeApi(a_namespace(), ONE)
    other = a_tenant("beta", namespace="team-alpha").having("metadata.creationTimestamp", "2026-11-02T08:00:00Z")
    assert (await world.validate(other, namespace="")).warnings == [
        (
            "[overlap] TenantQuota alpha selects team-alpha too; it is older and applies there. "
            "Make the selectors exclude each other"
        )
    ]


async def test_itself_is_no_other_tenant() -> None:
    world = FakeApi(a_namespace(), ONE)
    assert (await world.update(ONE, ONE.having("spec.onExceed", "Warn"), namespace="")).warnings == []


async def test_one_that_can_t_be_read_is_for_the_crd_to_refuse() -> None:
    broken = ONE.having("spec.quotas.0.gpus", "many")
    answer = await FakeApi(a_namespace()).validate(broken, namespace="")
    assert answer.allowed
    assert answer.warnings[0].endswith("; this quota is not active")
