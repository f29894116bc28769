"""Makes docs/metrics.md of the table of metrics."""

from collections.abc import Iterable, Iterator

from generators.tables import code, page, table
from webhook.server.metric_table import (
    CHECKPOINT_SECONDS,
    EVICTION_SECONDS,
    HELD_SECONDS,
    PENDING_SECONDS,
    REVIEW_SECONDS,
    TABLE,
)

_WHERE = """\
Why: to see what the webhook decides, what it costs, and whether it can do its work. The metrics are on `/metrics` of
the port `--metrics-port`, beside the usual `process_*` and `python_*` of the client library.

The chart has [alerts](alerts.md) on them, and tells the Prometheus operator to scrape them
(`metrics.serviceMonitor.enabled`, `metrics.prometheusRule.enabled`). `metrics.dashboard.enabled` adds a ConfigMap with
a Grafana dashboard, `charts/gpu-tiers/files/dashboard.json`. Each replica shows its own numbers: sum counters over
replicas, and take the maximum of gauges about tenants."""


def metrics() -> str:
    """The page, whole."""
    rows = table(("metric", "type", "labels", "what it says"), _rows())
    return page("Metrics", "the table in `webhook/server/metric_table.py`", _WHERE, rows, _buckets())


def _rows() -> Iterator[tuple[str, str, str, str]]:
    for row in TABLE:
        yield code(row.name), row.kind, ", ".join(map(code, row.labels)) or "none", row.help


def _buckets() -> str:
    reviews = _numbers(bound * 1000 for bound in REVIEW_SECONDS.buckets)
    saves, waits = _numbers(CHECKPOINT_SECONDS.buckets), _numbers(PENDING_SECONDS.buckets)
    return (
        f"Buckets of `{REVIEW_SECONDS.name}`, in milliseconds: {reviews}.\n"
        f"Of `{CHECKPOINT_SECONDS.name}`, in seconds: {saves}. Of `{PENDING_SECONDS.name}` "
        f"and `{HELD_SECONDS.name}`: {waits}.\n"
        f"Of `{EVICTION_SECONDS.name}`: {_numbers(EVICTION_SECONDS.buckets)}."
    )


def _numbers(bounds: Iterable[float]) -> str:
    return ", ".join(f"{bound:g}" for bound in bounds)
