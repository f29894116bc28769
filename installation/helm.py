"""Runs helm, or another program of this Python's environment, for the release that is installed here."""

import shutil
import subprocess
import sys
from pathlib import Path

from localcluster import Cluster
from localcluster.environment import SHORT_LIVED, without_a_persons
from localcluster.processes import ProcessError

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "gpu-tiers"
RELEASE = "gpu-tiers"
"""The release, its namespace, and its ConfigMap."""


def helm(cluster: Cluster, *arguments: str, input: str | None = None) -> str:  # noqa: A002
    """Run helm against the cluster, with its own files in the cluster's folder, and return what it printed.

    ProcessError has what helm wrote to stderr if it fails.
    """
    homes = {f"HELM_{kind}_HOME": str(cluster.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    run = subprocess.run(
        [program("helm"), f"--kubeconfig={cluster.kubeconfig}", *arguments],
        env=without_a_persons() | homes | SHORT_LIVED,
        input=input,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise ProcessError(f"helm {arguments[0]} (exit {run.returncode}): {run.stderr.strip()}")
    return run.stdout


def program(name: str) -> str:
    """Return a program of this Python's environment, else the one on PATH; ProcessError if there is none."""
    installed = Path(sys.executable).parent / name
    found = str(installed) if installed.exists() else shutil.which(name)
    if not found:
        raise ProcessError(f"{name} is not installed: pip install -e '.[dev]'")
    return found
