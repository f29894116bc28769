"""Debian's promtool and its Prometheus: what is installed, else taken out of the package without installing it."""

import os
import shutil
import subprocess
from pathlib import Path

from localcluster.binaries import cache_folder
from localcluster.for_tests import missing


def promtool() -> Path:
    """Where it is. Without it the tests are skipped with the reason; under CI=true they fail."""
    return _program("promtool")


def prometheus() -> Path:
    """Where the server is; without it the same."""
    return _program("prometheus")


def _program(name: str) -> Path:
    if installed := shutil.which(name):
        return Path(installed)
    kept = cache_folder() / "bin" / name
    if not os.access(kept, os.X_OK):
        _take_out(kept)
    return kept


def _take_out(kept: Path) -> None:
    """Nothing is installed, for the package would start a server. Of two processes the last one's stays."""
    for program in ("apt-get", "dpkg-deb"):
        if not shutil.which(program):
            missing(f"no {kept.name}: it comes from a Debian package, and there is no {program}")
    folder = kept.with_suffix(f".{os.getpid()}.tmp")
    folder.mkdir(parents=True)
    try:
        _run(["apt-get", "download", "prometheus"], folder)
        (package,) = folder.glob("prometheus_*.deb")
        _run(["dpkg-deb", "--extract", str(package), "."], folder)
        (folder / "usr" / "bin" / kept.name).replace(kept)
    finally:
        shutil.rmtree(folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        missing(f"no package prometheus: {' '.join(command)} failed: {done.stderr.strip()[-300:]}")
