"""The times at which the node's containers started, got SIGTERM and ended, from containerd.

`ctr events` has all but the signals, which are in containerd's log.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from localcluster.node import NodeCluster
from localcluster.processes import Process

_EVENT = re.compile(r"^(\S+ \S+) \+0000 UTC \S+ (/tasks/\S+) (\{.*\})$", re.MULTILINE)
_SIGNAL = r'^time="(\S+)Z" .*msg="Stop container \\"{}\\" with signal'


class Containers:
    """The events of the node's containers, from now on."""

    def __init__(self, node: NodeCluster, name: str) -> None:
        self.node = node
        self.process: Process = node.processes.start(f"containers-{name}", node.ctr("events"))

    def end(self) -> None:
        """Stop listening."""
        self.node.processes.end(self.process)

    def hook_started(self, container: str) -> float | None:
        """Return the time of the first exec in a container: without probes that is the preStop handler."""
        return next((at for at, what in self._events("/tasks/exec-started") if what["container_id"] == container), None)

    def ended(self, container: str) -> float:
        """Return the time at which a container ended, with its first process; StopIteration if it runs."""
        return next(at for at, what in self._events("/tasks/exit") if what["id"] == container)

    def terminated(self, container: str) -> float | None:
        """Return the time of a container's SIGTERM; None if it got none."""
        log = (self.node.folder / "containerd.log").read_text(errors="replace")
        found = re.search(_SIGNAL.format(container), log, re.MULTILINE)
        return _time(found[1]) if found else None

    def _events(self, topic: str) -> Iterator[tuple[float, dict[str, str]]]:
        for found in _EVENT.finditer(self.process.log.read_text()):
            if found[2] == topic:
                yield _time(found[1]), json.loads(found[3])


def _time(text: str) -> float:
    """A time in UTC as Go writes it, in seconds of this machine's clock."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
