"""A critical pod of a tenant with a ceiling is refused by the API server itself; nobody waits for the webhook."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

SENTENCE = (
    "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant epsilon; "
    "its pods may have a class of value 800 at most, or none. See TenantQuota/epsilon. [class-above-ceiling]"
)


def critical_pod(name: str, node: str | None = None) -> Tree:
    return gpu_pod(name, 0, node=node, priorityClassName="system-node-critical")


def critical_daemonset(node: str) -> Tree:
    pod = critical_pod("x", node)
    template = {"metadata": {"labels": {"app": node}}, "spec": pod["spec"]}
    spec = {"selector": {"matchLabels": {"app": node}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": node}, "spec": spec}


@contextmanager
def epsilon(installed: Installed, namespace: str) -> Iterator[None]:
    """The tenant, from when the API server knows its ceiling until it has forgotten it."""

    def is_refused() -> bool:
        return dry_run(installed, namespace).endswith(SENTENCE)

    installed.tenant("epsilon", namespace, maxTier="gpu-serving")
    installed.eventually(is_refused, "the ceiling")
    try:
        yield
    finally:
        installed.api.delete("tenantquota/epsilon")
        installed.eventually(lambda: not is_refused(), "the end of the ceiling")


def dry_run(installed: Installed, namespace: str) -> str:
    """Return the warnings and errors of a dry run of a critical pod."""
    return installed.create(critical_pod("coordinator"), namespace, dry_run=True).stderr.strip()


def test_it_is_refused_while_the_webhook_hangs_and_while_it_is_dead(installed: Installed, namespace: str) -> None:
    with epsilon(installed, namespace):
        installed.process.popen.send_signal(signal.SIGSTOP)
        try:
            assert dry_run(installed, namespace).endswith(f"denied request: {SENTENCE}")
        finally:
            installed.process.popen.send_signal(signal.SIGCONT)
        installed.kill()
        try:
            assert dry_run(installed, namespace).endswith(f"denied request: {SENTENCE}")
            assert installed.create(gpu_pod("worker", 0), namespace).code == 0
        finally:
            installed.restart()


def test_daemonsets_of_others_get_their_pods_while_the_webhook_is_dead(installed: Installed, namespace: str) -> None:
    installed.kill()
    try:
        for home in ("kube-system", namespace):
            with daemonset(installed, home, f"{home}-{namespace}"):
                app = {"labelSelector": f"app={home}-{namespace}"}
                made = lambda: bool(installed.api.get("pods", home, **app)["items"])  # noqa: B023, E731
                installed.eventually(made, "its pod")
    finally:
        installed.restart()


@contextmanager
def daemonset(installed: Installed, namespace: str, node: str) -> Iterator[None]:
    """A critical DaemonSet for a node of its own."""
    installed.cluster.add_node(node, gpus=1)
    try:
        assert installed.create(critical_daemonset(node), namespace).code == 0
        yield
    finally:
        installed.api.delete(f"daemonset/{node}", namespace=namespace)
        installed.api.delete(f"node/{node}")


def test_a_daemonset_of_a_tenant_reads_the_sentence_in_its_events(installed: Installed, namespace: str) -> None:
    with epsilon(installed, namespace), daemonset(installed, namespace, f"node-{namespace}"):
        installed.eventually(lambda: SENTENCE in installed.messages(namespace, "reason=FailedCreate"), "the event")
