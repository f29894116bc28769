"""One training pod and its end: created, trained a little, ended in some way, and what was seen of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, keeping_data, publish_code
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

SECONDS = 90
DEAF = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
pathlib.Path("/data/steps").write_text("{}\\n")
time.sleep(3600)
"""
"""A program that ends at SIGTERM and knows nothing of a hook."""

LISTENS_IN_VAIN = "import pathlib\npathlib.Path('/run/gpu-tiers/listening').touch()\n" + DEAF
"""One that announces itself and never answers."""


@dataclass(frozen=True)
class End:
    """How a pod ended."""

    seconds: float
    exit_codes: set[int]
    events: list[str]


def run_and_end(
    node: NodeCluster,
    namespace: str,
    pod: Tree,
    folder: Path,
    end: Callable[[str], object],
    prints: Sequence[str] = ("steps",),
) -> End:
    """Create it, wait until each program in it has begun to print, call `end` with its name, see it go."""
    publish_code(node, namespace)
    watched = Watched(node, namespace)
    name, printed = pod["metadata"]["name"], [folder / each for each in prints]
    try:
        create(node, namespace, keeping_data(pod, folder))
        node.kubectl(
            "wait", "--for=condition=Ready", f"pod/{name}", f"--namespace={namespace}", f"--timeout={SECONDS}s"
        )
        wait_until(lambda: all(map(has_words, printed)), SECONDS, "the first words of each program")
        found = node.kubectl("get", "pod", name, f"--namespace={namespace}", "--output=json").json()
        since = time.monotonic()
        end(name)
        node.kubectl("wait", "--for=delete", f"pod/{name}", f"--namespace={namespace}", f"--timeout={SECONDS}s")
        uid = found["metadata"]["uid"]
        return End(time.monotonic() - since, watched.exit_codes(uid), reasons(node, namespace, uid))
    finally:
        watched.end()


def has_words(file: Path) -> bool:
    """Whether anything was printed to it."""
    return file.exists() and file.stat().st_size > 0
