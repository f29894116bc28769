"""A critical pod without GPUs: refused where a tenant has a ceiling, and nothing else in the cluster waits for it."""

import re

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ENTRY = "pods-priority.validate.gpu-tiers.dev"
SENTENCE = (
    "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant epsilon; "
    "a pod without GPUs may have a class of value 800 at most, or none. See TenantQuota/epsilon."
)


def critical_pod(name: str, node: str | None = None) -> Tree:
    return gpu_pod(name, 0, node=node, priorityClassName="system-node-critical")


def critical_daemonset(node: str) -> Tree:
    pod = critical_pod("x", node)
    template = {"metadata": {"labels": {"app": node}}, "spec": pod["spec"]}
    spec = {"selector": {"matchLabels": {"app": node}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": node}, "spec": spec}


def asked(installed: Installed) -> int:
    """How often the API server has asked by this entry."""
    metrics = installed.cluster.kubectl("get", "--raw=/metrics").stdout
    counts = re.findall(rf'apiserver_admission_webhook_request_total\{{.*name="{re.escape(ENTRY)}".*\}} (\d+)', metrics)
    return sum(map(int, counts))


def test_it_is_refused_and_while_the_webhook_is_dead_it_is_created(installed: Installed, namespace: str) -> None:
    installed.tenant("epsilon", namespace, maxTier="gpu-serving")
    try:
        refused = installed.create(critical_pod("coordinator"), namespace)
        assert refused.stderr.strip().endswith(f'admission webhook "{ENTRY}" denied the request: {SENTENCE}')
        installed.kill()
        try:
            created = installed.create(critical_pod("coordinator"), namespace)
            assert created.code == 0, created.stderr
        finally:
            installed.restart()
        assert installed.create(gpu_pod("worker", 0), namespace).code == 0
    finally:
        installed.cluster.kubectl("delete", "tenantquota", "epsilon")


def test_a_daemonset_of_kube_system_is_not_asked_about(installed: Installed, namespace: str) -> None:
    assert asked(installed) == created_by_daemonset(installed, "kube-system", f"system-{namespace}")


def test_a_daemonset_of_a_namespace_without_a_tenant_gets_its_pods(installed: Installed, namespace: str) -> None:
    """Which namespaces are a tenant's only the webhook knows: it says yes, and while it is dead nobody waits for it."""
    assert asked(installed) < created_by_daemonset(installed, namespace, f"network-{namespace}")
    installed.kill()
    try:
        created_by_daemonset(installed, namespace, f"storage-{namespace}")
    finally:
        installed.restart()


def created_by_daemonset(installed: Installed, namespace: str, node: str) -> int:
    """How often the API server has asked once the pod of a DaemonSet for a new node is there."""
    installed.cluster.add_node(node, gpus=1)
    try:
        assert installed.create(critical_daemonset(node), namespace).code == 0
        pods = ("pods", f"--namespace={namespace}", f"-l=app={node}", "--no-headers")
        installed.eventually(lambda: bool(installed.cluster.kubectl("get", *pods).stdout.strip()), "the pod")
        return asked(installed)
    finally:
        installed.cluster.kubectl("delete", "daemonset", node, f"--namespace={namespace}")
        installed.cluster.kubectl("delete", "node", node)


def test_a_daemonset_of_a_tenant_reads_the_sentence_in_its_events(installed: Installed, namespace: str) -> None:
    installed.tenant("epsilon", namespace, maxTier="gpu-serving")
    node = f"node-{namespace}"
    installed.cluster.add_node(node, gpus=1)
    try:
        assert installed.create(critical_daemonset(node), namespace).code == 0
        events = ("events", f"--namespace={namespace}", "--field-selector=reason=FailedCreate")
        installed.eventually(lambda: SENTENCE in installed.cluster.kubectl("get", *events).stdout, "the event")
    finally:
        installed.cluster.kubectl("delete", "daemonset", node, f"--namespace={namespace}")
        installed.cluster.kubectl("delete", "node", node)
        installed.cluster.kubectl("delete", "tenantquota", "epsilon")
