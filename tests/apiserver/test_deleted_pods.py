"""The time at which a deleted pod gives back its quota, on a real API server: at its end, or at its deletion."""

from collections.abc import Iterator

import pytest

from localcluster import Result
from tests.builders.nodes import quiet_node

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

NOBODYS_NODE = "node-without-a-kubelet"
"""A pod bound to it stays in deletion for its whole grace, as one that saves."""


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of 2 GPUs."""
    with installed.tenant_for("ending", namespace, quotas=[{"gpus": "2"}]) as name:
        yield name


def saving(name: str) -> Tree:
    return gpu_pod(name, 2, tier="gpu-batch", nodeName=NOBODYS_NODE, terminationGracePeriodSeconds=300)


def test_a_deleted_pod_counts_until_it_has_ended_or_not_at_all(
    installed: Installed, namespace: str, tenant: str
) -> None:
    assert installed.create(saving("old"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the pod in the status")
    installed.api.delete("pod/old", namespace=namespace, wait=False)
    assert "deletionTimestamp" in installed.get("pod/old", namespace)["metadata"]
    assert "the total is at 2 of 2 GPUs" in installed.create(saving("next"), namespace).stderr

    with installed.policy_with(quotaReleaseStrategy="Terminating"):
        installed.eventually(lambda: installed.usage(tenant) == "total 0/2", "the pod that is ending already")
        assert installed.create(saving("next"), namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the next pod alone")
        installed.api.delete("pod/next", namespace=namespace, wait=False)
        installed.eventually(lambda: installed.create(saving("third"), namespace).code == 0, "room at the deletion")

    installed.eventually(lambda: installed.usage(tenant) == "total 6/2", "all three, two of which are ending")


def on_a_quiet_node(name: str, node: str, tier: str, owner: Tree | None = None, grace: int = 30, **limits: str) -> Tree:
    """A pod that waits for that node, whatever its taints."""
    anywhere = [{"operator": "Exists"}]
    pod = gpu_pod(name, tier=tier, node=node, terminationGracePeriodSeconds=grace, tolerations=anywhere)
    pod["spec"]["containers"][0]["resources"] = {"limits": limits}
    pod["metadata"]["ownerReferences"] = [owner] if owner else []
    return pod


def test_who_evicts_his_own_pods_holds_no_more_for_days(installed: Installed, namespace: str, tenant: str) -> None:
    node = f"quiet-{namespace}"
    installed.eventually(lambda: installed.usage(tenant) == "total 0/2", "nothing")
    installed.cluster.kubectl(
        "create", "rolebinding", "mallory", "--clusterrole=edit", "--user=mallory", f"--namespace={namespace}"
    )
    installed.create(quiet_node(node), namespace)
    installed.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}}, namespace)
    uid = installed.get("configmap/any", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "any", "uid": uid, "controller": True}
    one = {"nvidia.com/gpu": "1", "cpu": "1"}

    def create(pod: Tree) -> Result:
        return installed.create(pod, namespace, user="mallory")

    def owned(name: str) -> Tree:
        return installed.get(f"pod/{name}", namespace)

    for name, grace in (("days", 1_000_000), ("minutes", 600)):
        assert create(on_a_quiet_node(name, node, "gpu-batch", owner, grace, **one)).code == 0
    installed.eventually(lambda: all("nodeName" in owned(each)["spec"] for each in ("days", "minutes")), "their node")
    assert create(on_a_quiet_node("bully", node, "gpu-serving", cpu="2")).code == 0
    evicted = "both to be evicted"
    installed.eventually(
        lambda: all("deletionTimestamp" in owned(each)["metadata"] for each in ("days", "minutes")), evicted
    )

    replacement, more = (on_a_quiet_node(name, node, "gpu-batch", owner, **one) for name in ("heir", "more"))
    installed.eventually(lambda: create(replacement).code == 0, "the place of the one that ends soon")
    assert "the total is at 2 of 2 GPUs" in create(more).stderr
    installed.api.delete(f"node/{node}")
