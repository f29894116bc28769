"""Upgrading the chart on a real API server: one release, upgraded again and again."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import Cluster

from .conftest import wiped
from .release import CONFIGURATION, Release
from .test_install import ALPHA, CRD, classes_of

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def release(cluster: Cluster, home: Path) -> Iterator[Release]:
    with wiped(Release(cluster, home)) as release:
        release.install()
        yield release


def test_an_upgrade_changes_a_tenant_and_a_later_one_removes_it(release: Release) -> None:
    release.upgrade(tenants=[ALPHA])
    before = release.get("tenantquota", "alpha")["metadata"]["uid"]
    release.upgrade(tenants=[{"name": "alpha", "spec": ALPHA["spec"] | {"onExceed": "Demote"}}])
    after = release.get("tenantquota", "alpha")
    assert (after["metadata"]["uid"], after["spec"]["onExceed"]) == (before, "Demote")
    release.upgrade(tenants=[])
    assert release.names("tenantquota") == []


def test_an_upgrade_leaves_alone_what_the_webhook_wrote(release: Release) -> None:
    trust = base64.b64encode(b"a CA").decode()
    release.cluster.kubectl(
        "patch", "secret", "gpu-tiers-tls", "-n", "gpu-tiers", "-p", f'{{"data": {{"ca.crt": "{trust}"}}}}'
    )
    trusting = f'{{"webhooks": [{{"name": "pods.validate.gpu-tiers.dev", "clientConfig": {{"caBundle": "{trust}"}}}}]}}'
    release.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, "-p", trusting)
    release.upgrade(mode="Enforce", logLevel="debug", exemptNamespaces=["kube-system"])
    assert release.get("secret", "gpu-tiers-tls")["data"] == {"ca.crt": trust}
    gate = release.entries()["pods.validate.gpu-tiers.dev"]
    assert (gate["failurePolicy"], gate["clientConfig"]["caBundle"]) == ("Fail", trust)


def test_an_upgrade_brings_a_changed_crd_back_in_line(release: Release) -> None:
    hide = '[{"op": "replace", "path": "/spec/names/shortNames", "value": []}]'
    release.cluster.kubectl("patch", "crd", CRD, "--type=json", "-p", hide)
    release.upgrade()
    assert release.get("crd", CRD)["spec"]["names"]["shortNames"] == ["tq"]


def test_a_changed_tier_value_is_refused_before_anything_is_applied(release: Release) -> None:
    release.upgrade()
    tiers = [{"name": "gpu-training", "value": 2000}, {"name": "gpu-batch", "value": 400}]
    refusal = release.try_upgrade(mode="Enforce", policy={"tiers": tiers, "defaultTier": "gpu-batch"})
    assert refusal.code
    assert "PriorityClass gpu-training exists with value 1000, and the policy says 2000" in refusal.stderr
    assert release.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"] == "Ignore"
    assert release.get("priorityclass", "gpu-training")["value"] == 1000


def test_what_the_refusal_says_works(release: Release) -> None:
    release.upgrade()
    release.cluster.api.delete("priorityclass/gpu-training", "priorityclass/gpu-training-nonpreempting")
    release.upgrade(policy={"tiers": [{"name": "gpu-training", "value": 2000}], "defaultTier": "gpu-training"})
    assert release.get("priorityclass", "gpu-training")["value"] == 2000
    assert "gpu-batch" in classes_of(release), "pods may name it still"
