"""Speaks with a node's containerd through its own command, ctr."""

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localcluster.node.packages import NodeError


@dataclass(frozen=True)
class Containerd:
    """The containerd that listens on a socket, with the containers of its kubelet (in the namespace k8s.io)."""

    ctr: str
    socket: Path

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of ctr."""
        return [self.ctr, f"--address={self.socket}", "--namespace=k8s.io", *arguments]

    def answers(self) -> bool:
        """Return True once containerd answers."""
        try:
            self._ctr("version")
        except NodeError:
            return False
        return True

    def import_image(self, image: Path) -> None:
        """Import an image archive; NodeError with ctr's message."""
        self._ctr("images", "import", "--no-unpack", str(image))

    def kill_all(self) -> None:
        """Kill every process of every container; their states stay."""
        for container in self._ctr("tasks", "list", "--quiet").split():
            with suppress(NodeError):  # it may have ended by itself
                self.kill(container)

    def kill(self, container: str) -> None:
        """Kill every process of one container; NodeError if it runs no more."""
        self._ctr("tasks", "kill", "--signal=SIGKILL", "--all", container)

    def _ctr(self, *arguments: str) -> str:
        run = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if run.returncode:
            raise NodeError(f"ctr {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout
