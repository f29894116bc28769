"""Two replicas under a steady load of GPU pods: an upgrade, a restart, a drain, a deletion by force, and a kill.

The load comes through the Service, as the API server sends it. Nothing may fail but, after a kill, what was asked of
the replica that died before its end was known.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demonstration.workloads import Tree, new_namespace
from installation.helm import RELEASE
from localcluster.credentials import NODE
from localcluster.for_tests import announce
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .creates import Answer, Creates, accepted, refused
from .release import NAMESPACE, Release
from .stored import only_gpu_pods_noticed

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

STREAMS = 2
SOME = 10
SECONDS = 240
OURS = "app.kubernetes.io/name=gpu-tiers"
BLIND_SECONDS = 3.0
"""After a kill: the kubelet looks every second, and then everybody has to be told."""
NOBODY_ANSWERS = "failed calling webhook"
NOT_REACHED = "or the mutating webhook was not reached"


@pytest.fixture(scope="module")
def tenant(release: Release, node: NodeCluster) -> Iterator[str]:
    """A tenant's namespace with room for all, so that each pod is booked."""
    assert release.installed
    with new_namespace(node, "replicas") as name:
        node.api.apply(tenant_quota(name, name, quotas=[{"gpus": 10_000}]))
        node.api.wait_for("Exact", f"tenantquota/{name}", seconds=SECONDS)
        yield name
        node.api.delete(f"tenantquota/{name}")


@contextmanager
def load(node: NodeCluster, tenant: str) -> Iterator[Creates]:
    """GPU pods before what happens, while it happens, and after it."""
    with Creates(node, tenant, STREAMS) as creates:
        creates.until_accepted(SOME)
        yield creates
        creates.until_accepted(SOME)


def report(config: pytest.Config, what: str, creates: Creates, since: float) -> None:
    no = refused(creates.gpu)
    late = f", the last one after {no[-1].at - since:.1f} s" if no else ""
    announce(config, f"replicas: {what:<28} {len(no)} of {len(creates.gpu)} GPU pods failed{late}")


def test_nobody_notices_an_upgrade(
    release: Release, node: NodeCluster, tenant: str, pytestconfig: pytest.Config
) -> None:
    before, since = set(names(node)), time.monotonic()
    with load(node, tenant) as creates:
        release.upgrade(logLevel="warning")
    assert not before & set(names(node)), "the upgrade put other pods in their places"
    nobody_noticed(node, creates, "helm upgrade", since, pytestconfig)


def test_nobody_notices_a_restart(
    release: Release, node: NodeCluster, tenant: str, pytestconfig: pytest.Config
) -> None:
    since = time.monotonic()
    with load(node, tenant) as creates:
        node.kubectl("rollout", "restart", "deployment/gpu-tiers", NAMESPACE)
        release.wait_for_pods()
    nobody_noticed(node, creates, "kubectl rollout restart", since, pytestconfig)


def test_nobody_notices_a_drain(release: Release, node: NodeCluster, tenant: str, pytestconfig: pytest.Config) -> None:
    """Both replicas are on the one node, and their replacements can go nowhere: the budget lets one of them stay."""
    before, since = set(names(node)), time.monotonic()
    drain = ("drain", NODE, f"--pod-selector={OURS}", "--delete-emptydir-data", "--force", "--ignore-daemonsets")
    with load(node, tenant) as creates:
        drained = node.kubectl(*drain, "--timeout=6s", check=False)
        node.kubectl("uncordon", NODE)
        assert "Cannot evict pod as it would violate the pod's disruption budget" in drained.stderr
        assert len(before & set(names(node))) == 1
        release.wait_for_pods()
    nobody_noticed(node, creates, "kubectl drain", since, pytestconfig)


def test_nobody_notices_a_deletion_by_force(
    release: Release, node: NodeCluster, tenant: str, pytestconfig: pytest.Config
) -> None:
    since = time.monotonic()
    with load(node, tenant) as creates:
        node.api.delete(f"pod/{names(node)[0]}", namespace=RELEASE, seconds=0)
        release.wait_for_pods()
    nobody_noticed(node, creates, "kubectl delete --force", since, pytestconfig)


def test_a_kill_is_noticed_for_the_moment_in_which_nobody_knows_of_it(
    release: Release, node: NodeCluster, tenant: str, pytestconfig: pytest.Config
) -> None:
    victim = pods(node)[0]
    with load(node, tenant) as creates:
        since = time.monotonic()
        node.kill_container(victim["status"]["containerStatuses"][0]["containerID"])
        wait_until(lambda: restarts(node, victim) == restarts_of(victim) + 1, SECONDS, "its restart")
        release.wait_for_pods()
    report(pytestconfig, "SIGKILL", creates, since)
    only_gpu_pods_noticed(node, creates, {NOBODY_ANSWERS, NOT_REACHED})
    assert [each for each in refused(creates.gpu) if not since <= each.at <= since + BLIND_SECONDS] == []


def nobody_noticed(node: NodeCluster, creates: Creates, what: str, since: float, config: pytest.Config) -> None:
    """No create failed, and each GPU pod has its tier."""
    report(config, what, creates, since)
    failed: list[Answer] = refused(creates.gpu)
    assert failed == []
    only_gpu_pods_noticed(node, creates, ())
    assert len(accepted(creates.gpu)) == len(creates.gpu)


def pods(node: NodeCluster) -> list[Tree]:
    """The replicas that are not on their way out."""
    found = node.api.get("pods", RELEASE, labelSelector=OURS)["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def names(node: NodeCluster) -> list[str]:
    return [each["metadata"]["name"] for each in pods(node)]


def restarts(node: NodeCluster, pod: Tree) -> int:
    return restarts_of(node.api.get(f"pod/{pod['metadata']['name']}", RELEASE))


def restarts_of(pod: Tree) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])
