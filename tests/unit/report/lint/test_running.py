"""The health of the webhook: lint about one that hangs, leads nobody, or has another policy than you read."""

import pytest
from msgspec.structs import replace

from tests.builders import a_tenant
from tests.unit.report.lint.asking import FILE, PUBLISHED, a_cluster, active, found, marks, running
from webhook.config.published import InstalledPolicy, digest_of
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.report.lint import RULES
from webhook.report.lint.snapshot import DryRun

OF_RUNNING = ("webhook", "leader", "ledger", "policy", "replica")
CHANGED = InstalledPolicy("gpu-tiers/gpu-tiers", "preset: three-tier", PUBLISHED)
ALPHA = read_tenant(a_tenant(quotas=[{"gpus": 4}]).json())


@pytest.mark.parametrize("rule", [each.id for each in RULES if each.line in OF_RUNNING])
def test_of_one_that_is_well_nothing(rule: str) -> None:
    exact = {"conditions": [{"type": "Exact", "status": "True"}]}
    assert found(rule, a_cluster(tenants=active(ALPHA, **exact))) == []


def test_one_that_hangs_is_reported_with_the_time_that_every_gpu_pod_waits() -> None:
    assert found("webhook-silent", a_cluster(**running(dry_run=DryRun((), 10.04)))) == [
        (
            "mutate and validate: did not mark a dry run, which took 10.0 s: the API server admitted it "
            "under failurePolicy Ignore, and it waited for an answer: replicas hang, or the network blocks them"
        )
    ]
    (at_once,) = found("webhook-silent", a_cluster(**running(dry_run=DryRun((), 0.04))))
    assert at_once.endswith(
        "Ignore, and no replica answers (none is ready, or they hang), or its certificate is not trusted"
    )
    refused = DryRun(marks()[:1], 5.0, "failed calling webhook")
    assert found("webhook-silent", a_cluster(**running(dry_run=refused))) == [
        "validate: did not mark a dry run, which took 5.0 s: failed calling webhook"
    ]


def test_a_policy_that_was_not_taken_is_reported_with_the_reason() -> None:
    broken = replace(CHANGED, published=replace(PUBLISHED, problem="teirs: there is no such field"))
    cluster = a_cluster(**running(installed=broken))
    (line,) = found("policy-not-taken", cluster)
    active_since = "was not taken, the policy of 2026-11-21T09:00:00Z stays active"
    assert line == f"ConfigMap gpu-tiers/gpu-tiers: {active_since}: teirs: there is no such field"
    assert found("policy-not-yet-taken", cluster) == [], "waiting does not help"
    assert found("replica-differs", cluster) == [], "the replica that answered says the same"


def test_an_active_policy_that_somebody_broke_from_outside() -> None:
    """The file is what it was: a class of it, or its ConfigMap, is not."""
    lost = "tiers.gpu-batch: PriorityClass/gpu-batch does not exist, so its pods are refused"
    amiss = InstalledPolicy("gpu-tiers/gpu-tiers", FILE, replace(PUBLISHED, problem=lost))
    since = "active since 2026-11-21T09:00:00Z, but not as it should be"
    assert found("policy-not-taken", a_cluster(**running(installed=amiss))) == [
        f"ConfigMap gpu-tiers/gpu-tiers: {since}: {lost}"
    ]
    deleted = a_cluster(**running(installed=InstalledPolicy("gpu-tiers/gpu-tiers", "", PUBLISHED, gone=True)))
    active_since = "the policy of 2026-11-21T09:00:00Z stays active"
    assert found("policy-not-taken", deleted) == [
        f"ConfigMap gpu-tiers/gpu-tiers: does not exist, so no new replica can start; {active_since}"
    ]
    assert found("policy-not-yet-taken", deleted) == [], "waiting does not help"


def test_a_change_that_is_under_way() -> None:
    assert found("policy-not-yet-taken", a_cluster(**running(installed=CHANGED))) == [
        "ConfigMap gpu-tiers/gpu-tiers: was changed; the policy of 2026-11-21T09:00:00Z is still active"
    ]
    nobody = InstalledPolicy("gpu-tiers/gpu-tiers", FILE)
    assert found("policy-not-yet-taken", a_cluster(**running(installed=nobody))) == [
        "ConfigMap gpu-tiers/gpu-tiers-active: no replica has reported which policy is active"
    ]


def test_a_replica_that_differs_from_its_leader() -> None:
    other = running(dry_run=DryRun(marks(policy=digest_of("another"))))
    (line,) = found("replica-differs", a_cluster(**other))
    assert line == f"replica gpu-tiers-7f: runs policy {digest_of('another')}, the leader {digest_of(FILE)}"
    stuck = running(dry_run=DryRun(marks(taken=False)))
    assert found("replica-differs", a_cluster(**stuck)) == [
        "replica gpu-tiers-7f: did not take the policy file that the leader took"
    ]


def test_nobody_leads() -> None:
    assert found("no-leader", a_cluster(**running(leader=""))) == ["Lease gpu-tiers/gpu-tiers: no replica renews it"]


def test_accounts_that_read_too_high() -> None:
    stale = {"conditions": [{"type": "Exact", "status": "False", "message": "pods can't be watched"}]}
    assert found("ledger-not-exact", a_cluster(tenants=active(ALPHA, **stale))) == [
        f"TenantQuota/{ALPHA.name}: pods can't be watched"
    ]
    assert found("ledger-not-exact", a_cluster(tenants=active(ALPHA))) == [
        f"TenantQuota/{ALPHA.name}: its pods are not counted yet"
    ]


def test_a_replica_that_decides_by_what_was() -> None:
    deaf = running(dry_run=DryRun(marks(watches=900)))
    assert found("watches-silent", a_cluster(**deaf)) == ["replica gpu-tiers-7f: a watch has said nothing for 900 s"]
