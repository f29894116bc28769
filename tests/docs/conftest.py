"""Gives the README's tests what its reader has: the cluster of `make cluster`, and an empty one."""

import os
from collections.abc import Iterator

import pytest

from localcluster import Cluster, ControlPlane
from localcluster.for_tests import started
from localcluster.up import fill
from localcluster.versions import DEFAULT_KUBERNETES


def new() -> ControlPlane:
    """Never the one that KUBECONFIG names: the README says what is in it."""
    return ControlPlane(os.environ.get("K8S") or DEFAULT_KUBERNETES)


@pytest.fixture(scope="module")
def made_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """What `make cluster` leaves running."""
    with started(new(), pytestconfig) as cluster:
        fill(cluster, bare=False)
        yield cluster


@pytest.fixture(scope="module")
def own_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Somebody's cluster without gpu-tiers, with a node on which pods seem to run."""
    with started(new(), pytestconfig) as cluster:
        cluster.add_node("node-0")
        yield cluster
