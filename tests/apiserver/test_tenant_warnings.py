"""`kubectl apply` of a TenantQuota that holds a mistake: its author reads the mistake at once."""

import json
import re
import uuid
from collections.abc import Iterator

import pytest

from localcluster import Cluster, Result
from tests.builders import tenant_quota

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

TIERS = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"


@pytest.fixture
def quota(cluster: Cluster) -> Iterator[str]:
    """A name for a TenantQuota, which is deleted afterwards."""
    name = f"quota-{uuid.uuid4().hex[:8]}"
    yield name
    cluster.api.delete(f"tenantquota/{name}")


def apply(installed: Installed, name: str, namespace: str, **spec: object) -> Result:
    tree = tenant_quota(name, namespace, **spec)
    return installed.cluster.kubectl("apply", "-f", "-", input=json.dumps(tree), check=False)


def warnings(result: Result) -> list[str]:
    """Return the warnings that kubectl shows, without its own."""
    shown = [line.removeprefix("Warning: ") for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    return [warning for warning in shown if "last-applied-configuration" not in warning]


def test_a_good_quota_is_applied_silently(installed: Installed, namespace: str, quota: str) -> None:
    installed.eventually(lambda: not apply(installed, quota, namespace, quotas=[{"gpus": 6}]).stderr, "no warning")
    assert apply(installed, quota, namespace, quotas=[{"gpus": "7"}]).stderr == ""


def test_names_that_do_not_exist_are_refused_and_nothing_else_is_locked(
    installed: Installed, namespace: str, quota: str
) -> None:
    """A mistyped row is not stored. A name that the policy has dropped since passes, whoever applies it again."""
    mistyped = apply(installed, quota, namespace, quotas=[{"gpus": 6}, {"tier": "gpu-trainnig", "gpus": 1}])
    assert f'spec.quotas[1].tier: unknown tier "gpu-trainnig"; {TIERS} [unknown-tier]' in mistyped.stderr
    flavor = apply(installed, quota, namespace, quotas=[{"resourceFlavor": "b200", "gpus": 1}])
    known = "known flavors: h100 [unknown-flavor]"
    assert f'spec.quotas[0].resourceFlavor: unknown flavor "b200"; {known}' in flavor.stderr
    assert installed.cluster.kubectl("get", "tenantquota", quota, check=False).code != 0

    rows = [{"tier": "gold", "gpus": 1}]
    stored = tenant_quota(quota, namespace, quotas=rows)
    stored["metadata"]["annotations"] = {"gpu-tiers.dev/checked-names": "gold"}  # as helm does, with a policy to come
    installed.api.apply(stored)
    installed.cluster.kubectl("annotate", "tenantquota", quota, "gpu-tiers.dev/checked-names-")
    again = apply(installed, quota, namespace, quotas=rows)
    assert (again.code, warnings(again)) == (0, [])
    assert warnings(apply(installed, quota, namespace, quotas=rows, onExceed="Warn")) == [
        f'[unknown-tier] spec.quotas[0].tier: unknown tier "gold"; {TIERS}'
    ]
    installed.eventually(lambda: _ready(installed, quota) == "UnknownTier", "the condition names it")
    assert str(installed.condition(quota, "Ready")["message"]).endswith("; this row limits nothing")

    def columns() -> list[str]:
        shown = installed.cluster.kubectl("get", "tenantquota", quota, "--no-headers").stdout
        return re.split(r" {2,}", shown)[1:3]

    installed.eventually(lambda: columns() == ["Warn", "gold 0/-"], "its columns")
    assert apply(installed, quota, namespace, quotas=[{"tier": "glod", "gpus": 1}]).code != 0


def test_a_selector_that_selects_nothing(installed: Installed, quota: str) -> None:
    assert warnings(apply(installed, quota, "no-such-namespace", quotas=[{"gpus": 6}])) == [
        (
            f"[selects-nothing] spec.namespaceSelector of TenantQuota {quota} selects no namespace that exists now; "
            "compare it with kubectl get namespaces --show-labels"
        ),
    ]


def test_a_demotion_that_leads_nowhere_and_a_line_that_never_forms(
    installed: Installed, namespace: str, quota: str
) -> None:
    printed = apply(installed, quota, namespace, onExceed="Demote", quotas=[{"gpus": 6}])
    (nowhere,) = warnings(printed)
    assert nowhere.startswith("[demotes-nowhere] spec.onExceed: Demote, but no row has a lower tier to demote pods to")
    rows = [{"tier": "gpu-training", "gpus": 6}]
    assert warnings(apply(installed, quota, namespace, onExceed="Demote", quotas=rows)) == []
    (nothing,) = warnings(apply(installed, quota, namespace, onExceed="Hold", quotas=[]))
    assert nothing.startswith("[holds-nothing] spec.onExceed: Hold, but spec.quotas has no row, so no pod ever waits")


def test_a_quota_below_what_is_in_use(installed: Installed, namespace: str, quota: str) -> None:
    installed.tenant(quota, namespace, quotas=[{"gpus": 4}])
    assert installed.create(gpu_pod("train", gpus=3, tier="gpu-batch"), namespace).code == 0
    lowered = apply(installed, quota, namespace, quotas=[{"gpus": 2}])
    assert warnings(lowered) == [
        (
            "[below-use] spec.quotas[0].gpus: 2 is below the 3 in use (total); "
            "nothing is evicted, and new pods are over the quota"
        ),
    ]


def test_two_quotas_for_one_namespace(installed: Installed, namespace: str, quota: str) -> None:
    installed.tenant(quota, namespace, quotas=[{"gpus": 4}])
    (warning,) = warnings(apply(installed, f"{quota}-z", namespace, quotas=[{"gpus": 2}]))
    installed.api.delete(f"tenantquota/{quota}-z")
    assert warning.startswith(f"[overlap] TenantQuota {quota} selects {namespace} too; ")
    assert warning.endswith(" applies there. Make the selectors exclude each other")


def test_labels_and_status_are_written_without_asking(installed: Installed, namespace: str, quota: str) -> None:
    apply(installed, quota, namespace, maxTier="gpu-batch")
    before = reviews(installed)
    installed.api.label(f"tenantquota/{quota}", {"team": "a"})
    installed.eventually(lambda: bool(installed.usage(quota) or _ready(installed, quota)), "a status")
    assert reviews(installed) == before


def test_with_a_dead_webhook_a_quota_is_applied_all_the_same(installed: Installed, namespace: str, quota: str) -> None:
    installed.kill()
    try:
        answer = apply(installed, quota, namespace, maxTier="gold")
        assert "created" in answer.stdout
    finally:
        installed.restart()


def reviews(installed: Installed) -> float:
    """Return how many reviews have been answered: nobody else asks for any in these tests."""
    return installed.metric("gpu_tiers_reviews_total", path="/validate")


def _ready(installed: Installed, name: str) -> str:
    return str(installed.condition(name, "Ready").get("reason"))
