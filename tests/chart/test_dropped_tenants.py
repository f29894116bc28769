"""Tenants that a later upgrade does not give any more: nobody's quota goes without a word, on a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import Cluster
from localcluster.crds import delete_crd
from tests.docs.markdown import page
from tests.docs.shell import lines, linked_project, run_as_printed

from .conftest import wiped
from .helm import CHART, Manifest
from .release import CONFIGURATION, DEAD, Release
from .test_install import ALPHA, CRD

pytestmark = pytest.mark.apiserver

BETA: Manifest = {"name": "beta", "spec": {"namespaceSelector": {"matchLabels": {"example.com/tenant": "beta"}}}}
BY_HAND = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": {"name": "by-hand"}}
OTHER_OBJECT = BY_HAND | {"metadata": {"name": "beside"}, "spec": BETA["spec"]}


@pytest.fixture(params=["helm_3", pytest.param("helm_4", marks=pytest.mark.release)])
def two(cluster: Cluster, home: Path, request: pytest.FixtureRequest) -> Iterator[Release]:
    """A release with two tenants among its values, beside one that somebody applied."""
    program = request.getfixturevalue("helm_4") if request.param == "helm_4" else None
    with wiped(Release(cluster, home, program)) as release:
        release.install(tenants=[ALPHA, BETA])
        release.cluster.api.apply(BY_HAND | {"spec": BETA["spec"]})
        yield release
        release.cluster.api.delete("tenantquota")


def test_an_upgrade_that_has_lost_the_tenants_is_refused_and_its_words_keep_them_or_delete_them(two: Release) -> None:
    refusal = two.try_upgrade(mode="Enforce")
    assert refusal.code
    assert "This upgrade would delete the TenantQuotas alpha, beta" in refusal.stderr
    assert "--reset-then-reuse-values" in refusal.stderr
    assert "--set-json tenants=[]" in refusal.stderr
    assert two.names("tenantquota") == ["alpha", "beta", "by-hand"]
    assert two.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"] == "Ignore", "nothing was applied"

    upgraded = two.run("upgrade", str(CHART), "--reset-then-reuse-values", mode="Warn")
    assert not upgraded.code, upgraded.stderr
    assert two.names("tenantquota") == ["alpha", "beta", "by-hand"]
    assert "deletes" not in upgraded.stdout

    gone = two.run("upgrade", str(CHART), "--set-json", "tenants=[]", webhook={"url": DEAD})
    assert not gone.code, gone.stderr
    assert two.names("tenantquota") == ["by-hand"]
    assert "deletes 2 TenantQuotas, which are no `tenants` any more: alpha, beta" in gone.stdout
    assert "deletes" not in two.upgrade().stdout, "none of the release is left"


def test_a_list_without_one_of_them_deletes_that_one_and_a_dry_run_says_so_before(two: Release) -> None:
    before = two.run("upgrade", str(CHART), "--dry-run=server", tenants=[ALPHA], webhook={"url": DEAD})
    sentence = "deletes 1 TenantQuota, which is no `tenants` any more: beta"
    assert sentence in before.stdout
    assert "beta" in two.names("tenantquota")
    assert sentence in two.upgrade(tenants=[ALPHA]).stdout
    assert two.names("tenantquota") == ["alpha", "by-hand"]


def test_what_helm_would_keep_or_has_from_another_value_is_not_reported(release: Release) -> None:
    release.install(tenants=[ALPHA], extraObjects=[OTHER_OBJECT])
    release.cluster.api.annotate("tenantquota/alpha", {"helm.sh/resource-policy": "keep"})
    assert "deletes" not in release.upgrade(extraObjects=[OTHER_OBJECT]).stdout
    assert release.names("tenantquota") == ["alpha", "beside"]


def test_backup_and_restore_as_printed(two: Release, tmp_path: Path) -> None:
    """All that is lost: the release, the CRD, and with it every TenantQuota."""
    blocks = [block for block in page("docs/operations.md").blocks() if "Backup" in block.headings]
    backup, restore = map(lines, blocks)
    run_as_printed(backup, two.cluster, folder=linked_project(tmp_path))
    two.uninstall()
    delete_crd(two.cluster, CRD)
    run_as_printed(restore, two.cluster, folder=tmp_path)
    assert two.names("tenantquota") == ["alpha", "beta", "by-hand"]
    assert two.get("tenantquota", "alpha")["spec"]["quotas"] == ALPHA["spec"]["quotas"]
    assert CONFIGURATION in two.names("validatingwebhookconfiguration")


def test_a_quota_that_was_only_changed_is_restored_too(two: Release, tmp_path: Path) -> None:
    """Somebody edited a TenantQuota by mistake: it exists, at another resourceVersion than in the backup."""
    blocks = [block for block in page("docs/operations.md").blocks() if "Backup" in block.headings]
    run_as_printed(lines(blocks[0]), two.cluster, folder=linked_project(tmp_path))
    before = two.get("tenantquota", "by-hand")["spec"]
    two.cluster.api.apply(BY_HAND | {"spec": BETA["spec"] | {"maxTier": "gpu-batch"}})
    command = "kubectl replace -f tenantquotas.yaml"
    assert f"`AlreadyExists`: `{command}` restores those." in page("docs/operations.md").text
    run_as_printed([command], two.cluster, folder=tmp_path)
    assert two.get("tenantquota", "by-hand")["spec"] == before
