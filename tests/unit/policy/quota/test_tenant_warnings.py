"""The warnings that the author of a TenantQuota reads at once."""

from decimal import Decimal

import pytest

from tests.builders import TenantBuilder, a_policy, a_tenant
from tests.builders.words import words
from webhook.policy.quota.tenant_status import tenant_warnings
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, Usage

POLICY = a_policy(resourceFlavors=[{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100"}}])
HERE = [Namespace(name, {"kubernetes.io/metadata.name": name, "team": "a"}) for name in ("lab", "team-alpha", "wiki")]
TIERS = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
TEAM = {"matchLabels": {"team": "a"}}


def said(tenant: TenantBuilder, *others: TenantBuilder, gpus: str = "0", here: list[Namespace] = HERE) -> list[str]:
    """The warnings, where so many GPUs are booked on each row."""

    def usage(owner: Tenant) -> Usage:
        return {row: Decimal(gpus) for row in owner.rows}

    return [*words(tenant_warnings(tenant.view(), [each.view() for each in others], here, usage, POLICY))]


def aged(name: str, created: str | None, **spec: object) -> TenantBuilder:
    return a_tenant(name, **spec).having("metadata.creationTimestamp", created)


def test_a_good_one_is_not_commented() -> None:
    assert said(a_tenant(maxTier="gpu-batch").allowing(4, tier="gpu-batch", flavor="h100"), gpus="4") == []


@pytest.mark.parametrize(
    ("spec", "where", "name"),
    [
        ({"maxTier": "gold"}, "spec.maxTier", "gold"),
        ({"allowedTiers": ["gpu-batch", "gold"]}, "spec.allowedTiers[1]", "gold"),
        ({"defaultTier": "gold"}, "spec.defaultTier", "gold"),
        ({"onExceed": "Demote", "demoteTo": ["gold"]}, "spec.demoteTo[0]", "gold"),
        ({"quotas": [{"gpus": 1}, {"tier": "gold", "gpus": 1}]}, "spec.quotas[1].tier", "gold"),
    ],
)
def test_a_tier_that_the_policy_has_not(spec: dict[str, object], where: str, name: str) -> None:
    assert said(a_tenant(**spec)) == [f'[unknown-tier] {where}: unknown tier "{name}"; {TIERS}']


def test_a_tier_that_the_ceiling_forbids() -> None:
    tenant = a_tenant(maxTier="gpu-batch", defaultTier="gpu-serving").allowing(4).allowing(2, tier="gpu-training")
    assert said(tenant) == [
        "[above-ceiling] spec.defaultTier: gpu-serving is above spec.maxTier, gpu-batch; no pod may have gpu-serving",
        (
            "[above-ceiling] spec.quotas[1].tier: gpu-training is above spec.maxTier, gpu-batch; no pod may have "
            "gpu-training"
        ),
    ]


def test_nothing_is_above_a_ceiling_that_is_no_tier() -> None:
    tenant = a_tenant(maxTier="gold", defaultTier="gpu-serving").allowing(2, tier="gpu-training")
    assert said(tenant) == [f'[unknown-tier] spec.maxTier: unknown tier "gold"; {TIERS}']


def test_a_demotion_to_a_tier_that_is_below_no_row() -> None:
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-serving", "gpu-batch"]).allowing(2, tier="gpu-serving")
    (sentence,) = said(tenant)
    assert sentence.startswith("[demotes-not-there] spec.demoteTo[0]: no row is of a tier above gpu-serving")


def test_a_flavor_that_the_policy_has_not() -> None:
    assert said(a_tenant().allowing(1, flavor="b200")) == [
        '[unknown-flavor] spec.quotas[0].resourceFlavor: unknown flavor "b200"; known flavors: h100'
    ]


def test_a_row_that_no_resource_quota_can_say() -> None:
    tenant = a_tenant().allowing(4).allowing(1, flavor="h100")
    assert said(tenant) == []
    assert said(tenant.having("spec.backstop", "ResourceQuota")) == [
        (
            "[not-rendered] spec.quotas[1]: a ResourceQuota can't count by resourceFlavor; "
            "the backstop lacks this row, so only gpu-tiers enforces it"
        )
    ]


def test_a_selector_that_selects_nothing() -> None:
    assert said(a_tenant(namespace="team-aplha")) == [
        (
            "[selects-nothing] spec.namespaceSelector of TenantQuota alpha selects no namespace that exists now; "
            "compare it with kubectl get namespaces --show-labels"
        )
    ]
    assert said(a_tenant(namespace="team-aplha"), here=[]) == [], "nobody knows the namespaces"


def test_of_two_that_overlap_the_older_one_applies() -> None:
    older, younger = aged("alpha", "2026-11-01T08:00:00Z"), aged("beta", "2026-11-02T08:00:00Z")
    younger = younger.having("spec.namespaceSelector", TEAM)
    advice = "applies there. Make the selectors exclude each other"
    assert said(younger, older) == [f"[overlap] TenantQuota alpha selects team-alpha too; alpha is older and {advice}"]
    assert said(older, younger) == [f"[overlap] TenantQuota beta selects team-alpha too; alpha is older and {advice}"]


APART = "Make the selectors exclude each other"


def test_of_two_of_the_same_second_the_first_by_name_applies() -> None:
    first, second = aged("alpha", "2026-11-01T08:00:00Z"), aged("beta", "2026-11-01T08:00:00Z")
    second = second.having("spec.namespaceSelector", TEAM)
    told = "both were created in the same second, so alpha, the first by name, applies there. "
    assert said(second, first) == [f"[overlap] TenantQuota alpha selects team-alpha too; {told}{APART}"]
    assert said(first, second) == [f"[overlap] TenantQuota beta selects team-alpha too; {told}{APART}"]


def test_manifests_have_no_age() -> None:
    for one, other in (("alpha", "beta"), ("beta", "alpha")):
        assert said(aged(one, None), aged(other, None)) == [
            (
                f"[overlap] TenantQuota {other} selects team-alpha too; the one that was created first applies there. "
                "Make the selectors exclude each other"
            )
        ]


def test_many_namespaces_are_counted_and_the_warning_stays_short() -> None:
    here = [Namespace(f"{'n' * 60}-{number}", {"team": "a"}) for number in range(9)]
    tenants = [aged(name, f"2026-11-0{day}T08:00:00Z") for day, name in ((1, "alpha"), (2, "beta"))]
    older, younger = (each.having("spec.namespaceSelector.matchLabels", None) for each in tenants)
    (warning,) = said(younger, older, here=here)
    assert "-0, " in warning
    assert " and 7 more too; alpha is older" in warning
    assert len(warning) <= 256


def test_who_keeps_a_namespace_is_named_and_not_others_who_lose_it_as_well() -> None:
    first, second, third = (aged(name, f"2026-11-0{day}T08:00:00Z") for day, name in ((1, "a"), (2, "b"), (3, "c")))
    assert [each.split()[2] for each in said(third, first, second)] == ["a"]
    assert [each.split()[2] for each in said(first, second, third)] == ["b", "c"]


def test_a_quota_below_its_use() -> None:
    tenant = a_tenant().allowing(16).allowing(4, tier="gpu-training")
    assert said(tenant, gpus="6") == [
        (
            "[below-use] spec.quotas[1].gpus: 4 is below the 6 in use (gpu-training); "
            "nothing is evicted, and new pods are over the quota"
        )
    ]
    assert said(tenant, gpus="20")[0].startswith("[below-use] spec.quotas[0].gpus: 16 is below the 20 in use (total);")
    assert said(tenant.having("spec.quotaAuthority", "Kueue"), gpus="20") == []
