"""The end of the release that all tests here share: nothing of it is left, and nobody waits for it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import yaml

from demonstration.workloads import create, gpu_pod
from installation.helm import RELEASE, helm
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .release import NAMESPACE, Release, Tree
from .together import SECONDS

pytestmark = pytest.mark.node

OPENER = "gpu-tiers-open-gates"
ACCOUNT = f"system:serviceaccount:gpu-tiers:{OPENER}"
QUOTA = {"quotas": [{"tier": "gpu-batch", "gpus": 1}], "onExceed": "Hold"}


@pytest.fixture
def queued_pod(release: Release, node: NodeCluster, namespace: str) -> Iterator[str]:
    """A pod whose tenant has no room for it; the node has."""
    assert release.installed
    node.api.apply(tenant_quota(namespace, namespace, **QUOTA))
    node.api.wait_for("Ready", f"tenantquota/{namespace}")
    for name in ("first", "held"):
        create(node, namespace, gpu_pod(name, "sleep", "600", tier="gpu-batch"))
        wait_until(partial(is_running, node, namespace, "first"), SECONDS, "the one that has room")
    assert gated(node, namespace, "held")
    yield "held"
    node.api.delete(f"tenantquota/{namespace}")


def is_running(node: NodeCluster, namespace: str, name: str) -> bool:
    return bool(node.api.get(f"pod/{name}", namespace)["status"]["phase"] == "Running")


def gated(node: NodeCluster, namespace: str, name: str) -> bool:
    pod = node.api.get(f"pod/{name}", namespace)
    return "schedulingGates" in pod["spec"]


def job_of_the_uninstall(node: NodeCluster) -> list[Tree]:
    """Return the uninstall's Job and its rights, as a person applies all that a chart renders. It gives up soon."""
    hooks = yaml.safe_load_all(helm(node, "get", "hooks", RELEASE, NAMESPACE))
    found = [each for each in hooks if each["metadata"]["name"] == OPENER]
    rights = [each for each in found if each["kind"].startswith(("ClusterRole", "Role", "ServiceAccount"))]
    (job,) = (each for each in found if each["kind"] == "Job")
    job["spec"]["backoffLimit"] = 0
    job["spec"]["template"]["spec"]["containers"][0]["args"][-1] = "--wait-seconds=3"
    return [*rights, job]


def test_its_job_opens_nothing_while_gpu_tiers_is_installed(
    release: Release, node: NodeCluster, namespace: str, queued_pod: str
) -> None:
    node.apply(yaml.safe_dump_all(job_of_the_uninstall(node)), NAMESPACE)
    node.kubectl("wait", "--for=condition=Failed", f"job/{OPENER}", NAMESPACE, f"--timeout={SECONDS}s")
    said = node.kubectl("logs", f"job/{OPENER}", NAMESPACE).stdout
    assert "Opened: 0 of 1 gates." in said
    assert "The policy gpu-tiers-hold keeps the gates shut to everybody but gpu-tiers" in said.replace("\n", " ")
    assert gated(node, namespace, queued_pod)
    change = json.dumps({"metadata": {"labels": {"a": "b"}}})
    patch = (
        "patch",
        "pod",
        queued_pod,
        f"--namespace={namespace}",
        "-p",
        change,
        f"--as={ACCOUNT}",
        "--dry-run=server",
    )
    with rights_to_read(node):
        assert "may open the scheduling gate gpu-tiers.dev/quota" in node.kubectl(*patch, check=False).stderr
    assert release.installed


@contextmanager
def rights_to_read(node: NodeCluster) -> Iterator[None]:
    """kubectl reads what it patches, the Job does not."""
    node.kubectl("create", "clusterrolebinding", "reads", "--clusterrole=view", f"--user={ACCOUNT}")
    yield
    node.api.delete("clusterrolebinding/reads")


def test_uninstall_leaves_no_webhook_and_no_gated_pod_behind(
    release: Release, node: NodeCluster, namespace: str, queued_pod: str
) -> None:
    release.uninstall()
    assert not gated(node, namespace, queued_pod)
    wait_until(partial(is_running, node, namespace, queued_pod), SECONDS, "the pod that was queued")
    left = node.kubectl("get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--output=name")
    assert "gpu-tiers" not in left.stdout
    ours = ("get", "deployments,services,secrets,jobs,serviceaccounts", NAMESPACE, "--output=name")
    assert node.kubectl(*ours).stdout.split() == ["serviceaccount/default"]
    rights = node.kubectl("get", "clusterroles,clusterrolebindings", "--output=name").stdout
    assert "gpu-tiers" not in rights
    untouched = release.asked(gpu_pod("asked"), namespace).json()
    assert "priorityClassName" not in untouched["spec"]
