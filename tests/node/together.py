"""Runs pods side by side: each is created, ended once its programs run, and seen to its end."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from demonstration.preemption import GPUS
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, keeping_data, publish_code
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

PROGRAMS = Path(__file__).with_name("programs")
SECONDS = 180
"""For what takes seconds on an idle machine."""

Ending = Callable[[NodeCluster, str, str], object]
"""Begins the end of a pod in a namespace."""


def delete(node: NodeCluster, namespace: str, name: str) -> None:
    """Delete the pod as most pods end."""
    node.api.delete(f"pod/{name}", namespace=namespace, wait=False)


@dataclass(frozen=True)
class Planned:
    """A pod, how it is ended, and the files that its programs write to once they run."""

    pod: Tree
    end: Ending = delete
    prints: Sequence[str] = ("journal",)

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


@dataclass(frozen=True)
class Seen:
    """A pod as the API server stored it, its folder, how it ended and how long that took; some events come late."""

    pod: Tree
    folder: Path
    exit_codes: set[int]
    seconds: float
    events: Callable[[], list[str]]

    @property
    def journal(self) -> list[str]:
        """Return what the pod's programs wrote."""
        return (self.folder / "journal").read_text().splitlines()


class Together:
    """The pods of a module, in one namespace, each with a folder of its own and a GPU; by name."""

    def __init__(self, node: NodeCluster, namespace: str, folder: Path, pods: Iterable[Planned]) -> None:
        self.node = node
        self.namespace = namespace
        self.folder = folder
        publish_programs(node, namespace)
        self._watched = Watched(node, namespace)
        self._pool = ThreadPoolExecutor(GPUS)
        self._seen: dict[str, Future[Seen]] = {each.name: self._pool.submit(self._run, each) for each in pods}

    def __getitem__(self, name: str) -> Seen:
        return self._seen[name].result()

    def end(self) -> None:
        """Wait for all of them."""
        self._pool.shutdown(cancel_futures=True)
        self._watched.end()

    def _run(self, planned: Planned) -> Seen:
        name = planned.name
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(0o777)  # some programs are not root
        create(self.node, self.namespace, keeping_data(planned.pod, folder))
        self.node.api.wait_for("Ready", f"pod/{name}", namespace=self.namespace)
        wait_until(lambda: all(has_words(folder / each) for each in planned.prints), SECONDS, f"words of {name}")
        stored = self.node.api.get(f"pod/{name}", self.namespace)
        since = time.monotonic()
        planned.end(self.node, self.namespace, name)
        wait_until(lambda: not self.node.api.has(f"pod/{name}", self.namespace), SECONDS, f"the end of {name}")
        seconds, uid = time.monotonic() - since, stored["metadata"]["uid"]
        events = partial(reasons, self.node, self.namespace, uid)
        wait_until(lambda: self._watched.has_gone(uid), SECONDS, f"the last state of {name}")
        return Seen(stored, folder, self._watched.exit_codes(uid), seconds, events)


def publish_programs(node: NodeCluster, namespace: str) -> None:
    """Make them known to the pods as /code, beside the example's two files."""
    publish_code(node, namespace, **{each.name: each.read_text() for each in PROGRAMS.glob("*.py")})


def has_words(file: Path) -> bool:
    """Return whether anything was printed to the file."""
    return file.exists() and file.stat().st_size > 0
