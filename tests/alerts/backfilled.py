"""A Prometheus that already knows a day of gpu-tiers: samples of each minute, written by promtool."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from localcluster.ports import free_ports
from localcluster.waiting import answers_ready, wait_until

from .promtool import prometheus, promtool

MINUTES = 24 * 60
Told = Callable[[int], float | None]
"""The value of a series, minutes after the day began; None while it is not there."""


class Backfilled:
    """Runs while it is entered, on `port` of loopback, with these series of counters up to `end`."""

    def __init__(self, folder: Path, series: Mapping[str, Told], end: float) -> None:
        self._folder = folder
        samples = folder / "samples.txt"
        samples.write_text("\n".join((*_lines(series, end), "# EOF\n")))
        command = ["tsdb", "create-blocks-from", "openmetrics", str(samples), str(folder / "tsdb")]
        subprocess.run([promtool(), *command], check=True, capture_output=True, timeout=120)
        (folder / "prometheus.yaml").write_text("global: {}\n")
        (self.port,) = free_ports(1)

    def __enter__(self) -> Self:
        options = {
            "config.file": self._folder / "prometheus.yaml",
            "storage.tsdb.path": self._folder / "tsdb",
            "web.listen-address": f"127.0.0.1:{self.port}",
        }
        command = [str(prometheus()), *(f"--{name}={value}" for name, value in options.items())]
        with (self._folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: answers_ready(self.port, "/-/ready"), 60, "Prometheus")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)


def _lines(series: Mapping[str, Told], end: float) -> Iterator[str]:
    """OpenMetrics: samples of one metric stand together."""
    for name in sorted({each.partition("{")[0] for each in series}):
        yield f"# TYPE {name.removesuffix('_total')} counter"
        for each, told in series.items():
            if each.partition("{")[0] == name:
                for minute in range(MINUTES + 1):
                    if (value := told(minute)) is not None:
                        yield f"{each} {value} {end - (MINUTES - minute) * 60:.3f}"
