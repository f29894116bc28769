"""When a deleted pod gives back its quota, on a real API server: once it has ended, or as soon as it is deleted."""

from collections.abc import Iterator

import pytest

from installation.examples import example_policy

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

NOBODYS_NODE = "node-without-a-kubelet"
"""A pod bound to it stays in deletion for its whole grace, as one that saves."""


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of 2 GPUs."""
    installed.tenant("ending", namespace, quotas=[{"gpus": "2"}])
    yield "ending"
    installed.cluster.kubectl("delete", "tenantquota", "ending")
    installed.upgrade()


def saving(name: str) -> Tree:
    return gpu_pod(name, 2, tier="gpu-batch", nodeName=NOBODYS_NODE, terminationGracePeriodSeconds=300)


def test_a_deleted_pod_counts_until_it_has_ended_or_not_at_all(
    installed: Installed, namespace: str, tenant: str
) -> None:
    assert installed.create(saving("old"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the pod in the status")
    installed.cluster.kubectl("delete", "pod/old", f"--namespace={namespace}", "--wait=false")
    assert "deletionTimestamp" in installed.get("pod/old", namespace)["metadata"]
    assert "the total is at 2 of 2 GPUs" in installed.create(saving("next"), namespace).stderr

    installed.upgrade(policy=example_policy() | {"quotaReleaseStrategy": "Terminating"})
    installed.eventually(lambda: installed.usage(tenant) == "total 0/2", "the pod that is ending already")
    assert installed.create(saving("next"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the next pod alone")
    installed.cluster.kubectl("delete", "pod/next", f"--namespace={namespace}", "--wait=false")
    installed.eventually(lambda: installed.create(saving("third"), namespace).code == 0, "room at the deletion")

    installed.upgrade()
    installed.eventually(lambda: installed.usage(tenant) == "total 6/2", "all three, two of which are ending")
