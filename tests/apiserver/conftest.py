"""Gives the tests one real cluster for the whole session, and each test a namespace of its own."""

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from installation.workload_crds import workload_crds
from localcluster import Cluster, chosen_cluster
from localcluster.for_tests import started
from webhook.kube.client import Client

from .installed import Installed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those come first that need no installation: a webhook that leads would write to the TenantQuotas they make."""
    here = Path(__file__).parent
    items.sort(key=lambda item: here in item.path.parents and "installed" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster that KUBECONFIG names, else a control plane of its own with kwok, of the version in $K8S."""
    with started(chosen_cluster(), pytestconfig) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    with new_namespace(cluster) as name:
        yield name


@contextmanager
def new_namespace(cluster: Cluster) -> Iterator[str]:
    """A new namespace that takes pods at once, whoever makes its ServiceAccount; deleted afterwards without waiting."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
    ]
    # Applied by the server, for the controller manager may make the ServiceAccount between the two.
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "--server-side")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


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


@pytest.fixture
def node(installed: Installed, namespace: str) -> Iterator[str]:
    """A node of 4 GPUs that nobody else's pods ask for."""
    name = f"node-{namespace}"
    installed.cluster.add_node(name, gpus=4)
    yield name
    installed.cluster.kubectl("delete", "node", name, "--ignore-not-found")
