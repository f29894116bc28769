"""A real controller whose pods a ResourceQuota refuses reserves the GPUs of its pods once, however often it tries."""

from contextlib import ExitStack

import pytest

from .conftest import new_namespace
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

TRIES = {"Deployment": 6, "Job": 3}
"""Creates of one controller that were refused after us.

It waits 5 ms before the second, a Job's a second, then twice as long each time.
"""


def workload(kind: str, namespace: str, gpus: int) -> Tree:
    """A Deployment or a Job of one pod."""
    pod = gpu_pod("large", gpus, tier="gpu-batch")["spec"]
    labels = {"app": "large", "gpu-tiers.dev/tier": "gpu-batch"}
    metadata = {"name": "large", "namespace": namespace}
    if kind == "Job":
        template = {"metadata": {"labels": labels}, "spec": {**pod, "restartPolicy": "Never"}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "large"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def refusals(installed: Installed, namespace: str) -> list[Tree]:
    """The Events by which its controller tells of creates that failed."""
    return list(installed.api.get("events", namespace, fieldSelector="reason=FailedCreate")["items"])


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_all_tries_share_one_slot_and_another_namespace_gets_the_rest(
    installed: Installed, namespace: str, kind: str
) -> None:
    with new_namespace(installed.cluster) as other, ExitStack() as stack:
        either = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace, other]}
        allowed = {"quotas": [{"gpus": 10}], "namespaceSelector": {"matchExpressions": [either]}}
        stack.enter_context(installed.tenant_for(namespace, namespace, **allowed))
        none = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none"},
            "spec": {"hard": {"pods": 0}},
        }
        installed.api.create(none, namespace)
        assert installed.create(workload(kind, namespace, 8), namespace).code == 0

        # 1. It tries again and again, and each refusal names the ResourceQuota, which comes after us.
        installed.eventually(
            lambda: sum(each.get("count", 1) for each in refusals(installed, namespace)) >= TRIES[kind], "its tries"
        )
        assert all("exceeded quota: none" in each["message"] for each in refusals(installed, namespace))

        # 2. One slot holds all tries, so the rest of the tenant's GPUs is free.
        installed.eventually(lambda: installed.usage(namespace) == "total 0/10 (+8 reserved)", "one slot")
        assert installed.create(gpu_pod("rest", 2, tier="gpu-batch"), other).code == 0
        assert installed.create(gpu_pod("more", 1, tier="gpu-batch"), other).code != 0

        # 3. Once it may, its pod fills that slot.
        installed.api.delete("quota/none", namespace=namespace)
        installed.eventually(lambda: installed.usage(namespace) == "total 10/10", "its pod, in the slot")


def test_one_pod_that_is_missing_of_twenty_reserves_one_gpu(installed: Installed, namespace: str) -> None:
    with new_namespace(installed.cluster) as other, ExitStack() as stack:
        either = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace, other]}
        allowed = {"quotas": [{"gpus": 40}], "namespaceSelector": {"matchExpressions": [either]}}
        stack.enter_context(installed.tenant_for(namespace, namespace, **allowed))
        deployment = workload("Deployment", namespace, 1)
        deployment["spec"]["replicas"] = 20
        assert installed.create(deployment, namespace).code == 0
        installed.eventually(lambda: installed.usage(namespace) == "total 20/40", "its pods")

        # 1. One of its pods is deleted while a ResourceQuota has no room for the next one.
        metadata, spec = {"name": "nineteen"}, {"hard": {"pods": 19}}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
        installed.api.create(quota, namespace)
        first = installed.api.get("pods", namespace)["items"][0]["metadata"]["name"]
        installed.api.delete(f"pod/{first}", namespace=namespace)
        installed.eventually(
            lambda: sum(each.get("count", 1) for each in refusals(installed, namespace)) >= TRIES["Deployment"],
            "its tries",
        )
        installed.eventually(lambda: installed.usage(namespace) == "total 19/40 (+1 reserved)", "one slot")

        # 2. The rest is free for a Job in another namespace.
        job = workload("Job", other, 1)
        job["spec"] |= {"parallelism": 20, "completions": 20}
        assert installed.create(job, other).code == 0
