"""Gives the README's tests what its reader has: the cluster of `make cluster`."""

import os
from collections.abc import Iterator

import pytest

from localcluster import Cluster, ExistingCluster
from localcluster.binaries import BinaryError
from localcluster.for_tests import missing, started
from localcluster.go_toolchain import GoError
from localcluster.versions import DEFAULT_KUBERNETES
from tests.localcluster.commands import Commands, kubeconfig

MINOR = os.environ.get("K8S") or DEFAULT_KUBERNETES


@pytest.fixture(scope="package")
def made_cluster(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run `make cluster` with a cache of its own; the README says what is in it."""
    try:
        commands = Commands("installation", tmp_path_factory.mktemp("cache"), MINOR)
    except (BinaryError, GoError) as error:
        missing(f"no cluster: {error}")
    try:
        with started(ExistingCluster(kubeconfig(commands.run("up")), MINOR), pytestconfig) as cluster:
            yield cluster
    finally:
        commands.run("down")
