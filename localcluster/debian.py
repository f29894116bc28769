"""Installs programs that this machine lacks with apt, if it may: as root, on Debian."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from localcluster.binaries import only_one, say

PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


class PackageError(Exception):
    """A program is missing and could not be installed; the text says what to do."""


def have(package_of: Mapping[str, str], purpose: str) -> None:
    """Install the packages of those programs that are missing; PackageError if that can't be done."""
    if missing(package_of):
        if os.geteuid() or not shutil.which("apt-get"):
            needed = sorted({package_of[program] for program in missing(package_of)})
            raise PackageError(f"{purpose} needs {', '.join(needed)}, and only root on Debian can have them installed")
        with only_one("packages"):
            _install(sorted({package_of[program] for program in missing(package_of)}), purpose)
    if lacking := missing(package_of):
        raise PackageError(f"apt-get installed them, and still there is no {', '.join(lacking)}")


def missing(programs: Mapping[str, str]) -> list[str]:
    """Return the programs that are not on PATH, or in /usr/sbin or /sbin."""
    return [program for program in programs if not shutil.which(program, path=PATH)]


def _install(packages: list[str], purpose: str) -> None:
    if not packages:  # another process has installed them meanwhile
        return
    say(f"installing {', '.join(packages)} for {purpose}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["apt-get", "--option=DPkg::Lock::Timeout=300"]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        run = subprocess.run([*patient, *command], env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        tail = "\n".join(run.stderr.splitlines()[-5:])
        raise PackageError(f"apt-get install {' '.join(packages)} failed:\n{tail}")
