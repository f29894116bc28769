"""Keeps one cluster running after the command that asked for it has ended. The caller fills it.

`up` starts a process of its own, the keeper, which holds a lock for as long as it lives; `down` writes a
file that has it stop. So no process is ever killed by an id that was read from a file.
"""

import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from localcluster.binaries import binaries, cache_folder, node_binaries, say
from localcluster.control_plane import ControlPlane
from localcluster.credentials import NODE
from localcluster.environment import without_a_persons
from localcluster.fake_nodes import GPUS_PER_NODE, NODES
from localcluster.node import NodeCluster
from localcluster.node.images import BASE_MINUTES, base_archive, python_image
from localcluster.node.packages import have_packages
from localcluster.parts import Part, have, of_binary
from localcluster.processes import ProcessError
from localcluster.waiting import wait_until

LOCK_SECONDS = 3
UP_SECONDS = 480
DOWN_SECONDS = 240
WATCH_SECONDS = 0.5
LOG_LINES = 30

Fill = Callable[[ControlPlane], None]


def state() -> Path:
    """Return the folder of the keeper's lock, log and other files, with its control plane below it."""
    folder = cache_folder() / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def prepare(minor: str, *, real: bool) -> None:
    """Make the missing parts, for a real node after its packages; NodeError, BinaryError or GoError if that fails."""
    if real:
        have_packages()
    have(parts(minor, real=real))


def parts(minor: str, *, real: bool) -> Iterator[Part]:
    """Yield the parts of a cluster of that minor version, with or without a real node."""
    yield from map(of_binary, binaries(minor).values())
    if real:
        yield from map(of_binary, node_binaries(minor).values())
        yield Part(BASE_MINUTES, base_archive().exists, python_image)


def up(minor: str, module: str, *options: str, real: bool) -> Path:
    """Start `python -m MODULE keep OPTIONS` if no keeper runs; return the kubeconfig once all in the cluster is ready.

    ProcessError if a keeper runs with other options, or ends (with the end of its log). TimeoutError after UP_SECONDS.
    """
    wanted = [f"--kubernetes={minor}", f"--node={'real' if real else 'fake'}", *options]
    if is_running():
        there = (state() / "asked").read_text().split()
        if there != wanted:
            asks = " ".join(each for each in wanted if each not in there)
            raise ProcessError(f"a cluster runs already, with {' '.join(there)}; stop it first to have {asks}")
        say("the cluster is running already")
        keeper = None
    else:
        say(f"starting a cluster of Kubernetes {minor}; log: {state() / 'keeper.log'}")
        keeper = start_keeper(module, wanted)
    wait_until(lambda: has_ended(keeper) or (state() / "ready").exists(), UP_SECONDS, "the cluster")
    if has_ended(keeper):
        log = (state() / "keeper.log").read_text(errors="replace").splitlines()[-LOG_LINES:]
        raise ProcessError("\n".join(["the cluster did not start:", *log]))
    return Path((state() / "ready").read_text())


def down() -> None:
    """Stop the cluster and wait until nothing of it runs; TimeoutError if it doesn't stop."""
    if not is_running():
        say("no cluster is running")
        return
    (state() / "stop").touch()
    wait_until(lambda: not is_running(), DOWN_SECONDS, "the end of the cluster")
    say("the cluster is gone")


def start_keeper(module: str, options: list[str]) -> subprocess.Popen[bytes]:
    """Start the keeper in a session of its own, so that it outlives the terminal."""
    for word in ("ready", "stop"):
        (state() / word).unlink(missing_ok=True)
    (state() / "asked").write_text(" ".join(options))
    with (state() / "keeper.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, "keep", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[1],
            env=without_a_persons(),
            start_new_session=True,
        )


def keep(minor: str, fill: Fill = lambda _: None, tend: Fill = lambda _: None, *, real: bool) -> None:
    """Be the keeper: hold the lock, run the control plane, fill it, and tend it until `down` or a SIGTERM.

    TimeoutError if another keeper has the lock, ProcessError if a part of the cluster ends.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (state() / "lock").open("w") as lock:
        wait_until(lambda: locks(lock, fcntl.LOCK_EX), LOCK_SECONDS, "the lock of another keeper")
        try:
            with running_cluster(minor, real=real) as cluster:
                fill(cluster)
                (state() / "ready").write_text(str(cluster.kubeconfig))
                stay(cluster, tend)
        finally:
            (state() / "ready").unlink(missing_ok=True)


@contextmanager
def running_cluster(minor: str, *, real: bool) -> Iterator[ControlPlane]:
    """Run the cluster asked for; the real node, which has an image with Python, is labelled as the first fake one."""
    folder = state() / "control-plane"
    if real:
        with NodeCluster(minor, folder=folder) as with_node:
            with_node.kubectl("label", "node", NODE, *(f"{key}={value}" for key, value in NODES["gpu-0"].items()))
            with_node.import_image(python_image())
            yield with_node
    else:
        with ControlPlane(minor, folder=folder) as cluster:
            for name, labels in NODES.items():
                cluster.add_node(name, gpus=GPUS_PER_NODE, labels=labels)
            yield cluster


def stay(cluster: ControlPlane, tend: Fill) -> None:
    """Call `tend` until `down`; ProcessError if a part of the cluster ends before that."""
    while not (state() / "stop").exists():
        cluster.processes.check()
        tend(cluster)
        time.sleep(WATCH_SECONDS)


def has_ended(keeper: subprocess.Popen[bytes] | None) -> bool:
    return keeper.poll() is not None if keeper else not is_running()


def is_running() -> bool:
    with (state() / "lock").open("a") as lock:
        return not locks(lock, fcntl.LOCK_SH)


def locks(handle: IO[str], kind: int) -> bool:
    """Take the lock if it is free."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
