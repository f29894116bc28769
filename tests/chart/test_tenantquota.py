"""TenantQuota on a real API server: what one object alone can get wrong, said in words a person can act on."""

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
import yaml

from localcluster import Cluster
from localcluster.crds import add_crds, delete_crd
from tests.builders.quota_specs import ACCEPTED, REFUSED, SELECTOR
from webhook.policy.quota.queue_status import QueuedWorkload, QueueStatus

from .helm import CHART, Manifest

pytestmark = pytest.mark.apiserver

CRD = CHART / "crds" / "tenantquotas.gpu-tiers.dev.yaml"


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the CRD alone; the chart's own webhook is not needed for it."""
    add_crds(cluster, yaml.safe_load(CRD.read_text()))
    yield cluster
    delete_crd(cluster, "tenantquotas.gpu-tiers.dev")


def quota(**spec: object) -> Manifest:
    kind = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota"}
    return {**kind, "metadata": {"name": "alpha"}, "spec": SELECTOR | spec}


@pytest.mark.parametrize("spec", ACCEPTED, ids=lambda spec: "+".join(spec) or "selector alone")
def test_a_quota_is_accepted(api: Cluster, spec: Manifest) -> None:
    api.api.create(quota(**spec), dry_run=True)


@pytest.mark.parametrize(("spec", "reason"), [each[:2] for each in REFUSED])
def test_a_quota_is_refused_with_the_reason(api: Cluster, spec: Manifest, reason: str) -> None:
    answer = api.api.create(quota(**spec), dry_run=True, check=False)
    assert answer.code
    assert reason in answer.stderr


QUEUE = QueueStatus(
    (QueuedWorkload("lab", "Job/train", "u", "gpu-training", 4, Decimal(4), "2026-01-01T00:00:00Z", "gpu-training"),)
).status()


def test_the_status_is_written_apart_and_reads_well(api: Cluster) -> None:
    api.api.apply(quota(maxTier="gpu-training", quotas=[{"tier": "gpu-training", "gpus": "6"}]))
    status = {
        "observedGeneration": 1,
        "onExceed": "Deny, for gpu-training Hold",
        "summary": "gpu-training 4/6 (+2 reserved)",
        "usage": [{"tier": "gpu-training", "hard": "6", "used": "4", "reserved": "2"}],
        "queue": QUEUE,
        "conditions": [
            {"type": "Exact", "status": "True", "reason": "Counted", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Ready", "status": "True", "reason": "Active", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }
    api.api.patch("tenantquota/alpha", {"status": status, "spec": {"maxTier": "ignored"}}, part="status")
    assert api.api.get("tq/alpha")["status"]["queue"] == QUEUE
    titles, row = api.kubectl("get", "tq", "alpha").stdout.splitlines()
    assert titles.split() == ["NAME", "MAX", "TIER", "ON", "EXCEED", "USAGE", "QUEUED", "READY", "REASON", "AGE"]
    assert re.split(r" {2,}", row)[:7] == [
        "alpha",
        "gpu-training",
        "Deny, for gpu-training Hold",
        "gpu-training 4/6 (+2 reserved)",
        "4",
        "True",
        "Active",
    ]
    wide = api.kubectl("get", "tq", "alpha", "--output=wide").stdout.splitlines()[0]
    assert wide.split()[-3:] == ["EXACT", "MESSAGE", "AGE"]


@pytest.mark.parametrize("field", ["spec.quotas.gpus", "spec.onExceed", "spec.maxTier", "status.usage.reserved"])
def test_kubectl_explains_each_field(api: Cluster, field: str) -> None:
    explained = api.kubectl("explain", f"tenantquota.{field}").stdout
    assert "<empty>" not in explained
    assert "DESCRIPTION" in explained
