"""Audit, Warn and Enforce on a real API server, and a policy that changes while the webhook runs."""

import json
import time
from collections.abc import Iterator

import pytest

from .asking import events
from .installed import Installed, gpu_pod
from .queue import QueueingTenant

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def changed(installed: Installed) -> Iterator[Installed]:
    """An installation that each test changes to what it needs; after all of them it is as before."""
    yield installed
    installed.upgrade()


def test_audit_changes_nothing_refuses_nothing_and_records(changed: Installed, namespace: str) -> None:
    changed.upgrade(mode="Audit")
    would = changed.metric("gpu_tiers_would_refuse_total", mode="Audit")
    created = changed.create(gpu_pod("work", tier="gpu-urgent"), namespace)
    assert created.code == 0
    assert not created.stderr
    assert json.loads(created.stdout)["spec"]["priority"] == 0
    assert "gpu-tiers.dev/assigned-by" not in created.stdout
    assert changed.metric("gpu_tiers_would_refuse_total", mode="Audit") == would + 1
    assert "would be refused" in changed.log()


def test_a_quota_that_refuses_nobody_strands_no_gang(changed: Installed, namespace: str) -> None:
    """Three of four pods of a Job exist, in a tenant of two GPUs."""
    changed.upgrade(mode="Audit")
    changed.tenant("beyond", namespace, quotas=[{"gpus": "2"}])
    pods = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "3"}}}
    changed.create(pods, namespace)
    changed.eventually(lambda: "hard" in changed.get("resourcequota/pods", namespace)["status"], "a ResourceQuota")

    def whole() -> str:
        conditions = changed.get("tenantquota/beyond", namespace)["status"].get("conditions", [])
        return next((str(each["status"]) for each in conditions if each["type"] == "GangsWhole"), "")

    try:
        changed.create(QueueingTenant(changed, namespace, "").job("early", pods=4), namespace)
        changed.eventually(lambda: changed.usage("beyond") == "total 3/2", "the count of its three pods")
        time.sleep(2)
        assert whole() == "True", "its fourth pod may start too"
        assert events(changed, namespace, "GangStranded") == {}
        changed.cluster.kubectl("label", "namespace", namespace, "gpu-tiers.dev/mode=Enforce")
        changed.eventually(lambda: whole() == "False", "the end of room in a namespace that enforces the quota")
    finally:
        changed.api.delete("tenantquota/beyond")


def test_warn_patches_and_tells(changed: Installed, namespace: str) -> None:
    changed.upgrade(mode="Warn")
    fine = json.loads(changed.create(gpu_pod("fine", tier="gpu-batch"), namespace).stdout)
    assert fine["spec"]["priorityClassName"] == "gpu-batch"
    warned = changed.create(gpu_pod("work", tier="gpu-urgent"), namespace)
    assert warned.code == 0
    assert 'Warning: would be refused: metadata.labels[gpu-tiers.dev/tier]: unknown tier "gpu-urgent"' in warned.stderr


def test_a_namespace_may_be_stricter_never_milder(changed: Installed, namespace: str) -> None:
    label = ("label", "namespace", namespace, "--overwrite")
    changed.upgrade(mode="Warn")
    changed.cluster.kubectl(*label, "gpu-tiers.dev/mode=Enforce")
    changed.eventually(
        lambda: changed.create(gpu_pod("work", tier="gpu-urgent"), namespace, dry_run=True).code == 1, "a refusal"
    )
    changed.upgrade(mode="Enforce")
    changed.cluster.kubectl(*label, "gpu-tiers.dev/mode=Audit")
    assert changed.create(gpu_pod("work", tier="gpu-urgent"), namespace, dry_run=True).code == 1


def test_a_changed_policy_is_taken_up_and_a_broken_one_is_not(changed: Installed, namespace: str) -> None:
    changed.upgrade()
    good = (changed.cluster.folder / "policy.yaml").read_text()
    changed.write_policy(f"{good}\ndefaultTier: gpu-batch\n")
    assert _tier(changed, namespace) == "gpu-batch"

    changed.write_policy(f"{good}\ndefaultTier: gpu-bach\n", result="failure")
    assert 'defaultTier: unknown tier "gpu-bach"; known tiers: gpu-training' in changed.log()
    assert _tier(changed, namespace) == "gpu-batch"

    changed.write_policy(good)
    assert _tier(changed, namespace) == "gpu-interactive"


def test_a_tier_whose_class_has_another_value_is_refused_by_name(changed: Installed) -> None:
    changed.cluster.apply(
        '{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}'
    )
    try:
        good = (changed.cluster.folder / "policy.yaml").read_text()
        own = "tiers: [{name: urgent, value: 8}]\ndefaultTier: urgent\nworkloadTypes: {}\nrules: []\n"
        text = f"apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\nmode: Enforce\n{own}"
        changed.write_policy(text, result="failure")
        assert "tiers.urgent.value: 8, but PriorityClass/urgent exists with 7" in changed.log()
        changed.write_policy(good)
    finally:
        changed.api.delete("priorityclass/urgent")


def _tier(installed: Installed, namespace: str) -> str:
    answer = installed.create(gpu_pod("plain"), namespace, dry_run=True)
    return str(json.loads(answer.stdout)["metadata"]["labels"]["gpu-tiers.dev/tier"])
