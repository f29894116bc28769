"""Tiers: how they rank, and whether the classes that a cluster has agree with them."""

import pytest

from tests.builders import a_policy, live_classes
from webhook.policy.values.tiers import PriorityClass, active_class, disagreements


def test_tiers_and_classes_that_agree() -> None:
    policy = a_policy()
    assert disagreements(policy.tiers, live_classes(policy)) == []
    assert disagreements(policy.tiers, {}) == [], "a class that is missing is made by the chart"


DIFFERENT = [
    (
        PriorityClass("gpu-batch", 401),
        (
            "tiers.gpu-batch.value: 400, but PriorityClass/gpu-batch exists with 401; a PriorityClass's value is "
            "immutable: use that value or another tier name"
        ),
    ),
    (
        PriorityClass("gpu-batch-nonpreempting", 400),
        (
            "tiers.gpu-batch.preemptionPolicy: Never, but PriorityClass/gpu-batch-nonpreempting exists with "
            "PreemptLowerPriority; a PriorityClass's preemptionPolicy is immutable: delete the class, or use another "
            "tier name"
        ),
    ),
    (
        PriorityClass("gpu-interactive", 200, "Never", global_default=True),
        (
            "tiers.gpu-interactive: PriorityClass/gpu-interactive is globalDefault, so every pod of the cluster would "
            "carry it; make another class the default"
        ),
    ),
]


@pytest.mark.parametrize(("live", "sentence"), DIFFERENT)
def test_tiers_and_classes_that_disagree(live: PriorityClass, sentence: str) -> None:
    assert [*map(str, disagreements(a_policy().tiers, {live.name: live}))] == [sentence]


def test_tiers_rank_by_value_and_have_two_classes_each() -> None:
    tiers = a_policy().tiers
    assert tiers.names() == "gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    batch = tiers.get("gpu-batch")
    assert batch
    assert active_class(batch, adoption=False) == "gpu-batch"
    assert active_class(batch, adoption=True) == "gpu-batch-nonpreempting"
    assert tiers.of_class("gpu-batch-nonpreempting") is batch
    assert tiers.of_class("") is None
    reached = [tiers.reached_by(value) for value in (1000, 999, 199, -1)]
    assert [tier.name if tier else None for tier in reached] == ["gpu-training", "gpu-serving", None, None]
