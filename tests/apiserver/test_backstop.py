"""A tenant's rows as ResourceQuotas on a real API server: they hold while gpu-tiers is away, and follow the tenant."""

import json
from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ROWS = [{"gpus": 4}, {"tier": "gpu-training", "gpus": 2}]
NAMES = ["gpu-tiers", "gpu-tiers-gpu-training"]


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of 4 GPUs, 2 of them for training, with a backstop."""
    name = f"backstop-{namespace}"
    with installed.tenant_for(name, namespace, quotas=ROWS, backstop="ResourceQuota") as name:
        eventually_named(installed, namespace, NAMES)
        yield name


def quotas(installed: Installed, namespace: str) -> dict[str, Tree]:
    return {each["metadata"]["name"]: each for each in installed.get("resourcequotas", namespace)["items"]}


def eventually_named(installed: Installed, namespace: str, names: list[str]) -> None:
    installed.eventually(lambda: sorted(quotas(installed, namespace)) == names, f"ResourceQuotas {names}")


def hard(installed: Installed, namespace: str, name: str = "gpu-tiers") -> str:
    return str(quotas(installed, namespace)[name]["spec"]["hard"]["requests.nvidia.com/gpu"])


def patch(installed: Installed, tenant: str, **spec: object) -> None:
    installed.api.patch(f"tenantquota/{tenant}", {"spec": spec})


def of_class(name: str, gpus: int) -> Tree:
    return gpu_pod(name, gpus, tier="gpu-training", priorityClassName="gpu-training")


def test_they_hold_while_gpu_tiers_is_away(installed: Installed, namespace: str, tenant: str) -> None:
    for name, rendered in quotas(installed, namespace).items():
        (owner,) = rendered["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("TenantQuota", tenant, True), name
        assert rendered["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "gpu-tiers", name
    installed.eventually(lambda: _counted(installed, namespace), "the quota controller's first count")
    installed.kill()
    try:
        with_policy(installed, "Ignore")
        assert installed.create(of_class("first", 2), namespace).code == 0
        refused = installed.create(of_class("second", 1), namespace).stderr
        assert "exceeded quota: gpu-tiers-gpu-training, requested: requests.nvidia.com/gpu=1" in refused
        assert "exceeded quota: gpu-tiers," in installed.create(gpu_pod("batch", 3), namespace).stderr
    finally:
        with_policy(installed, "Fail")
        installed.restart()


def _counted(installed: Installed, namespace: str) -> bool:
    found = quotas(installed, namespace).values()
    return all(each.get("status", {}).get("hard") == each["spec"]["hard"] for each in found)


def with_policy(installed: Installed, failure_policy: str) -> None:
    """Apply the policy as docs/break-glass.md describes it."""
    entry = {"name": "pods.validate.gpu-tiers.dev", "failurePolicy": failure_policy}
    patched = json.dumps({"webhooks": [entry]})
    installed.cluster.kubectl("patch", "validatingwebhookconfiguration", "zz-gpu-tiers", "-p", patched)


def test_they_follow_the_tenant(installed: Installed, namespace: str, tenant: str) -> None:
    patch(installed, tenant, quotas=[{"gpus": 2000}])
    eventually_named(installed, namespace, ["gpu-tiers"])
    installed.eventually(lambda: hard(installed, namespace) == "2k", "the new limit")
    installed.eventually(lambda: _counted(installed, namespace), "the quota controller's write, the last one")
    before = quotas(installed, namespace)["gpu-tiers"]["metadata"]["resourceVersion"]

    other = f"{namespace}-b"
    installed.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    selector = {"matchLabels": None, "matchExpressions": [_named(namespace, other)]}
    patch(installed, tenant, namespaceSelector=selector)
    eventually_named(installed, other, ["gpu-tiers"])
    assert quotas(installed, namespace)["gpu-tiers"]["metadata"]["resourceVersion"] == before, "nobody wrote it again"
    patch(installed, tenant, namespaceSelector={"matchExpressions": [_named(other)]})
    eventually_named(installed, namespace, [])
    assert list(quotas(installed, other)) == ["gpu-tiers"]

    installed.api.delete("resourcequota/gpu-tiers", namespace=other)
    eventually_named(installed, other, ["gpu-tiers"])
    patch(installed, tenant, backstop="None")
    eventually_named(installed, other, [])
    installed.api.delete(f"namespace/{other}", wait=False)


def _named(*namespaces: str) -> Tree:
    return {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}


def test_they_go_with_the_tenant(installed: Installed, namespace: str, tenant: str) -> None:
    installed.api.delete(f"tenantquota/{tenant}")
    eventually_named(installed, namespace, [])


def test_one_that_is_somebody_elses_is_left_alone(installed: Installed, namespace: str) -> None:
    theirs = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpu-tiers"}}
    assert installed.create({**theirs, "spec": {"hard": {"pods": "50"}}}, namespace).code == 0
    name = f"backstop-{namespace}"
    installed.tenant(name, namespace, quotas=ROWS, backstop="ResourceQuota")
    sentence = f"ResourceQuota/gpu-tiers in {namespace} is somebody else's, so the backstop lacks it"
    installed.eventually(lambda: sentence in installed.messages("default", f"involvedObject.name={name}"), "the event")
    eventually_named(installed, namespace, NAMES)
    installed.api.delete(f"tenantquota/{name}")
    eventually_named(installed, namespace, ["gpu-tiers"])
    assert quotas(installed, namespace)["gpu-tiers"]["spec"]["hard"] == {"pods": "50"}


@pytest.mark.usefixtures("tenant")
def test_where_nothing_is_enforced_none_is_rendered(installed: Installed, namespace: str) -> None:
    installed.upgrade(mode="Warn")
    try:
        eventually_named(installed, namespace, [])
        installed.api.label(f"namespace/{namespace}", {"gpu-tiers.dev/mode": "enforce"})
        eventually_named(installed, namespace, NAMES)
    finally:
        installed.upgrade()


def test_a_pod_that_a_resource_quota_refuses_gives_back_what_was_reserved(installed: Installed, namespace: str) -> None:
    """ResourceQuotas are asked after us: our yes stands until it is certain that no pod came of it."""
    name = f"refused-{namespace}"
    installed.tenant(name, namespace, quotas=[{"gpus": 2}])
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}}
    assert installed.create({**quota, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}, namespace).code == 0
    installed.eventually(lambda: _counted(installed, namespace), "the quota controller's first count")
    assert "exceeded quota: one" in installed.create(gpu_pod("two", 2), namespace).stderr
    installed.eventually(lambda: installed.usage(name) == "total 0/2 (+2 reserved)", "the reservation")
    assert "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("one"), namespace).stderr
    installed.eventually(lambda: installed.usage(name) == "total 0/2", "its end, after --create-timeout")
    assert installed.create(gpu_pod("one"), namespace).code == 0
    installed.api.delete(f"tenantquota/{name}")
