"""A TenantQuota, read."""

from decimal import Decimal

import msgspec
import pytest

from tests.builders.words import told
from webhook.objects.refusal import Refused
from webhook.policy.quota.tenant_quotas import read_tenant, read_tenant_quota, watched_tenant_quota
from webhook.policy.values.tenants import QuotaRow


def quota(**spec: object) -> dict:
    """tenant alpha, with some fields of its spec replaced."""
    return {
        "apiVersion": "gpu-tiers.dev/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {"name": "alpha", "generation": 3, "creationTimestamp": "2026-11-20T10:00:00Z"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"example.com/tenant": "alpha"}},
            "maxTier": "gpu-training",
            "defaultTier": "gpu-batch",
            "quotas": [
                {"gpus": "16"},
                {"tier": "gpu-training", "gpus": "6"},
                {"resourceFlavor": "h100", "gpus": "4"},
            ],
            "onExceed": "Deny",
            "quotaAuthority": "gpu-tiers",
            **spec,
        },
    }


def test_the_whole_of_it():
    tenant = read_tenant(quota())
    assert (tenant.name, tenant.max_tier, tenant.default_tier) == ("alpha", "gpu-training", "gpu-batch")
    assert tenant.rows == (
        QuotaRow(Decimal(16)),
        QuotaRow(Decimal(6), tier="gpu-training"),
        QuotaRow(Decimal(4), flavor="h100"),
    )
    assert (tenant.on_exceed, tenant.charged_elsewhere, tenant.created) == ("Deny", False, "2026-11-20T10:00:00Z")


def test_selectors_of_both_sorts_must_all_hold():
    selector = {
        "matchLabels": {"team": "a"},
        "matchExpressions": [
            {"key": "env", "operator": "In", "values": ["dev", "prod"]},
            {"key": "frozen", "operator": "DoesNotExist"},
        ],
    }
    tenant = read_tenant(quota(namespaceSelector=selector))
    assert tenant.selects({"team": "a", "env": "dev"})
    assert not tenant.selects({"team": "a", "env": "test"})
    assert not tenant.selects({"team": "a", "env": "dev", "frozen": ""})


@pytest.mark.parametrize(("authority", "elsewhere"), [("Kueue", True), ("KAI", True), ("gpu-tiers", False)])
def test_another_authority_charges_elsewhere(authority, elsewhere):
    assert read_tenant(quota(quotaAuthority=authority)).charged_elsewhere is elsewhere


def demoted_before(ledger: object, **spec: object) -> bool:
    found = watched_tenant_quota(msgspec.json.encode({**quota(**spec), "status": {"ledger": ledger}}))
    assert found.tenant is not None
    return found.tenant.demoted_before


def test_the_account_says_that_gangs_were_demoted_before_onexceed_changed():
    demoted, other = {"uid": "a", "kind": "Job", "tier": "gpu-batch"}, {"uid": "b", "kind": "Job"}
    assert demoted_before({"entries": [other, demoted]}, onExceed="Hold")
    assert not demoted_before({"entries": [other]}, onExceed="Hold")
    assert not demoted_before({"entries": [demoted]}, onExceed="Demote"), "it demotes now"
    assert not demoted_before({"entries": [demoted]}, quotaAuthority="Kueue")


@pytest.mark.parametrize("ledger", [None, "", [], {"entries": None}, {"entries": "many"}, {"entries": ["tier", None]}])
def test_an_account_that_cannot_be_read_says_nothing(ledger: object):
    assert not demoted_before(ledger)


def test_one_that_holds_says_in_which_order():
    tenant = read_tenant(quota(onExceed="Hold"))
    assert (tenant.has_queue, tenant.hold_order, tenant.reserve_seconds) == (True, "Strict", None)
    tenant = read_tenant(quota(onExceed="Hold", holdOrder="BestEffort"))
    assert (tenant.has_queue, tenant.hold_order) == (True, "BestEffort")
    assert read_tenant(quota(onExceed="Hold", reserveSeconds=900)).reserve_seconds == 900
    assert not read_tenant(quota(onExceed="Hold", quotaAuthority="Kueue")).has_queue, "it waits in Kueue's queue"


def test_what_is_left_out_limits_nothing():
    tenant = read_tenant({"metadata": {"name": "free"}, "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}}})
    assert (tenant.max_tier, tenant.allowed_tiers, tenant.rows, tenant.on_exceed) == (None, None, (), "Deny")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"quotas": [{"gpus": "many"}]}, 'spec.quotas[0].gpus: "many" is not a quantity'),
        ({"quotas": [{"gpus": "4"}, {"gpus": "-1"}]}, 'spec.quotas[1].gpus: "-1" is below 0'),
        ({"quotas": [{"tier": "gpu-batch"}]}, "missing required field `gpus`"),
        ({"onExceed": "Queue"}, "spec.onExceed"),
        ({"onExceed": "Hold", "reserveSeconds": -1}, "spec.reserveSeconds"),
        ({"namespaceSelector": None}, "missing required field `namespaceSelector`"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, "operator"),
        ({"allowedTiers": "all"}, "spec.allowedTiers"),
    ],
)
def test_a_broken_one_says_where(spec, sentence):
    with pytest.raises(Refused) as refused:
        read_tenant(quota(**spec))
    assert sentence in told(refused.value)


def test_a_broken_object_is_still_an_object():
    found = read_tenant_quota(msgspec.json.encode(quota(onExceed="Queue")))
    assert (found.name, found.generation, found.tenant) == ("alpha", 3, None)
    assert found.problem is not None
    assert found.problem.field == "spec.onExceed"
