"""The first process of a node's namespaces: prepares its mounts and its loopback, then reaps orphans.

Run as a script by `unshare`. When it ends, every process and mount of the node ends. The containers' cgroups are in no
namespace, and the kernel keeps them when a process is killed, so this process removes them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SYSCTLS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
"""The values that a kubelet writes into /proc/sys. Here it finds them in files of the folder instead."""

CGROUPS = Path("/sys/fs/cgroup")
SECONDS = 10


def run(*command: str) -> None:
    """Run one command of the set-up; a failure ends the node, with its words in the log."""
    subprocess.run(command, check=True)


def prepare(folder: Path) -> None:
    """Give the node its own /run, /var/log, /var/lib/kubelet and sysctls, IP forwarding, and a loopback."""
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name, place in (("log", "/var/log"), ("kubelet", "/var/lib/kubelet")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Path(place).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", str(folder / name), place)
    run("mount", "--make-rshared", "/")
    for key, value in SYSCTLS.items():
        stand_in = folder / "sysctl" / key
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_text(value + "\n")
        run("mount", "--bind", str(stand_in), f"/proc/sys/{key}")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
    run("ip", "link", "set", "lo", "up")


def cgroups(folder: Path) -> Iterator[Path]:
    """Yield the cgroups of containers that containerd has not removed, in all hierarchies."""
    for container in folder.glob("containerd-state/*/k8s.io/*"):
        for below in (".", "*"):
            yield from CGROUPS.glob(f"{below}/k8s.io/{container.name}")


def end(folder: Path) -> None:
    """Kill all other processes, remove their cgroups as the kernel lets go of them, for SECONDS at most, and end."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while (left := list(cgroups(folder))) and time.monotonic() < deadline:
        for each in left:
            with suppress(OSError):
                each.rmdir()
        time.sleep(0.02)
    os._exit(0)


def main(folder: Path) -> None:
    """Prepare the node, create the file `prepared`, and reap orphans until a SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: end(folder))
    prepare(folder)
    (folder / "prepared").touch()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            signal.sigtimedwait({signal.SIGCHLD}, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
