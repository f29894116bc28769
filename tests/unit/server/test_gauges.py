"""The gauges of tenants."""

from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from prometheus_client import generate_latest

from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.server.gauges import of_tenants
from webhook.server.metrics import Metrics

ROW = QuotaRow(Decimal(8), "gpu-training")
ALPHA = Tenant("alpha", rows=(ROW,))


def shown(metrics: Metrics) -> Iterator[str]:
    return (line for line in generate_latest(metrics.registry).decode().splitlines() if "alpha" in line)


def test_what_is_used_reserved_and_reserved_for_the_queue_is_shown_apart() -> None:
    gpus = {"usage": 7, "used": 3, "reserved_for_queue": 2}
    ledger: Any = SimpleNamespace(
        **{name: lambda _, found=found: {ROW: Decimal(found)} for name, found in gpus.items()}
    )
    cluster: Any = SimpleNamespace(tenants=lambda: [ALPHA])
    metrics = Metrics()
    of_tenants(metrics, cluster, ledger)
    labels = '{flavor="",tenant="alpha",tier="gpu-training"}'
    assert set(shown(metrics)) == {
        f"gpu_tiers_quota_gpus{labels} 8.0",
        f"gpu_tiers_ledger_gpus{labels} 7.0",
        f"gpu_tiers_reserved_gpus{labels} 2.0",
        f"gpu_tiers_queue_reserved_gpus{labels} 2.0",
    }
