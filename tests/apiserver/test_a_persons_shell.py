"""Settings of a person's shell reach no test, and no test touches a person's cluster without being asked."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from installation.helm import helm
from localcluster import Cluster, ClusterError, ControlPlane, ExistingCluster, chosen_cluster, refuse_real_nodes
from tests.unit.test_environment import hostile
from webhook.kube.client import Client, path

pytestmark = pytest.mark.apiserver


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set a shell that names a cluster that is gone and proxies that are closed."""
    for name, value in hostile(tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def somebodys(cluster: Cluster) -> Iterator[ExistingCluster]:
    """A cluster with a node that no kwok answers for."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "dgx-7"}}
    cluster.apply(json.dumps(node))
    yield ExistingCluster(cluster.kubeconfig)
    cluster.api.delete("node/dgx-7")


@pytest.mark.usefixtures("shell")
async def test_kubectl_helm_and_our_client_ask_the_cluster_that_is_named(cluster: Cluster) -> None:
    assert cluster.kubectl("get", "namespace", "default", "-o=name").stdout == "namespace/default\n"
    assert "default" not in helm(cluster, "list", "--all-namespaces", "--output=json")
    async with await Client.connect(cluster.kubeconfig) as client:
        assert (await client.get(path("v1", "namespaces", name="default")))["metadata"]["name"] == "default"


def test_the_tests_cluster_is_named_by_a_variable_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/a/persons")
    assert isinstance(chosen_cluster(), ControlPlane)
    monkeypatch.setenv("GPU_TIERS_TEST_CLUSTER", "/for/tests")
    named = chosen_cluster()
    assert isinstance(named, ExistingCluster)
    assert named.kubeconfig == Path("/for/tests")


def test_real_nodes_are_refused_until_their_cluster_is_confirmed_by_name(
    somebodys: ExistingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterError, match=r"real nodes \(dgx-7\).* set GPU_TIERS_TEST_CLUSTER_CONFIRMED=gpu-tiers,"):
        refuse_real_nodes(somebodys)
    monkeypatch.setenv("GPU_TIERS_TEST_CLUSTER_CONFIRMED", "another")
    with pytest.raises(ClusterError):
        refuse_real_nodes(somebodys)
    monkeypatch.setenv("GPU_TIERS_TEST_CLUSTER_CONFIRMED", "gpu-tiers")
    refuse_real_nodes(somebodys)


def test_fake_nodes_need_no_confirmation(cluster: Cluster, namespace: str) -> None:
    assert "GPU_TIERS_TEST_CLUSTER_CONFIRMED" not in os.environ
    cluster.add_node(f"fake-{namespace}")
    refuse_real_nodes(cluster)
    cluster.api.delete(f"node/fake-{namespace}")
