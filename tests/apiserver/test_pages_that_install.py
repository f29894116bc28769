"""The commands of the pages that install gpu-tiers by Helm, change its release and take it away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import Cluster, ControlPlane
from tests.docs.shell import linked_project, run_as_printed
from tests.docs.test_quick_start import ON_A_CLUSTER_OF_YOUR_OWN, commands, of_page

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def own_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """Somebody's cluster without gpu-tiers, with a node on which pods seem to run."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip("the pages delete what a cluster that is in use may need")
    before = set(left(cluster))
    cluster.add_node("node-0")
    yield cluster
    cluster.kubectl("delete", "--wait=false", *sorted({*left(cluster)} - before))


def left(cluster: Cluster) -> list[str]:
    """Return the cluster-scoped objects that stay where a page doesn't mention them."""
    return cluster.kubectl("get", "nodes,namespaces,priorityclasses", "--output=name").stdout.split()


def test_the_quick_start_with_helm(own_cluster: Cluster) -> None:
    run_as_printed(commands("On your own cluster, with Helm"), own_cluster)


def test_the_pages_that_install_and_take_away(own_cluster: Cluster, tmp_path: Path) -> None:
    first, last = ON_A_CLUSTER_OF_YOUR_OWN
    folder = linked_project(tmp_path)
    run_as_printed(of_page(first), own_cluster, folder=folder)
    run_as_printed(of_page(last, by_helm=True), own_cluster, folder=folder)
