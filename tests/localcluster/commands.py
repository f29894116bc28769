"""Runs the commands of a local cluster as a person does, with a cache of their own: their cluster is nobody else's."""

import os
import subprocess
import sys
from pathlib import Path

from localcluster.binaries import binaries, cache_folder, find

ROOT = Path(__file__).parents[2]


class Commands:
    """`python -m MODULE`, with a cache folder of the test's own, which has the binaries already."""

    def __init__(self, module: str, folder: Path, minor: str) -> None:
        for binary in binaries(minor).values():
            find(binary)
        (folder / "bin").symlink_to(cache_folder() / "bin")
        self._module = module
        self._environment = {**os.environ, "GPU_TIERS_CACHE": str(folder), "K8S": minor}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", self._module, *arguments]
        return subprocess.run(
            command, env=self._environment, cwd=ROOT, capture_output=True, text=True, timeout=500, check=True
        )


def kubeconfig(up: subprocess.CompletedProcess[str]) -> Path:
    """Return the kubeconfig of the last line of `up`."""
    return Path(up.stdout.splitlines()[-1].removeprefix("export KUBECONFIG="))
