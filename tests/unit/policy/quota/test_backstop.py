"""The ResourceQuotas that a tenant's rows become."""

from typing import Any

import pytest

from tests.builders import TenantBuilder, a_policy, a_tenant
from webhook.policy.quota.native_quotas import backstop

POLICY = a_policy(
    resources=[
        {"name": "nvidia.com/gpu", "weight": "1"},
        {"name": "nvidia.com/mig-1g.10gb", "weight": "0.15"},
        {"deviceClassName": "gpu.nvidia.com", "weight": "2"},
    ]
)


def rendered(tenant: TenantBuilder) -> dict[str, Any]:
    return dict(backstop(tenant.having("spec.backstop", "ResourceQuota").view(), POLICY))


def test_a_total_and_a_tier() -> None:
    """The quota is the amount of each resource that the row allows if nothing else is used, rounded down."""
    pods = {"requests.nvidia.com/gpu": "7", "requests.nvidia.com/mig-1g.10gb": "46"}
    by_name = {"requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com": "3"}
    claims = {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "3"}
    training = ["gpu-training", "gpu-training-nonpreempting"]
    line = {"scopeName": "PriorityClass", "operator": "In", "values": training}
    assert rendered(a_tenant().allowing(7).allowing(7, tier="gpu-training")) == {
        "gpu-tiers": {"hard": pods | by_name | claims},
        "gpu-tiers-gpu-training": {"hard": pods | by_name, "scopeSelector": {"matchExpressions": [line]}},
    }


def test_without_the_field_nothing_is_rendered() -> None:
    assert backstop(a_tenant().allowing(7).view(), POLICY) == {}
    assert backstop(a_tenant(backstop="None").allowing(7).view(), POLICY) == {}


def test_rows_of_a_flavor_and_of_unknown_tiers_are_left_out() -> None:
    tenant = a_tenant().allowing(4, flavor="h100").allowing(4, tier="gpu-batch", flavor="h100").allowing(4, tier="gold")
    assert rendered(tenant) == {}


@pytest.mark.parametrize(("gpus", "hard"), [("0", "0"), ("0.5", "0"), ("1k", "1000"), ("9" * 30 + "E", "1000000")])
def test_any_amount_that_a_row_takes(gpus: str, hard: str) -> None:
    assert rendered(a_tenant().allowing(gpus))["gpu-tiers"]["hard"]["requests.nvidia.com/gpu"] == hard
