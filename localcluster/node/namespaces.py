"""The namespaces of a real node, for network, mounts and processes, and its cable to the machine.

Nothing on the machine is shared or changed. When the first process ends, the kernel stops the others and
drops mounts, addresses and nftables. Only the containers' cgroups are the machine's; that process removes them.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path

from localcluster.node.packages import NodeError
from localcluster.processes import Process, ProcessGroup
from localcluster.waiting import wait_until

INIT = Path(__file__).with_name("init.py")
CABLES = IPv4Network("10.201.0.0/16")
SECONDS = 20
NAMESPACES = ("--net", "--mount", "--pid")


class Namespaces:
    """The namespaces of one node, with one network address that this machine reaches too."""

    def __init__(self, folder: Path, processes: ProcessGroup) -> None:
        self.folder = folder
        self.name = f"gt-{secrets.token_hex(4)}"
        unshare = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc"]
        self.process = processes.start("node", [*unshare, sys.executable, "-I", str(INIT), str(folder)])
        self._wait_for_init()
        processes.adopt(self._init)  # `unshare` itself is deaf to SIGTERM
        self.address = self._cable()

    def in_network(self) -> list[str]:
        """Return the prefix of a command line that runs in the node's network only."""
        return ["nsenter", f"--target={self._init}", "--net", "--"]

    def inside(self) -> list[str]:
        """Return the prefix of a command line that runs inside, and gets SIGTERM if its `nsenter` ends."""
        return ["nsenter", f"--target={self._init}", *NAMESPACES, "--", "setpriv", "--pdeathsig=TERM", "--"]

    def end(self) -> None:
        """End all that runs inside, and wait; subprocess.TimeoutExpired after SECONDS."""
        if self.process.popen.poll() is None:
            os.kill(self._init, signal.SIGTERM)
            self.process.popen.wait(SECONDS)

    def stop(self, process: Process) -> None:
        """Stop the child of `process`, and wait. `process` is the `nsenter` before it, which would end too early."""
        os.kill(only_child(process), signal.SIGTERM)
        process.popen.wait(SECONDS)

    def unplug(self) -> None:
        """Remove this machine's end of the cable: it would go with the namespace as well, but some time later."""
        subprocess.run(["ip", "link", "delete", self.name], capture_output=True, check=False)

    def _wait_for_init(self) -> None:
        def is_prepared() -> bool:
            self.process.check()
            return (self.folder / "prepared").exists()

        wait_until(is_prepared, SECONDS, "the node's namespaces", pause=0.02)
        self._init = only_child(self.process)

    def _cable(self) -> str:
        """Add a veth pair from this machine into the node's network; return the address of the node's end."""
        here, there = free_cable()
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", str(self._init))
        ip("address", "add", f"{here}/30", "dev", self.name)
        ip("link", "set", self.name, "up")
        for command in (f"address add {there}/30 dev eth0", "link set eth0 up", f"route add default via {here}"):
            ip(*command.split(), inside=self.in_network())
        return there


def only_child(process: Process) -> int:
    """Return the id of the process that `unshare` or `nsenter` runs."""
    pid = process.popen.pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def ip(*arguments: str, inside: Iterable[str] = ()) -> str:
    """Run `ip`; NodeError with its words."""
    run = subprocess.run([*inside, "ip", *arguments], capture_output=True, text=True, check=False)
    if run.returncode:
        raise NodeError(f"ip {' '.join(arguments)}: {run.stderr.strip()}")
    return run.stdout


def free_cable() -> tuple[str, str]:
    """Return the two addresses of a network of four that no route of this machine touches, picked at random."""
    routes = json.loads(ip("-json", "-4", "route", "show", "table", "all"))
    taken = [IPv4Network(each["dst"], strict=False) for each in routes if each["dst"] != "default"]
    candidates = list(CABLES.subnets(new_prefix=30))
    secrets.SystemRandom().shuffle(candidates)
    for candidate in candidates:
        if not any(candidate.overlaps(each) for each in taken):
            here, there = candidate.hosts()
            return str(here), str(there)
    raise NodeError(f"no addresses are free in {CABLES}")
