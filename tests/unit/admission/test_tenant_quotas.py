"""A TenantQuota as it is applied: warned about, and admitted."""

import pytest

from tests.builders import a_namespace, a_pod, a_policy, a_tenant
from tests.builders.world import FakeApi

ONE = a_tenant("alpha", namespace="team-alpha").allowing(4)


TIERS = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
FLAVORS = [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100"}}]


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
async def test_a_mistyped_name_is_refused_in_every_mode(mode: str) -> None:
    """Stored, the row would limit nothing."""
    world = FakeApi(a_namespace(), policy=a_policy(mode=mode, resourceFlavors=FLAVORS))
    for mistyped, told in (
        (
            ONE.allowing(6, tier="gpu-trainnig"),
            f'spec.quotas[1].tier: unknown tier "gpu-trainnig"; {TIERS} [unknown-tier]',
        ),
        (ONE.having("spec.maxTier", "gold"), f'spec.maxTier: unknown tier "gold"; {TIERS} [unknown-tier]'),
        (
            ONE.allowing(6, flavor="b200"),
            'spec.quotas[1].resourceFlavor: unknown flavor "b200"; known flavors: h100 [unknown-flavor]',
        ),
    ):
        answer = await world.validate(mistyped, namespace="")
        assert (answer.allowed, answer.sentence) == (False, told.rpartition(" [")[0])
    assert [(record[0], record[3].name) for record in world.records] == [("validate", "Enforce")] * 3, (
        "they are counted"
    )


async def test_a_tier_that_the_policy_dropped_locks_no_quota_that_names_it() -> None:
    """Rows may move and change their GPUs, and a condition and a warning name the tier; another mistake is refused."""
    stored = ONE.allowing(6, tier="platinum")
    world = FakeApi(a_namespace(), stored)
    for edited in (
        stored.having("spec.onExceed", "Warn"),
        stored.having("spec.quotas.1.gpus", 2),
        a_tenant("alpha", namespace="team-alpha").allowing(6, tier="platinum").allowing(4),
    ):
        answer = await world.update(stored, edited, namespace="")
        assert answer.allowed
        assert [each.partition("]")[0] for each in answer.warnings] == ["[unknown-tier"]
    for mistyped in (stored.having("spec.maxTier", "platinum"), stored.allowing(1, tier="palladium")):
        assert not (await world.update(stored, mistyped, namespace="")).allowed


async def test_names_of_the_policy_that_helm_brings_with_it_are_known_before_that_policy_is_active() -> None:
    with_it = ONE.having("metadata.annotations", {"gpu-tiers.dev/checked-names": "gpu-training gold"})
    world = FakeApi(a_namespace())
    assert (await world.validate(with_it.having("spec.maxTier", "gold"), namespace="")).warnings == []
    typed = await world.validate(with_it.having("spec.maxTier", "glod"), namespace="")
    assert typed.sentence.startswith('spec.maxTier: unknown tier "glod"'), "edited by hand since"


async def test_nothing_is_said_of_the_ranks_of_tiers_that_helm_brings_with_it() -> None:
    """An upgrade that puts platinum above gpu-training, and spare below gpu-interactive."""
    above = ONE.having("spec.maxTier", "platinum").allowing(4, tier="gpu-training")
    lends = ONE.having("spec.onExceed", "Demote").allowing(4, tier="platinum")
    world = FakeApi(a_namespace())
    for each in (above, lends):
        with_it = each.having("metadata.annotations", {"gpu-tiers.dev/checked-names": "platinum gpu-training spare"})
        assert (await world.validate(with_it, namespace="")).warnings == []
        assert not (await world.validate(each, namespace="")).allowed, "by hand, and no tier is named platinum"


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
            "[overlap] TenantQuota alpha selects team-alpha too; alpha is older and applies there. "
            "Make the selectors exclude each other"
        )
    ]


async def test_itself_is_no_other_tenant() -> None:
    world = FakeApi(a_namespace(), ONE)
    assert (await world.update(ONE, ONE.having("spec.onExceed", "Warn"), namespace="")).warnings == []


async def test_one_that_can_t_be_read_is_refused_but_one_that_was_broken_before_is_not_locked() -> None:
    broken = ONE.having("spec.quotas.0.gpus", "many")
    world = FakeApi(a_namespace())
    refused = await world.validate(broken, namespace="")
    assert not refused.allowed
    assert "[no-quantity]" in str(refused)
    answer = await world.update(broken, broken.having("metadata.labels", {"a": "b"}), namespace="")
    assert answer.allowed
    assert answer.warnings[0].endswith("; this quota is not active")
