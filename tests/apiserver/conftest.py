"""Gives the tests one real cluster for the whole session, and each test a namespace of its own."""

import json
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from installation.workload_crds import workload_crds
from localcluster import Cluster, ExistingCluster, chosen_cluster
from localcluster.for_tests import started
from webhook.kube.client import Client

from .installed import Installed


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster that KUBECONFIG names, else a control plane of its own with kwok, of the version in $K8S."""
    with started(chosen_cluster(), pytestconfig) as running:
        yield running


@pytest.fixture(scope="package")
def namespaces(cluster: Cluster) -> Iterator[list[str]]:
    """Those of the tests, deleted after all of them where the cluster outlives them: deleting keeps it busy."""
    names: list[str] = []
    yield names
    if names and isinstance(cluster, ExistingCluster):
        cluster.kubectl("delete", "namespace", *names, "--wait=false")


@pytest.fixture
def namespace(cluster: Cluster, namespaces: list[str]) -> str:
    """A new namespace that takes pods at once: its ServiceAccount is not waited for, whoever makes it first."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
    ]
    namespaces.append(name)
    # Applied by the server, for the controller manager may make the ServiceAccount between the two.
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "--server-side")
    return name


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """The webhook's own client, as the administrator."""
    async with await Client.connect(cluster.kubeconfig) as connected:
        yield connected


@pytest.fixture(scope="package")
def installed(cluster: Cluster) -> Iterator[Installed]:
    """The chart and the webhook of this checkout in Enforce, with the examples' policy."""
    cluster.apply(json.dumps(workload_crds()), "--server-side")
    webhook = Installed(cluster)
    yield webhook
    webhook.end()
