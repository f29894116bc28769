"""Posture: what a new tenant is told of who can evict whom."""

from tests.builders import a_tenant
from webhook.config.load import parse
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.readmodel.posture import TierPosture, posture_of


def policy(**fields: str) -> TierPolicy:
    lines = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy", "preset": "four-tier", **fields}
    return parse("\n".join(f"{name}: {value}" for name, value in lines.items()))


def tiers_of(policy: TierPolicy, classes: dict[str, PriorityClass] | None = None) -> dict[str, TierPosture]:
    return {each.name: each for each in posture_of(policy, classes=classes).tiers}


def test_each_tier_evicts_those_below_it_and_an_interactive_one_nobody() -> None:
    tiers = tiers_of(policy())
    assert tiers["gpu-serving"].evicts == ("gpu-batch", "gpu-interactive")
    assert tiers["gpu-serving"].evicted_by == ("gpu-training",)
    assert tiers["gpu-interactive"].evicts == ()
    assert tiers["gpu-interactive"].evicted_by == ("gpu-training", "gpu-serving", "gpu-batch")
    assert tiers["gpu-interactive"].workloads == ("interactive", "any other")
    assert tiers["gpu-training"].hooks == ("training: file, 120 s",)


def test_during_adoption_nobody_evicts_anybody() -> None:
    assert all(not each.evicts and not each.evicted_by for each in tiers_of(policy(adoption="true")).values())


def test_a_live_class_that_was_changed_counts_as_the_policy_has_it() -> None:
    """The webhook refuses to give it, so no new pod gets what it says."""
    changed = {"gpu-batch": PriorityClass("gpu-batch", 5000)}
    assert tiers_of(policy(), changed)["gpu-batch"].value == 400


def test_other_classes_are_shown_if_their_pods_evict_a_tiers() -> None:
    classes = [
        PriorityClass("system-node-critical", 2_000_001_000),
        PriorityClass("team-urgent", 500),
        PriorityClass("calm", 5000, "Never"),
        PriorityClass("low", 100),
        PriorityClass("gpu-training", 1000),
        PriorityClass("gpu-training-nonpreempting", 1000, "Never"),
    ]
    found = posture_of(policy(), classes={each.name: each for each in classes}).classes
    assert [(each.name, each.evicts) for each in found] == [
        ("system-node-critical", ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive")),
        ("team-urgent", ("gpu-batch", "gpu-interactive")),
    ]


def test_a_tenant_is_told_what_it_may_use_and_what_comes_beyond() -> None:
    tenant = a_tenant(maxTier="gpu-serving").allowing("6", tier="gpu-training").allowing("16").view()
    free = a_tenant("free").view()
    (shown, other) = sorted(posture_of(policy(), [free, tenant]).tenants, key=lambda each: each.name == "free")
    assert (shown.ceiling, shown.quotas) == (
        "gpu-serving, gpu-batch, gpu-interactive",
        ("gpu-training: 6", "the total: 16"),
    )
    assert (shown.on_exceed, other.ceiling, other.quotas) == ("Deny", "any tier", ())
