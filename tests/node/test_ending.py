"""The end of a real node leaves nothing behind on the machine, in order or not."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from localcluster.for_tests import missing
from localcluster.installation import ROOT
from localcluster.node import NodeCluster, NodeError
from localcluster.node.packages import have_packages
from localcluster.waiting import wait_until

pytestmark = pytest.mark.node

SECONDS = 120
RUNS_UNTIL_KILLED = """\
import time
from localcluster.node import NodeCluster
with NodeCluster() as cluster:
    print(cluster.folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _can_run_nodes() -> None:
    try:
        have_packages()
    except NodeError as error:
        missing(str(error))


def processes_of(folder: Path) -> list[str]:
    """The command lines that name a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_text())
        except OSError:
            continue
    return [line.replace("\0", " ") for line in found if str(folder) in line]


def cables() -> set[str]:
    """The machine's ends of the nodes' cables."""
    return {each.name for each in Path("/sys/class/net").glob("gt-*")}


def cgroups() -> set[str]:
    """The nodes' cgroups."""
    return {each.name for pattern in ("gt-*", "*/gt-*") for each in Path("/sys/fs/cgroup").glob(pattern)}


def test_two_nodes_run_beside_each_other_and_leave_nothing() -> None:
    before = cables(), cgroups()
    with NodeCluster() as one, NodeCluster() as other:
        assert one.address != other.address
        assert len(cables() - before[0]) == 2
        folders = [one.folder, other.folder]
        for cluster in (one, other):
            assert cluster.kubectl("get", "nodes", "--output=name").stdout == "node/node-0\n"
    assert (cables(), cgroups()) == before
    assert not [line for folder in folders for line in processes_of(folder)]
    assert not any(folder.exists() for folder in folders)


def test_a_killed_parent_takes_the_node_with_it() -> None:
    before = cables()
    command = [sys.executable, "-c", RUNS_UNTIL_KILLED]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout
        folder = Path(parent.stdout.readline().strip())
        assert processes_of(folder)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes_of(folder), SECONDS, "the end of the node's processes", pause=0.5)
    wait_until(lambda: not folder.exists(), SECONDS, "the end of its folder", pause=0.5)
    assert cables() == before


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
