"""Gets a framework's virtual environment: made once in the user's cache, from pinned and hashed requirements.

It never touches the environment that the tests run in.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from demonstration.frameworks import REQUIREMENTS, folder_of, obstacle
from localcluster.binaries import cache_folder
from localcluster.for_tests import missing

FREE = {"torch": 9, "oldest": 9, "jax": 2}
"""GB that have to be free before an environment is made; torch's needs 5.6, as its Linux wheel brings CUDA."""


def environment(name: str) -> Path:
    """The folder with its programs, installed if need be; without them tests are skipped, and fail under CI=true."""
    folder = folder_of(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            forget_others(name)
            install(name, folder)
            (folder / "complete").touch()
    return folder / "bin"


def torch_in_pods() -> None:
    """Install torch if need be; where pods can't use it tests are skipped, and fail under CI=true."""
    environment("torch")
    if why := obstacle():
        missing(f"no torch in a pod: {why}")


def forget_others(name: str) -> None:
    """Remove environments of other versions, and unfinished ones: they are large."""
    for folder in (cache_folder() / "frameworks").glob(f"{name}-*/"):
        shutil.rmtree(folder)


def install(name: str, folder: Path) -> None:
    """Make it with pip; without pip's cache, which would keep as much again."""
    free = shutil.disk_usage(folder.parent).free / 1e9
    if free < FREE[name]:
        missing(f"no {name}: {FREE[name]} GB have to be free in {folder.parent}, {free:.1f} are")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir", "--require-hashes"]
    for step in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(folder / "bin" / "pip"), "install", *quiet, "-r", str(REQUIREMENTS / f"{name}.txt")],
    ):
        run = subprocess.run(step, env=os.environ, capture_output=True, text=True, check=False)
        if run.returncode:
            missing(f"no {name}: {run.stderr.strip()[-2000:]}")
