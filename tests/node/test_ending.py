"""The end of a real node leaves nothing behind on the machine, in order or not."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from installation.helm import ROOT
from localcluster.node import NodeCluster
from localcluster.node.components import PAUSE_IMAGE
from localcluster.waiting import wait_until

pytestmark = [pytest.mark.node, pytest.mark.release, pytest.mark.usefixtures("machine")]

SECONDS = 120
RUNS_UNTIL_KILLED = """\
import time
from localcluster.node import NodeCluster
from tests.node.test_ending import run_a_pod
with NodeCluster() as cluster:
    print(cluster.folder, cluster.name, run_a_pod(cluster), flush=True)
    time.sleep(600)
"""


def processes_of(folder: Path) -> list[str]:
    """The command lines that name a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_text())
        except OSError:
            continue
    return [line.replace("\0", " ") for line in found if str(folder) in line]


def run_a_pod(cluster: NodeCluster) -> str:
    """Have a container run on it; return the container's id."""
    cluster.kubectl("run", "one", f"--image={PAUSE_IMAGE}")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/one", f"--timeout={SECONDS - 10}s")
    wanted = "--output=jsonpath={.status.containerStatuses[0].containerID}"
    return cluster.kubectl("get", "pod", "one", wanted).stdout.removeprefix("containerd://")


def cables(name: str) -> list[Path]:
    """Return this machine's end of a node's cable."""
    return list(Path("/sys/class/net").glob(name))


def cgroups(container: str) -> list[Path]:
    """Return this machine's cgroups of a container."""
    return [each for below in (".", "*") for each in Path("/sys/fs/cgroup").glob(f"{below}/k8s.io/{container}")]


def test_two_nodes_run_beside_each_other_and_leave_nothing() -> None:
    with NodeCluster() as one, NodeCluster() as other:
        assert one.address != other.address
        folders, names = [one.folder, other.folder], [one.name, other.name]
        containers = [run_a_pod(one), run_a_pod(other)]
        assert all(map(cables, names))
        assert all(map(cgroups, containers))
        for cluster in (one, other):
            assert cluster.kubectl("get", "nodes", "--output=name").stdout == "node/node-0\n"
    assert not any(map(cables, names))
    assert not any(map(cgroups, containers))
    assert not any(map(processes_of, folders))
    assert not any(folder.exists() for folder in folders)


def test_a_killed_parent_takes_the_node_with_it() -> None:
    command = [sys.executable, "-c", RUNS_UNTIL_KILLED]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        try:
            assert parent.stdout
            folder, name, container = parent.stdout.readline().split()
            assert processes_of(Path(folder))
            assert cables(name)
            assert cgroups(container)
        finally:
            parent.kill()
    wait_until(lambda: not processes_of(Path(folder)), SECONDS, "the end of the node's processes", pause=0.5)
    assert not Path(folder).exists()
    assert not cgroups(container)
    wait_until(lambda: not cables(name), SECONDS, "the end of its cable", pause=0.5)


def test_ctrl_c_ends_the_demonstration_in_order() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "demonstration", f"{folder}/figures.json"]
        environment = {**os.environ, "TMPDIR": folder}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as demonstration:
            assert demonstration.stdout
            assert any("asks for the 4 GPUs" in line for line in demonstration.stdout)
            assert processes_of(Path(folder))
            demonstration.send_signal(signal.SIGINT)
        assert demonstration.returncode == 130
        assert not processes_of(Path(folder))
        assert not list(Path(folder).iterdir())
