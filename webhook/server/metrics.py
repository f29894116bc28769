"""The process's metrics, and the three ways to feed them."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.server.metric_table import REVIEWS, TABLE, Metric

log = logging.getLogger(__name__)

OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

TENANT = "tenant"

Sample = tuple[tuple[str, ...], float]
"""Label values in the table's order, and the value."""


class Metrics:
    """The process's metrics; `registry` is what /metrics shows."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._counters = {row: self._counter(row) for row in TABLE if row.kind == "counter"}
        self._histograms = {
            row: Histogram(row.name, row.help, row.labels, registry=self.registry, buckets=row.buckets)
            for row in TABLE
            if row.kind == "histogram"
        }
        self._gauges = _Gauges()
        self.registry.register(self._gauges)

    def count(self, metric: Metric, *labels: str) -> None:
        self.add(metric, 1, *labels)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        self._counters[metric].labels(*labels).inc(amount)

    def start(self, metric: Metric, *labels: str) -> None:
        """Show a counter at 0, so that Prometheus sees its first increase."""
        self._counters[metric].labels(*labels)

    def forget_tenants(self, there: Collection[str]) -> None:
        """End the series of counters about tenants that are no more; those of no tenant stay."""
        for row, counter in self._counters.items():
            if TENANT in row.labels:
                shown = {sample.labels[TENANT] for family in counter.collect() for sample in family.samples}
                for gone in shown.difference(there, {""}):
                    counter.remove_by_labels({TENANT: gone})

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._histograms[metric].labels(*labels).observe(value)

    def sample(self, metric: Metric, read: Callable[[], Iterable[Sample]]) -> None:
        """Where a gauge gets its values from at each scrape; what is no longer yielded is no longer shown."""
        self._gauges.sources[metric] = read

    def review(self, path: str, operation: str, outcome: str) -> None:
        """One more review. An operation that Kubernetes does not have counts as none: label values stay few."""
        self.count(REVIEWS, path, operation if operation in OPERATIONS else "", outcome)

    def _counter(self, row: Metric) -> Counter:
        counter = Counter(row.name, row.help, row.labels, registry=self.registry)
        for labels in row.starts:
            counter.labels(*labels)
        return counter


class _Gauges(Collector):
    """Reads every gauge when it is scraped, so that none can be stale."""

    def __init__(self) -> None:
        self.sources: dict[Metric, Callable[[], Iterable[Sample]]] = {}

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: else registering would read every source once."""
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges that have a source; one that fails must not take the others with it."""
        for row, read in self.sources.items():
            family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
            try:
                for labels, value in read():
                    family.add_metric(labels, value)
            except Exception:
                log.exception("gauge not read", {"metric": row.name})
                continue
            yield family
