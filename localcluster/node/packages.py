"""Decides what this machine lacks for a real node and installs it with apt.

A machine that may not run one (no Linux, no root or root without rights, no overlayfs, no apt for what is missing) gets
a NodeError that names the part. What it may do is found by doing it, in namespaces that end with the attempt.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from localcluster import debian
from localcluster.debian import PATH

PLUGINS = Path("/usr/lib/cni")  # where Debian puts them

PACKAGE_OF = {
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
"""What a real node needs of the kernel, each with a command that tries it."""
NETWORK = {
    "virtual cables": "unshare --net ip link add one type veth peer name other",
    "nftables": "unshare --net nft add table ip attempt",
}
"""More needs, tried by programs of the packages."""


class NodeError(Exception):
    """This machine can't run a real node; the text names the missing part."""


def have_packages() -> None:
    """Install what is missing; NodeError if that can't be done or would not suffice."""
    if not sys.platform.startswith("linux"):
        raise NodeError(f"a real node needs Linux, and this is {sys.platform}")
    if os.geteuid():
        raise NodeError("a real node needs root, for its namespaces and mounts")
    attempt(RIGHTS)
    try:
        debian.have(PACKAGE_OF, "a real node")
    except debian.PackageError as error:
        raise NodeError(str(error)) from error
    attempt(NETWORK)


def attempt(commands: Mapping[str, str]) -> None:
    """Run the commands; NodeError names the first part whose command fails, with its message."""
    for part, command in commands.items():
        run = subprocess.run(
            ["sh", "-c", command], env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise NodeError(f"a real node needs {part}: {' '.join(run.stderr.split())}")
