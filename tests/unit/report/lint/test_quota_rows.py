"""The quotas of tenants against the GPUs of the cluster."""

from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from tests.builders import a_policy, a_tenant
from tests.unit.report.lint.asking import a_cluster, a_gpu_node, active, found
from webhook.objects.refusal import Reason, Refusal
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import QuotaRow, SpentBudget
from webhook.report.lint.snapshot import GangSeen

FLAVORS = [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}]


def test_a_row_of_more_gpus_than_there_are() -> None:
    policy = a_policy(resourceFlavors=FLAVORS)
    tenants = active(a_tenant().allowing(16).allowing(12, flavor="h100").view())
    nodes = (a_gpu_node(flavor="h100"), a_gpu_node("n2"))
    assert found("row-beyond-gpus", a_cluster(policy, tenants=tenants, nodes=nodes)) == [
        "TenantQuota/alpha: h100: 12 GPUs; the cluster has 8 of h100"
    ]


def test_quotas_that_do_not_fit_together() -> None:
    beta = a_tenant("beta", namespace="team-beta").allowing(3, tier="gpu-training").allowing(3, tier="gpu-batch")
    tenants = active(a_tenant().allowing(8).view(), beta.view())
    assert found("quotas-beyond-gpus", a_cluster(tenants=tenants, nodes=(a_gpu_node(),))) == [
        "tier gpu-training: all tenants together may use 11 GPUs of it (alpha 8, beta 3); the cluster has 8"
    ]
    assert found("quotas-beyond-gpus", a_cluster(tenants=tenants, nodes=(a_gpu_node(), a_gpu_node("n2")))) == []


def test_quotas_of_lower_tiers_may_exceed_the_cluster() -> None:
    """The advice of the rule, followed: the rows of the highest tier fit, and what is idle is shared."""
    alpha, beta = a_tenant().allowing(8), a_tenant("beta", namespace="team-beta").allowing(8)
    both = active(alpha.allowing(5, tier="gpu-training").view(), beta.allowing(3, tier="gpu-training").view())
    assert found("quotas-beyond-gpus", a_cluster(tenants=both, nodes=(a_gpu_node(),))) == []
    one = active(alpha.view(), beta.having("spec.maxTier", "gpu-serving").view())
    assert found("quotas-beyond-gpus", a_cluster(tenants=one, nodes=(a_gpu_node(),))) == [], "alpha alone may use it"


def test_what_another_authority_counts_is_not_ours_to_judge() -> None:
    tenants = active(a_tenant(quotaAuthority="Kueue").allowing(100).view())
    assert found("row-beyond-gpus", a_cluster(tenants=tenants, nodes=(a_gpu_node(),))) == []


def test_a_demotion_that_leads_nowhere() -> None:
    """A row without a tier counts the lower tiers too."""
    alpha = a_tenant(onExceed="Demote").allowing(8)
    (line,) = found("quota-without-effect", a_cluster(tenants=active(alpha.view())))
    assert line.startswith("TenantQuota/alpha: spec.onExceed: Demote, but no row has a lower tier to demote pods to")
    train = alpha.allowing(4, tier="gpu-training")
    assert found("quota-without-effect", a_cluster(tenants=active(train.view()))) == []
    batch = alpha.allowing(4, tier="gpu-batch")
    assert found("quota-without-effect", a_cluster(tenants=active(batch.view()))), "only notebooks' tier lies below"


def test_a_demotion_to_a_tier_that_is_below_no_row() -> None:
    alpha = a_tenant(onExceed="Demote", demoteTo=["gpu-training", "gpu-batch"]).allowing(8, tier="gpu-training")
    (line,) = found("quota-without-effect", a_cluster(tenants=active(alpha.view())))
    assert line.startswith("TenantQuota/alpha: spec.demoteTo[0]: no row is of a tier above gpu-training")


def test_lending_into_a_tier_that_evicts() -> None:
    alpha = a_tenant(onExceed="Demote").allowing(8, tier="gpu-training")
    sentence = "TenantQuota/alpha: pods over gpu-training run as gpu-batch, which may evict pods of gpu-interactive"
    assert found("lends-to-evictor", a_cluster(tenants=active(alpha.view()))) == [sentence]
    assert found("lends-to-evictor", a_cluster(a_policy(adoption=True), tenants=active(alpha.view()))) == []
    idle = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).allowing(8, tier="gpu-training")
    denies = a_tenant().allowing(8, tier="gpu-training")
    for tenant in (idle, denies):  # its tier evicts nobody; it lends nothing
        assert found("lends-to-evictor", a_cluster(tenants=active(tenant.view()))) == []


def a_gang(gpus: int, tenant: Any) -> GangSeen:
    return GangSeen("u", "JobSet", "team-alpha", "pretrain", (Charge(Decimal(gpus), "gpu-training"),), tenant)


def test_a_gang_that_its_quota_can_never_hold() -> None:
    tenant = a_tenant().allowing(6, tier="gpu-training").allowing(16).view()
    assert found("quota-below-gang", a_cluster(gangs=(a_gang(8, tenant),))) == [
        "JobSet/pretrain in team-alpha: needs 8 GPUs of gpu-training; tenant alpha has 6"
    ]
    assert found("quota-below-gang", a_cluster(gangs=(a_gang(6, tenant), a_gang(99, None)))) == []


def test_hours_that_are_used_up_are_no_mistake_of_the_quota() -> None:
    spent = QuotaRow(Decimal(0), "gpu-training", None, "Demote", SpentBudget(Decimal(10), Decimal(11)))
    tenant = replace(a_tenant().allowing(6, tier="gpu-training").view(), spent=(spent,))
    assert found("quota-below-gang", a_cluster(gangs=(a_gang(6, tenant),))) == []
    assert found("lends-to-evictor", a_cluster(tenants=active(tenant))) == []


def test_a_tenant_that_is_broken_or_names_no_tier_or_lies_in_another() -> None:
    older, younger = a_tenant(maxTier="gold").view(), a_tenant("beta").having("metadata.creationTimestamp", None).view()
    tenants = (
        *active(older, younger),
        TenantQuota("gamma", 1, None, Refusal(Reason.INVALID, "no-list", "spec.quotas[0].gpus")),
    )
    spaces = (Namespace("team-alpha", {"kubernetes.io/metadata.name": "team-alpha"}),)
    lines = found("tenant-not-active", a_cluster(tenants=tenants, namespaces=spaces))
    assert lines[-1] == "TenantQuota/gamma: spec.quotas[0].gpus: is not a list; write a list [no-list]"
    assert any('TenantQuota/alpha: spec.maxTier: unknown tier "gold"' in line for line in lines)
    overlap = "TenantQuota beta selects team-alpha too; the one that was created first applies there. "
    assert any(line.startswith(f"TenantQuota/alpha: {overlap}") for line in lines)
    assert found("tenant-not-active", a_cluster(tenants=active(a_tenant().view()), namespaces=spaces)) == []


def test_gangs_that_hold_a_part_as_the_tenant_says() -> None:
    sentence = {"type": "GangsWhole", "status": "False", "message": "Job/x in team-alpha holds 2 of 4 GPUs"}
    assert found("gangs-stranded", a_cluster(tenants=active(a_tenant().view(), conditions=[sentence]))) == [
        "TenantQuota/alpha: Job/x in team-alpha holds 2 of 4 GPUs"
    ]
    whole = {**sentence, "status": "True"}
    assert found("gangs-stranded", a_cluster(tenants=active(a_tenant().view(), conditions=[whole]))) == []
