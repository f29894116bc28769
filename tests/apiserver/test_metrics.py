"""The metrics of a live cluster: quotas and their use, GPU-seconds, and whether the accounts are current."""

import platform
import time
from collections.abc import Iterator

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    with installed.tenant_for(
        "metered", namespace, quotas=[{"tier": "gpu-serving", "gpus": "4"}], maxTier="gpu-serving"
    ) as name:
        yield name


def test_a_tenants_quota_its_use_and_its_gpu_seconds(
    installed: Installed, namespace: str, tenant: str, node: str
) -> None:
    row = {"tenant": tenant, "tier": "gpu-serving", "flavor": ""}
    assert installed.metric("gpu_tiers_quota_gpus", **row) == 4
    assert installed.create(gpu_pod("waits", 1, tier="gpu-serving"), namespace).code == 0
    assert installed.create(gpu_pod("runs", 2, tier="gpu-serving", node=node), namespace).code == 0
    installed.eventually(lambda: installed.metric("gpu_tiers_ledger_gpus", **row) == 3, "both are booked")
    installed.eventually(lambda: installed.metric("gpu_tiers_gpu_seconds_total", **row) > 0, "what runs is counted")
    first, since = installed.metric("gpu_tiers_gpu_seconds_total", **row), time.monotonic()
    installed.eventually(lambda: installed.metric("gpu_tiers_gpu_seconds_total", **row) > first, "and again")
    counted = installed.metric("gpu_tiers_gpu_seconds_total", **row) - first
    assert counted <= 2 * (time.monotonic() - since + 11), "2 GPUs: what waits holds none"


def test_how_long_pods_wait_for_a_node(installed: Installed, namespace: str, node: str) -> None:
    """One waits for a node that is cordoned, the other for none that there is."""

    def counted() -> float:
        return installed.metric("gpu_tiers_pending_seconds_count", tier="gpu-batch")

    before, seconds = counted(), installed.metric("gpu_tiers_pending_seconds_sum", tier="gpu-batch")
    installed.cluster.kubectl("cordon", node)
    assert installed.create(gpu_pod("late", 1, tier="gpu-batch", node=node), namespace).code == 0
    assert installed.create(gpu_pod("never", 1, tier="gpu-batch"), namespace).code == 0
    installed.eventually(
        lambda: installed.metric("gpu_tiers_pending_oldest_seconds", tier="gpu-batch") >= 2, "both wait for 2 s"
    )
    assert counted() == before, "nobody has a node yet"
    installed.cluster.kubectl("uncordon", node)
    installed.eventually(lambda: counted() > before, "the end of one's wait")
    assert counted() == before + 1
    assert installed.metric("gpu_tiers_pending_seconds_sum", tier="gpu-batch") >= seconds + 2
    # it was created a moment later
    installed.eventually(
        lambda: installed.metric("gpu_tiers_pending_oldest_seconds", tier="gpu-batch") >= 2, "the other waits on"
    )


@pytest.mark.usefixtures("tenant")
def test_what_is_admitted_and_what_is_refused(installed: Installed, namespace: str) -> None:
    labelled = {"tier": "gpu-serving", "step": "label", "mode": "Enforce"}
    let_in = installed.metric("gpu_tiers_admissions_total", **labelled)
    refused = installed.metric("gpu_tiers_denials_total", reason="over-quota")
    above = installed.metric("gpu_tiers_denials_total", reason="ceiling")
    assert installed.create(gpu_pod("web", 1, tier="gpu-serving"), namespace).code == 0
    assert installed.create(gpu_pod("large", 9, tier="gpu-serving"), namespace).code
    assert installed.create(gpu_pod("above", 1, tier="gpu-training"), namespace).code
    assert installed.metric("gpu_tiers_admissions_total", **labelled) == let_in + 1
    assert installed.metric("gpu_tiers_denials_total", reason="over-quota") == refused + 1
    assert installed.metric("gpu_tiers_denials_total", reason="ceiling") == above + 1


def test_the_series_of_a_tenant_end_with_it(installed: Installed, namespace: str, node: str) -> None:
    name = f"left-{namespace}"
    installed.tenant(name, namespace, quotas=[{"gpus": 4}])
    assert installed.create(gpu_pod("runs", 2, tier="gpu-serving", node=node), namespace).code == 0
    assert installed.create(gpu_pod("large", 9, tier="gpu-serving"), namespace).code
    shown = ("ledger_gpus", "quota_gpus", "refusals_total", "gpu_seconds_total")
    for each in shown:
        installed.eventually(lambda each=each: installed.metric(f"gpu_tiers_{each}", tenant=name) > 0, each)
    installed.api.delete(f"tenantquota/{name}")
    installed.eventually(lambda: f'tenant="{name}"' not in installed.metrics(), "no series about it")


def test_the_leader_says_when_it_counted_and_who_runs(installed: Installed) -> None:
    assert installed.metric("gpu_tiers_build_info", python=platform.python_version()) == 1
    installed.eventually(lambda: installed.metric("gpu_tiers_leading") == 1, "a leader")
    now = time.time()
    installed.eventually(lambda: installed.metric("gpu_tiers_ledger_round_timestamp_seconds") > now, "its next round")
