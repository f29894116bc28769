"""The table of metrics, which is metrics.yaml in this folder. Code uses a metric's name in Prometheus."""

from typing import Literal

import msgspec

from webhook.objects.data_files import data_file


class Metric(msgspec.Struct, frozen=True):
    """A row of the table. `starts` are the label values of series that a counter shows from the start.

    Code adds to counters and histograms, and gauges are read at each scrape.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    starts: tuple[tuple[str, ...], ...] = ()


TABLE = {row.name: row for row in msgspec.convert(data_file(__name__, "metrics.yaml"), tuple[Metric, ...])}
"""The rows by name, in the order of the file."""
