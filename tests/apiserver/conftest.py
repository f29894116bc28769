"""Gives the tests one real cluster for the whole session, and each test a namespace of its own."""

import json
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from localcluster import Cluster, chosen_cluster
from localcluster.for_tests import started
from localcluster.workload_crds import workload_crds
from webhook.kube.client import Client

from .installed import Installed


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster that KUBECONFIG names, else a control plane of its own with kwok, of the version in $K8S."""
    with started(chosen_cluster(), pytestconfig) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A new namespace that takes pods, deleted afterwards without waiting."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """The webhook's own client, as the administrator."""
    async with await Client.connect(cluster.kubeconfig) as connected:
        yield connected


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Iterator[Installed]:
    """The chart and the webhook of this checkout in Enforce, with the examples' policy."""
    cluster.apply(json.dumps(workload_crds()), "--server-side")
    webhook = Installed(cluster)
    yield webhook
    webhook.end()
