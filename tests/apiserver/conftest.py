"""Gives the tests one real cluster for the whole session, and each test a namespace of its own."""

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from installation.readiness import wait_for_webhook
from installation.workload_crds import add_kinds
from localcluster import Cluster, ControlPlane, chosen_cluster, refuse_real_nodes
from localcluster.for_tests import started
from localcluster.ports import free_ports
from localcluster.versions import DEFAULT_KUBERNETES
from webhook.kube.client import Client

from .client_certificates import make_authority
from .faults.run import bare_plane
from .installed import Installed
from .queue import QueueingTenant

NODE_SELECTORS = "--enable-admission-plugins=PodNodeSelector"
"""Kubernetes leaves that plugin out. It changes nothing in a namespace without its annotation."""

RUNNING = (
    *("cronjobs", "jobs", "deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers"),
    *("podgroups.scheduling.k8s.io", "resourceclaimtemplates", "resourceclaims", "events"),
)
"""What makes pods or holds devices, and what was said of it."""

INSTALLING = ("installed", "few_seats", "three")
"""Fixtures after which a cluster has the chart, in the order in which they leave it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that need no installation first, because a leading webhook would write to their TenantQuotas."""
    items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Return the rank of a test of this folder; others stay where they are."""
    uses = getattr(item, "fixturenames", ()) if Path(__file__).parent in item.path.parents else ()
    return next((number for number, name in enumerate(INSTALLING, start=1) if name in uses), 0)


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a CA of clients and their certificates."""
    return tmp_path_factory.mktemp("authority")


@pytest.fixture(scope="package")
def cluster(authority: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster that GPU_TIERS_TEST_CLUSTER names, else a control plane of its own with kwok, of $K8S's version.

    An API server of its own shows webhooks that ask for one a client certificate, and writes the node selectors of
    namespaces on pods.
    """
    with started(chosen_cluster(make_authority(authority), NODE_SELECTORS), pytestconfig) as running:
        refuse_real_nodes(running)
        yield running


@pytest.fixture(scope="package")
def bare(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """etcd and an API server of the tests' own in any case, which is restarted as they like."""
    with started(bare_plane(os.environ.get("K8S") or DEFAULT_KUBERNETES), pytestconfig) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    with new_namespace(cluster) as name:
        yield name


@contextmanager
def new_namespace(cluster: Cluster) -> Iterator[str]:
    """A new namespace that takes pods at once, whoever makes its ServiceAccount; afterwards nothing runs in it.

    In a cluster that somebody named it is deleted. One that ends with the tests keeps it, without what makes pods or
    holds devices: a deletion takes two requests for each kind, which were half of all that the API server got.
    """
    name, api = f"test-{uuid.uuid4().hex[:8]}", cluster.api
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # Applied by the server, for the controller manager may have made it by now.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    api.apply(account)
    yield name
    if isinstance(cluster, ControlPlane):
        api.delete(*RUNNING, namespace=name, wait=False)
    else:
        api.delete(f"namespace/{name}", wait=False)
    api.delete("pods", namespace=name, seconds=0, wait=False)  # no kubelet ends those whose node is gone


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """The webhook's own client, as the administrator."""
    async with await Client.connect(cluster.kubeconfig) as connected:
        yield connected


@pytest.fixture(scope="package")
def installed(cluster: Cluster) -> Iterator[Installed]:
    """The chart and the webhook of this checkout in Enforce, with the examples' policy."""
    add_kinds(cluster)
    webhook = Installed(cluster)
    yield webhook
    webhook.end()


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of two GPUs in the test's namespace, by a name of its own: events outlive it."""
    with installed.tenant_for(f"of-{namespace}", namespace, quotas=[{"gpus": "2"}]) as name:
        yield name


@pytest.fixture
def node(installed: Installed, namespace: str) -> Iterator[str]:
    """A node of 4 GPUs that nobody else's pods ask for."""
    name = f"node-{namespace}"
    installed.cluster.add_node(name, gpus=4)
    yield name
    installed.api.delete(f"node/{name}")


@pytest.fixture(scope="module")
def wide(installed: Installed) -> Iterator[str]:
    """A node with more GPUs than any of these tenants may use."""
    installed.cluster.add_node("wide", gpus=64)
    yield "wide"
    installed.api.delete("node/wide")


@pytest.fixture(scope="module")
def preempting(installed: Installed) -> Iterator[Installed]:
    with installed.policy_with(preemption={"dra": "On"}):
        yield installed


@pytest.fixture(scope="module")
def hearing(installed: Installed) -> Iterator[Installed]:
    """The webhook with a port for reports."""
    (port,) = free_ports(1)
    installed.change_leader(f"--reports-port={port}")
    wait_for_webhook(installed.cluster)
    yield installed
    installed.change_leader()
    wait_for_webhook(installed.cluster)


@pytest.fixture
def line(installed: Installed, wide: str) -> Iterator[QueueingTenant]:
    with new_namespace(installed.cluster) as namespace:
        quotas = [{"gpus": 8}]
        with installed.tenant_for(f"hold-{namespace}", namespace, quotas=quotas, onExceed="Hold"):
            yield QueueingTenant(installed, namespace, wide)


@pytest.fixture
def version(installed: Installed) -> str:
    """The version of the PodGroup API that this API server serves."""
    known = installed.cluster.kubectl("api-versions").stdout.split()
    return next(each for each in ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2") if each in known)
