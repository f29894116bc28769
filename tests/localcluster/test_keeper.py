"""`python -m localcluster up` and `down`: a cluster that outlives the command that started it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import ExistingCluster
from localcluster.fake_nodes import NODES
from tests.localcluster.commands import Commands, kubeconfig

pytestmark = [pytest.mark.apiserver, pytest.mark.release]


@pytest.fixture
def commands(tmp_path: Path, minor: str) -> Iterator[Commands]:
    commands = Commands("localcluster", tmp_path, minor)
    yield commands
    commands.run("down")


def test_a_cluster_stays_until_it_is_taken_down(commands: Commands, tmp_path: Path, minor: str) -> None:
    first = commands.run("up")
    assert kubeconfig(first) == tmp_path / "cluster" / "control-plane" / "admin.kubeconfig"
    again = commands.run("up")
    assert again.stdout == first.stdout
    assert "running already" in again.stderr

    with ExistingCluster(kubeconfig(first), minor) as cluster:
        assert cluster.kubectl("get", "nodes", "-o", "name").stdout.split() == [f"node/{name}" for name in NODES]
        cluster.add_node("one-more", gpus=2)

    assert "the cluster is gone" in commands.run("down").stderr
    assert not (tmp_path / "cluster" / "control-plane").exists()
    assert "no cluster is running" in commands.run("down").stderr
