"""Decides what this machine lacks for a real node and installs it with apt.

A machine that may not run one (no Linux, no root or root without rights, no overlayfs, no apt for what is missing) gets
a NodeError that names the part. What it may do is found by doing it, in namespaces that end with the attempt.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from localcluster.binaries import build_lock, say

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

RIGHTS = {
    "namespaces of its own": "unshare --net --mount --pid --fork --mount-proc true",
    "overlayfs": "unshare --mount sh -c 'mount -t tmpfs tmpfs /tmp && cd /tmp && mkdir lower upper work all && "
    "mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay all'",
    "cgroups that it may write": "made=$(mktemp --directory /sys/fs/cgroup/pids/gt-XXXXXX || "
    "mktemp --directory /sys/fs/cgroup/gt-XXXXXX) && rmdir $made",
}
"""What it needs of the kernel, and a command that does it."""
NETWORK = {
    "virtual cables": "unshare --net ip link add one type veth peer name other",
    "nftables": "unshare --net nft add table ip attempt",
}
"""The same, by programs of the packages."""


class NodeError(Exception):
    """This machine can't run a real node; the text names the missing part."""


def have_packages() -> None:
    """Install what is missing; NodeError where that can't be done, or would be in vain."""
    if not sys.platform.startswith("linux"):
        raise NodeError(f"a real node needs Linux, and this is {sys.platform}")
    if os.geteuid():
        raise NodeError("a real node needs root, for its namespaces and mounts")
    attempt(RIGHTS)
    if missing():
        with build_lock():
            install(missing())
    if lacking := missing():
        raise NodeError(f"apt-get installed them, and still there is no {', '.join(lacking)}")
    attempt(NETWORK)


def attempt(commands: Mapping[str, str]) -> None:
    """Do each of them; NodeError names the first that fails, with its words."""
    for part, command in commands.items():
        run = subprocess.run(
            ["sh", "-c", command], env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise NodeError(f"a real node needs {part}: {' '.join(run.stderr.split())}")


def missing() -> list[str]:
    """Return the programs that are not there."""
    return [program for program in PACKAGE_OF if not shutil.which(program, path=PATH)]


def install(programs: list[str]) -> None:
    """Install their packages; NodeError shows the last lines of a failure."""
    if not programs:  # another process has installed them meanwhile
        return
    packages = sorted({PACKAGE_OF[program] for program in programs})
    if not shutil.which("apt-get"):
        raise NodeError(f"a real node needs {', '.join(programs)}, and there is no apt-get to install them")
    say(f"installing {', '.join(packages)} for the real node")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["apt-get", "--option=DPkg::Lock::Timeout=300"]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        run = subprocess.run([*patient, *command], env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        tail = "\n".join(run.stderr.splitlines()[-5:])
        raise NodeError(f"apt-get install {' '.join(packages)} failed:\n{tail}")
