"""The process's metrics: counters and histograms that code adds to, and gauges that are read at each scrape."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache

import prometheus_client
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.objects.refusal import Reason
from webhook.server.metric_table import TABLE

log = logging.getLogger(__name__)

OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

TENANT = "tenant"

Sample = tuple[tuple[str, ...], float]
"""A gauge's label values, in the order of the table, and its value."""


class Metrics(Collector):
    """The process's metrics. /metrics shows `registry`.

    It is the collector of the gauges, and reads each gauge at the scrape, so that no value is stale.
    """

    def __init__(self) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.PlatformCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)
        self._counters = {
            name: prometheus_client.Counter(name, row.help, row.labels, registry=self.registry)
            for name, row in TABLE.items()
            if row.kind == "counter"
        }
        self._histograms = {
            name: prometheus_client.Histogram(name, row.help, row.labels, registry=self.registry, buckets=row.buckets)
            for name, row in TABLE.items()
            if row.kind == "histogram"
        }
        # prometheus_client takes a lock to find a series, and makes text of each label
        self._series = cache(lambda metric, *labels: self._counters[metric].labels(*labels))
        self._times = cache(lambda metric, *labels: self._histograms[metric].labels(*labels))
        for name, row in TABLE.items():
            for labels in row.starts:
                self.start(name, *labels)
        for reason in Reason:
            self.start("gpu_tiers_denials_total", reason, "Enforce")
        self._gauges: dict[str, Callable[[], Iterable[Sample]]] = {}
        self.registry.register(self)

    def count(self, metric: str, *labels: str) -> None:
        self.add(metric, 1, *labels)

    def add(self, metric: str, amount: float, *labels: str) -> None:
        self._series(metric, *labels).inc(amount)

    def start(self, metric: str, *labels: str) -> None:
        """Show a counter at 0, so that Prometheus sees its first increase."""
        self._series(metric, *labels)

    def forget_tenants(self, there: Collection[str]) -> None:
        """Remove the counters' series of tenants that are not in `there`. Series without a tenant stay."""
        for name, counter in self._counters.items():
            if TENANT in TABLE[name].labels:
                shown = {sample.labels[TENANT] for family in counter.collect() for sample in family.samples}
                for gone in shown.difference(there, {""}):
                    counter.remove_by_labels({TENANT: gone})
        self._series.cache_clear()

    def observe(self, metric: str, value: float, *labels: str) -> None:
        self._times(metric, *labels).observe(value)

    def sample(self, metric: str, read: Callable[[], Iterable[Sample]]) -> None:
        """Set the function that a gauge reads at each scrape. Only the samples that it yields are shown."""
        self._gauges[metric] = read

    def review(self, path: str, operation: str, outcome: str) -> None:
        """Count a review. An operation that Kubernetes does not have counts as "", so that label values stay few."""
        self.count("gpu_tiers_reviews_total", path, operation if operation in OPERATIONS else "", outcome)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield nothing, because the registry would otherwise call `collect` when this collector is registered."""
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all gauges that have a source, except those that fail."""
        for name, read in self._gauges.items():
            family = GaugeMetricFamily(name, TABLE[name].help, labels=TABLE[name].labels)
            try:
                for labels, value in read():
                    family.add_metric(labels, value)
            except Exception:
                log.exception("gauge not read", {"metric": name})
                continue
            yield family
