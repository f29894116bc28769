"""Tenants among the chart's values: helm refuses before anything is applied what the API server would refuse later."""

import pytest

from .conftest import Refuse, Render
from .helm import Manifest

SELECTOR = {"matchLabels": {"example.com/tenant": "alpha"}}
BATCH = ["gpu-batch"]
LOWERED: Manifest = {"gpuHours": 100, "per": "Day", "tier": "gpu-training", "onExhausted": "Demote"}
HELD: Manifest = {"gpuHours": 100, "per": "Week", "onExhausted": "Hold"}


def tenant(**spec: object) -> list[Manifest]:
    return [{"name": "alpha", "spec": {"namespaceSelector": SELECTOR, **spec}}]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"quotas": [{"gpus": "lots"}]}, "tenants.0.spec.quotas.0.gpus"),
        ({"quotas": [{"gpus": -1}]}, "tenants.0.spec.quotas.0.gpus"),
        ({"quotas": [{"gpu": 3}]}, "Additional property gpu is not allowed"),
        ({"onExceed": "Refuse"}, "tenants.0.spec.onExceed"),
        ({"onExceed": "Hold", "reserveSeconds": -1}, "tenants.0.spec.reserveSeconds"),
        ({"maxTeir": "gpu-batch"}, "Additional property maxTeir is not allowed"),
    ],
)
def test_what_the_crd_refuses(refuse: Refuse, spec: Manifest, said: str) -> None:
    assert said in refuse(tenants=tenant(**spec))


def test_a_tenant_without_a_selector(refuse: Refuse) -> None:
    assert "namespaceSelector is required" in refuse(tenants=[{"name": "alpha", "spec": {}}])


def test_tiers_and_flavors_that_the_policy_does_not_have(refuse: Refuse) -> None:
    quotas = [{"tier": "gpu-train", "gpus": 6}, {"resourceFlavor": "h100", "gpus": 6}]
    said = refuse(tenants=tenant(allowedTiers=["gpu-batch", "gold"], quotas=quotas))
    there = "there are gpu-training, gpu-serving, gpu-batch, gpu-interactive; write for example gpu-training"
    assert f"tenants[0].spec.allowedTiers[1]: gold is no tier of the policy; {there}" in said
    assert f"tenants[0].spec.quotas[0].tier: gpu-train is no tier of the policy; {there}" in said
    assert "tenants[0].spec.quotas[1].resourceFlavor: h100 is no flavor of the policy; there are none" in said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"maxTier": "gpu-batch", "allowedTiers": ["gpu-batch"]}, "spec: maxTier and allowedTiers say the same thing"),
        (
            {"defaultTier": "gpu-serving", "allowedTiers": ["gpu-batch"]},
            "spec.defaultTier: gpu-serving is none of allowed",
        ),
        (
            {"allowedTiers": ["gpu-batch"], "quotas": [{"tier": "gpu-serving", "gpus": 1}]},
            "spec.quotas[0].tier: gpu-serving",
        ),
        ({"backstop": "ResourceQuota", "quotaAuthority": "Kueue"}, "spec.backstop: ResourceQuotas would refuse"),
        ({"backstop": "ResourceQuota", "onExceed": "Warn"}, "spec.backstop: ResourceQuotas would refuse"),
        ({"backstop": "ResourceQuota", "onExceed": "Hold"}, "spec.backstop: ResourceQuotas would refuse"),
        ({"backstop": "ResourceQuota", "budgets": [HELD]}, "spec.backstop: ResourceQuotas would refuse"),
        ({"onExceed": "Warn", "budgets": [HELD]}, "spec.budgets: onExhausted Hold goes with Deny or Hold"),
        ({"onExceed": "Hold", "budgets": [LOWERED]}, "spec.budgets: onExhausted Demote goes with no Hold"),
        ({"quotaAuthority": "Kueue", "onExceed": "Hold"}, "spec.onExceed: Hold would let pods wait here"),
        ({"demoteTo": ["gpu-batch"]}, "spec.demoteTo: is for pods that are demoted; write onExceed: Demote"),
        ({"onExceed": "Demote", "demoteTo": ["gold"]}, "spec.demoteTo[0]: gold is no tier of the policy"),
        ({"onExceed": "Demote", "demoteTo": ["gpu-batch"] * 2}, "spec.demoteTo[1]: gpu-batch stands there twice"),
        (
            {"onExceed": "Demote", "demoteTo": ["gpu-batch"], "allowedTiers": ["gpu-training"]},
            "spec.demoteTo[0]: gpu-batch is none of allowedTiers",
        ),
        ({"holdOrder": "Strict"}, "spec.holdOrder: is for pods that wait; write onExceed: Hold"),
        ({"reserveSeconds": 0, "onExceed": "Warn"}, "spec.reserveSeconds: is for pods that wait"),
        (
            {"onExceed": "Hold", "holdOrder": "BestEffort", "reserveSeconds": 60},
            "spec.reserveSeconds: holdOrder BestEffort reserves nothing",
        ),
        ({"quotas": [{"gpus": 1}, {"gpus": 2}]}, "spec.quotas[1]: another row is for the same tier and resourceFlavor"),
    ],
)
def test_tenants_that_contradict_themselves(refuse: Refuse, spec: Manifest, said: str) -> None:
    assert f"tenants[0].{said}" in refuse(tenants=tenant(**spec))


@pytest.mark.parametrize("spec", [{"budgets": [HELD], "reserveSeconds": 60}, {"budgets": [LOWERED], "demoteTo": BATCH}])
def test_what_is_for_queued_or_demoted_pods_goes_with_a_budgets_action_too(render: Render, spec: Manifest) -> None:
    assert spec.items() <= render(tenants=tenant(**spec)).one("TenantQuota")["spec"].items()


def test_a_tenant_that_holds_together(render: Render) -> None:
    quotas = [{"tier": "gpu-training", "gpus": 6}, {"gpus": "7.5"}, {"tier": "gpu-batch", "gpus": "500m"}]
    chart = render(tenants=tenant(defaultTier="gpu-batch", quotas=quotas, onExceed="Demote"))
    assert chart.one("TenantQuota")["spec"]["quotas"] == quotas


def test_a_bundle_that_nobody_or_somebody_else_reads(refuse: Refuse) -> None:
    said = refuse(certificates={"source": "files"})
    assert "certificates.caBundle: is required with certificates.source=files" in said
    said = refuse(certificates={"caBundle": "Q0E="})
    assert "certificates.caBundle: is for certificates.source=files, and that is self-managed" in said


def test_null_exempts_no_namespace_by_mistake(refuse: Refuse, render: Render) -> None:
    assert "exemptNamespaces: is null, and so kube-system would not be exempt" in refuse(exemptNamespaces=None)
    assert render(exemptNamespaces=[])
