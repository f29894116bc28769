"""Claims that become others after a pod's admission: the pod is counted by what it gets, and above its quota shown so.

Pods are admitted before their ResourceClaims are made, and a claim that nobody uses yet may be deleted and made anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from localcluster import Cluster, ControlPlane

from .installed import Installed, Tree, gpu_pod
from .test_resource_claims import claiming, devices, template

pytestmark = pytest.mark.apiserver


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of two GPUs in the test's namespace."""
    name = f"changed-{namespace}"
    installed.tenant(name, namespace, quotas=[{"gpus": "2"}])
    yield name
    installed.cluster.kubectl("delete", "tenantquota", name)


@contextmanager
def no_claims_made(cluster: Cluster) -> Iterator[None]:
    """The controller manager, which makes claims of templates, is away. Afterwards it knows what is there then."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip("the controller manager of this cluster can't be stopped")
    manager = cluster.processes.named("kube-controller-manager")
    cluster.processes.end(manager)
    try:
        yield
    finally:
        cluster.processes.start(manager.name, manager.command)


def claim(name: str, count: int) -> Tree:
    metadata = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return {**metadata, "spec": devices(count)}


def ready(installed: Installed, tenant: str) -> str:
    path = (
        '-o=jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}'
    )
    return str(installed.cluster.kubectl("get", "tenantquota", tenant, path).stdout)


def delete(installed: Installed, what: str, namespace: str) -> None:
    installed.cluster.kubectl("delete", what, f"--namespace={namespace}")


def test_a_template_that_is_swapped_before_the_claim_is_made(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(template("gpus", 1), namespace).code == 0
    with no_claims_made(installed.cluster):
        assert installed.create(claiming("modest", resourceClaimTemplateName="gpus"), namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "total 1/2", "the GPU that it was admitted with")
        delete(installed, "resourceclaimtemplate/gpus", namespace)
        assert installed.create(template("gpus", 8), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 8/2", "the GPUs of the claim that was made")
    over = "OverQuota: the total is at 8 of 2; nothing is evicted, and new pods that count there are refused"
    installed.eventually(lambda: ready(installed, tenant) == over, "the condition")
    assert "the total is at 8 of 2 GPUs" in installed.create(gpu_pod("next"), namespace).stderr


@pytest.mark.usefixtures("tenant")
def test_a_template_that_is_swapped_afterwards_changes_nothing(installed: Installed, namespace: str) -> None:
    assert installed.create(template("gpus", 1), namespace).code == 0
    assert installed.create(claiming("modest", resourceClaimTemplateName="gpus"), namespace).code == 0
    installed.eventually(
        lambda: "resourceClaimStatuses" in installed.get("pod/modest", namespace)["status"], "the claim that is made"
    )
    delete(installed, "resourceclaimtemplate/gpus", namespace)
    assert installed.create(template("gpus", 8), namespace).code == 0
    installed.kill()
    installed.restart()
    full = "the total is at 1 of 2 GPUs; this pod asks for 2"
    installed.eventually(lambda: full in installed.create(gpu_pod("next", 2), namespace).stderr, "one GPU in use")


def test_a_claim_that_is_made_anew_with_more_devices(installed: Installed, namespace: str, tenant: str) -> None:
    """No event of the pod tells of it."""
    assert installed.create(claim("mine", 1), namespace).code == 0
    assert installed.create(claiming("waits", resourceClaimName="mine"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 1/2", "the claim in the status")
    delete(installed, "resourceclaim/mine", namespace)
    assert installed.create(claim("mine", 5), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 5/2", "the new claim")
    installed.eventually(
        lambda: ready(installed, tenant).startswith("OverQuota: the total is at 5 of 2"), "the condition"
    )


def test_a_claim_that_is_made_after_its_pod(installed: Installed, namespace: str, tenant: str) -> None:
    """Enforce lets no such pod in; but one may be there from before."""
    installed.upgrade(mode="Warn")
    try:
        assert installed.create(claiming("early", resourceClaimName="late"), namespace).code == 0
    finally:
        installed.upgrade()
    assert installed.create(claim("late", 5), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 5/2", "the claim")


def test_while_a_claim_is_gone_its_pod_counts_as_before(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(claim("mine", 2), namespace).code == 0
    assert installed.create(claiming("waits", resourceClaimName="mine"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the claim in the status")
    delete(installed, "resourceclaim/mine", namespace)
    installed.cluster.kubectl("annotate", "pod/waits", f"--namespace={namespace}", "example.com/event=one")
    installed.eventually(lambda: "claims not counted" in installed.log(), "the pod's event")
    refused = installed.create(gpu_pod("next"), namespace).stderr
    assert "the total is at 2 of 2 GPUs; this pod asks for 1" in refused
    assert installed.usage(tenant) == "total 2/2"
