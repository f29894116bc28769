"""The table of metrics, which is metrics.yaml in this folder. Code calls a metric by the name that Prometheus has."""

from typing import Literal

import msgspec

from webhook.objects.data_files import data_file


class Metric(msgspec.Struct, frozen=True):
    """A row of the table. Counters and histograms are fed by the code, and gauges are read at each scrape."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    starts: tuple[tuple[str, ...], ...] = ()


TABLE = {row.name: row for row in msgspec.convert(data_file(__name__, "metrics.yaml"), tuple[Metric, ...])}
"""The rows by name, in the order of the file."""
