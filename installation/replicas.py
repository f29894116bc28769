"""Runs several `gpu-tiers serve` beside a cluster, behind one address."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from installation.local_webhook import Address, serve, wait_until_ready
from localcluster import Cluster, balancer
from localcluster.ports import free_ports
from localcluster.processes import Process


class Replica:
    """A replica, under its own identity and at an address that only the balancer knows."""

    def __init__(self, cluster: Cluster, name: str, options: Sequence[str], *, restarts: bool = False) -> None:
        self.name = name
        self.address = Address(*free_ports(3))
        self._processes = cluster.processes
        [hand_over_port] = free_ports(1)
        self._command = serve(
            cluster, self.address, f"--identity={name}", f"--hand-over-port={hand_over_port}", *options
        )
        self._restarts = restarts
        self.process = self._start()

    def _start(self) -> Process:
        return self._processes.start(self.name, self._command, restarts=self._restarts)

    @property
    def has_ended(self) -> bool:

        return self.process.popen.poll() is not None

    def wait_until_ready(self) -> None:
        """Wait for the /readyz of the replica; ProcessError if its process ends, or takes longer than READY_SECONDS."""
        wait_until_ready(self.process, self.address)

    def kill(self) -> None:
        """Kill the replica at once, also in the middle of a request."""
        self.process.popen.kill()
        self.process.popen.wait()

    def start_again(self) -> None:
        """Start a new process after the old one has ended, as a kubelet does."""
        self._processes.end(self.process)
        self.process = self._start()

    def pause(self) -> None:
        """Stop the replica with SIGSTOP: its connections stay, and it answers nothing."""
        self.process.popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the paused replica go on as if no time had passed."""
        self.process.popen.send_signal(signal.SIGCONT)


def start_replicas(
    cluster: Cluster, address: Address, count: int, *options: str, restarts: bool = False
) -> list[Replica]:
    """Start `count` replicas behind a balancer at `address`, and wait until each is ready; `options` are of `serve`."""
    replicas = [Replica(cluster, f"gpu-tiers-{number}", options, restarts=restarts) for number in range(count)]
    file = cluster.folder / "balancer.json"
    ports = ("port", "metrics_port")
    backends = [{"name": each.name, **{port: getattr(each.address, port) for port in ports}} for each in replicas]
    file.write_text(json.dumps({"port": address.port, "backends": backends}))
    cluster.processes.start("balancer", [sys.executable, "-I", str(Path(balancer.__file__)), str(file)])
    for replica in replicas:
        replica.wait_until_ready()
    return replicas
