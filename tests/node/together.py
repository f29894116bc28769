"""Runs pods side by side: each is created, deleted once its program runs, and seen to its end. Judges nothing."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from demonstration.preemption import GPUS
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, keeping_data, publish_code
from localcluster import Result
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .one_pod import has_words

PROGRAMS = Path(__file__).with_name("programs")
SECONDS = 180
"""For what takes seconds on an idle machine."""


@dataclass(frozen=True)
class Seen:
    """A pod as the API server stored it, what its programs wrote, how it ended, and its events: some come late."""

    pod: Tree
    journal: list[str]
    exit_codes: set[int]
    events: Callable[[], list[str]]


class Together:
    """The pods of a module, in one namespace, each with a folder of its own and a GPU; by name."""

    def __init__(self, node: NodeCluster, namespace: str, folder: Path, pods: Iterable[Tree]) -> None:
        self.node = node
        self.namespace = namespace
        self.folder = folder
        publish_programs(node, namespace)
        self._watched = Watched(node, namespace)
        self._pool = ThreadPoolExecutor(GPUS)
        self._seen: dict[str, Future[Seen]] = {name_of(pod): self._pool.submit(self._run, pod) for pod in pods}

    def __getitem__(self, name: str) -> Seen:
        return self._seen[name].result()

    def end(self) -> None:
        """Wait for all of them."""
        self._pool.shutdown(cancel_futures=True)
        self._watched.end()

    def _run(self, pod: Tree) -> Seen:
        name = name_of(pod)
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(0o777)  # some programs are not root
        create(self.node, self.namespace, keeping_data(pod, folder))
        self._wait(name, "condition=Ready")
        if "readinessProbe" not in pod["spec"]["containers"][0]:
            wait_until(lambda: has_words(folder / "journal"), SECONDS, f"the first words of {name}")
        stored = self._kubectl("get", "pod", name, "--output=json").json()
        self._kubectl("delete", "pod", name, "--wait=false")
        self._wait(name, "delete")
        uid = stored["metadata"]["uid"]
        journal = (folder / "journal").read_text().splitlines()
        events = partial(reasons, self.node, self.namespace, uid)
        return Seen(stored, journal, self._watched.exit_codes(uid), events)

    def _wait(self, name: str, what: str) -> None:
        self._kubectl("wait", f"--for={what}", f"pod/{name}", f"--timeout={SECONDS}s")

    def _kubectl(self, *arguments: str) -> Result:
        return self.node.kubectl(*arguments, f"--namespace={self.namespace}")


def publish_programs(node: NodeCluster, namespace: str) -> None:
    """Make them known to the pods as /code, beside the example's two files."""
    publish_code(node, namespace, **{each.name: each.read_text() for each in PROGRAMS.glob("*.py")})


def name_of(pod: Tree) -> str:
    name: str = pod["metadata"]["name"]
    return name
