"""The lower tiers in which a tenant's workloads run above its quota, by what and in which order."""

import pytest

from tests.builders import a_policy, a_tenant
from webhook.config.load import preset_policy
from webhook.policy.quota.charges import lent_tiers
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType

NOTEBOOKS = [
    {"name": "training", "value": 1000},
    {"name": "notebook", "value": 800},
    {"name": "batch", "value": 400},
    {"name": "spare", "value": 100, "preemptionPolicy": "Never"},
]
TYPES = {"training": "training", "interactive": "notebook", "batch": "batch"}
OWN = a_policy(tiers=NOTEBOOKS, workloadTypes=TYPES, defaultTier="spare")


def names(policy: TierPolicy, chosen: str, type_: str | None = "training", **tenant: object) -> list[str]:
    tier, workload_type = policy.tiers.get(chosen), WorkloadType(type_) if type_ else None
    assert tier is not None
    found = lent_tiers(tier, workload_type, a_tenant(onExceed="Demote", **tenant).view(), policy)
    return [each.name for each in found]


def test_training_is_not_lent_the_tier_of_notebooks() -> None:
    """The next lower tier is theirs."""
    assert names(OWN, "training") == ["batch", "spare"]


def test_a_notebook_that_asked_for_more_gets_its_own_tier() -> None:
    assert names(OWN, "training", "interactive") == ["notebook", "batch", "spare"]


def test_what_nothing_tells_gets_what_batch_gets() -> None:
    assert names(OWN, "training", None) == ["batch", "spare"]


@pytest.mark.parametrize(
    ("preset", "chosen", "type_", "tiers"),
    [
        ("four-tier", "gpu-training", "training", ["gpu-batch"]),
        ("four-tier", "gpu-serving", "serving", ["gpu-batch"]),
        ("four-tier", "gpu-batch", "batch", []),
        ("three-tier", "critical", "serving", ["scavenger"]),
        ("three-tier", "normal", "training", ["scavenger"]),
        ("inference-first", "high-priority-inference", "serving", ["low-priority-training"]),
    ],
)
def test_the_presets_lend_to_batch(preset: str, chosen: str, type_: str, tiers: list[str]) -> None:
    assert names(preset_policy(preset), chosen, type_) == tiers


def test_a_list_is_followed_in_its_order() -> None:
    policy = a_policy(tiers=NOTEBOOKS, workloadTypes=TYPES, defaultTier="spare", demoteTo=["spare", "notebook"])
    assert names(policy, "training") == ["spare", "notebook"]
    assert names(policy, "notebook") == ["spare"], "only what is lower"


def test_the_tenants_list_comes_before_the_policys() -> None:
    policy = a_policy(tiers=NOTEBOOKS, workloadTypes=TYPES, defaultTier="spare", demoteTo=["spare"])
    assert names(policy, "training", demoteTo=["batch", "spare"]) == ["batch", "spare"]


def test_no_list_opens_a_tier_above_the_ceiling() -> None:
    assert names(OWN, "training", demoteTo=["notebook", "batch"], maxTier="batch") == ["batch"]
