"""`python -m localcluster up` and `down`: a cluster that outlives the command that started it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import ExistingCluster
from localcluster.binaries import binaries, cache_folder, find
from localcluster.up import NODES
from localcluster.workload_crds import WORKLOAD_KINDS

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[2]


class Commands:
    """Runs the commands with a cache folder of the test's own, which has the binaries already."""

    def __init__(self, folder: Path, minor: str) -> None:
        for binary in binaries(minor).values():
            find(binary)
        (folder / "bin").symlink_to(cache_folder() / "bin")
        self._environment = {**os.environ, "GPU_TIERS_CACHE": str(folder), "K8S": minor}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "localcluster", *arguments]
        return subprocess.run(
            command, env=self._environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
        )


@pytest.fixture
def commands(tmp_path: Path, minor: str) -> Iterator[Commands]:
    commands = Commands(tmp_path, minor)
    yield commands
    commands.run("down")


def test_a_cluster_stays_until_it_is_taken_down(commands: Commands, tmp_path: Path, minor: str) -> None:
    first = commands.run("up", "--bare")
    assert first.stdout.splitlines()[-1] == f"export KUBECONFIG={tmp_path}/cluster/control-plane/admin.kubeconfig"
    again = commands.run("up", "--bare")
    assert again.stdout == first.stdout
    assert "running already" in again.stderr

    with ExistingCluster(Path(first.stdout.strip().partition("=")[2]), minor) as cluster:
        assert cluster.kubectl("get", "nodes", "-o", "name").stdout.split() == [f"node/{name}" for name in NODES]
        crds = cluster.kubectl("get", "crd", "-o", "name").stdout.split()
        expected = sorted(f"{row.plural}.{row.group}" for row in WORKLOAD_KINDS)
        assert [name.partition("/")[2] for name in crds] == expected
        cluster.apply(MPI_JOB)
        cluster.add_node("one-more", gpus=2)
        cluster.kubectl("get", "mpijobs.v1.kubeflow.org", "two-versions")

    assert "the cluster is gone" in commands.run("down").stderr
    assert not (tmp_path / "cluster" / "control-plane").exists()
    assert "no cluster is running" in commands.run("down").stderr


MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: two-versions, namespace: default}
spec: {slotsPerWorker: 8, mpiReplicaSpecs: {Worker: {replicas: 2}}}
"""
