"""Debian's Prometheus, installed or unpacked without installing it, and one that has the samples of a day."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from localcluster.binaries import cache_folder
from localcluster.debian import PackageError
from localcluster.waiting import answers_ready, wait_until

PROGRAMS = ("prometheus", "promtool")
MINUTES = 24 * 60
SECONDS = 60
Sample = Callable[[int], float | None]
"""The value of a series, minutes after the day began; None while it is not there."""


def program(name: str) -> Path:
    """Return the path of `prometheus` or `promtool`, unpacked into the cache if not installed; or PackageError."""
    if installed := shutil.which(name):
        return Path(installed)
    path = cache_folder() / "bin" / name
    if not os.access(path, os.X_OK):
        _take_out(path)
    return path


def _take_out(path: Path) -> None:
    """Unpack both programs instead of installing them, because the package would start a server."""
    for needed in ("apt-get", "dpkg-deb"):
        if not shutil.which(needed):
            raise PackageError(f"no {path.name}: it comes from a Debian package, and there is no {needed}")
    folder = path.with_suffix(f".{os.getpid()}.tmp")
    folder.mkdir(parents=True)
    try:
        _run(["apt-get", "download", "prometheus"], folder)
        (package,) = folder.glob("prometheus_*.deb")
        _run(["dpkg-deb", "--extract", str(package), "."], folder)
        for each in PROGRAMS:
            (folder / "usr" / "bin" / each).replace(path.with_name(each))
    finally:
        shutil.rmtree(folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise PackageError(f"no package prometheus: {' '.join(command)} failed: {done.stderr.strip()[-300:]}")


class Backfilled:
    """A Prometheus inside its `with` block, on `port` of loopback, with a day of these counters up to `end`."""

    def __init__(self, folder: Path, port: int, series: Mapping[str, Sample], end: float) -> None:
        self._folder = folder
        self.port = port
        samples = folder / "samples.txt"
        samples.write_text("\n".join((*_lines(series, end), "# EOF\n")), encoding="utf-8")
        _run([str(program("promtool")), "tsdb", "create-blocks-from", "openmetrics", str(samples), "tsdb"], folder)
        (folder / "prometheus.yaml").write_text("global: {}\n", encoding="utf-8")

    def __enter__(self) -> Self:
        options = {
            "config.file": "prometheus.yaml",
            "storage.tsdb.path": "tsdb",
            "web.listen-address": f"127.0.0.1:{self.port}",
        }
        command = [str(program("prometheus")), *(f"--{name}={value}" for name, value in options.items())]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        wait_until(lambda: answers_ready(self.port, "/-/ready"), SECONDS, "Prometheus")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)


def _lines(series: Mapping[str, Sample], end: float) -> Iterator[str]:
    """Yield lines of OpenMetrics, in which the samples of one metric are consecutive."""
    for name in sorted({each.partition("{")[0] for each in series}):
        yield f"# TYPE {name.removesuffix('_total')} counter"
        for each, sample in series.items():
            if each.partition("{")[0] == name:
                for minute in range(MINUTES + 1):
                    if (value := sample(minute)) is not None:
                        yield f"{each} {value} {end - (MINUTES - minute) * 60:.3f}"
