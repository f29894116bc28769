"""Decides what this machine lacks for a real node and installs it with apt. It starts nothing.

A machine that may not run one (no Linux, no root, no apt for what is missing) gets a NodeError that names the part.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from localcluster.binaries import say

PLUGINS = Path("/usr/lib/cni")  # where Debian puts them
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))

PACKAGE_OF = {
    "containerd": "containerd",
    "runc": "runc",
    str(PLUGINS / "ptp"): "containernetworking-plugins",
    "nft": "nftables",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""The Debian package of each program."""


class NodeError(Exception):
    """This machine can't run a real node; the text names the missing part."""


def have_packages() -> None:
    """Install what is missing; NodeError where that can't be done."""
    if not sys.platform.startswith("linux"):
        raise NodeError(f"a real node needs Linux, and this is {sys.platform}")
    if os.geteuid():
        raise NodeError("a real node needs root, for its namespaces and mounts")
    if lacking := missing():
        install(lacking)
    if lacking := missing():
        raise NodeError(f"apt-get installed them, and still there is no {', '.join(lacking)}")


def missing() -> list[str]:
    """Return the programs that are not there."""
    return [program for program in PACKAGE_OF if not shutil.which(program, path=PATH)]


def install(programs: list[str]) -> None:
    """Install their packages; NodeError shows the last lines of a failure."""
    packages = sorted({PACKAGE_OF[program] for program in programs})
    if not shutil.which("apt-get"):
        raise NodeError(f"a real node needs {', '.join(programs)}, and there is no apt-get to install them")
    say(f"installing {', '.join(packages)} for the real node")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        run = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        tail = "\n".join(run.stderr.splitlines()[-5:])
        raise NodeError(f"apt-get install {' '.join(packages)} failed:\n{tail}")
