"""The chart where it is meant to run: a pod behind a Service that the API server calls."""

import base64

import pytest

from demonstration.workloads import gpu_pod
from installation.helm import ROOT
from installation.readiness import wait_for_webhook
from installation.workload_crds import add_kinds
from localcluster import Result
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .release import RESTRICTED, Release

pytestmark = pytest.mark.node


def test_the_webhook_runs_under_restricted_pod_security(release: Release) -> None:
    deployment = release.get("deployment/gpu-tiers")
    namespace = release.get("namespace/gpu-tiers")
    assert deployment["status"]["readyReplicas"] == 2
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_ca_bundle_is_the_secrets_own(release: Release) -> None:
    authority = release.get("secret/gpu-tiers-tls")["data"]["ca.crt"]
    entries = [entry for each in release.configurations() for entry in each["webhooks"]]
    assert base64.b64decode(authority).startswith(b"-----BEGIN CERTIFICATE-----")
    assert {entry["clientConfig"]["caBundle"] for entry in entries} == {authority}


def test_the_api_server_asks_through_the_service(release: Release, namespace: str) -> None:
    entries = [entry for each in release.configurations() for entry in each["webhooks"]]
    assert {entry["clientConfig"]["service"]["name"] for entry in entries} == {"gpu-tiers"}

    answer = release.asked(gpu_pod("asked", tier="gpu-batch"), namespace).json()
    assert answer["spec"]["priorityClassName"] == "gpu-batch"


def test_a_refusal_reads_as_a_sentence(release: Release, namespace: str) -> None:
    answer = release.asked(gpu_pod("asked", tier="no-such-tier"), namespace)
    assert answer.code
    assert "no-such-tier" in answer.stderr
    assert "denied the request" in answer.stderr


def test_helm_test_asks_through_name_and_service(release: Release) -> None:
    release.helm("test", "gpu-tiers", "--timeout=240s")


def test_it_runs_on_the_nodes_network_at_ports_of_its_own_and_as_any_user(
    release: Release, node: NodeCluster, namespace: str
) -> None:
    """EKS with another network plugin needs the first, and OpenShift, which chooses user and group 0, the second."""
    ports = {"webhook": 19443, "metrics": 19080}
    user = {"runAsUser": 1000660000, "runAsGroup": 0, "fsGroup": 1000660000}
    node.api.label("namespace/gpu-tiers", {"pod-security.kubernetes.io/enforce": "privileged"})
    try:
        release.upgrade(replicas=1, hostNetwork=True, ports=ports, podSecurityContext=user)
        wait_until(lambda: len(_webhooks_pods(node)) == 1, 240, "the pods from before to be gone")
        (pod,) = node.api.get("pods", "gpu-tiers")["items"]
        assert pod["status"]["podIP"] == pod["status"]["hostIP"]
        wait_for_webhook(node)  # the Service leads to the one pod a moment after that is ready
        asked = release.asked(gpu_pod("asked", tier="gpu-batch"), namespace)
        assert not asked.code, asked.stderr
        answer = asked.json()
        assert answer["spec"]["priorityClassName"] == "gpu-batch"
        release.helm("test", "gpu-tiers", "--timeout=240s")
    finally:
        release.upgrade()
        wait_until(lambda: len(_webhooks_pods(node)) == 2, 240, "the pod on the node's network to be gone")
        node.api.label("namespace/gpu-tiers", RESTRICTED)


@pytest.mark.usefixtures("release")
def test_every_example_gets_its_answer(node: NodeCluster) -> None:
    add_kinds(node)
    node.kubectl("apply", "-f", str(ROOT / "examples" / "tenants"))
    node.kubectl("wait", "--for=condition=Ready", "tenantquota", "--all", "--timeout=240s")
    answer = _dry_run(node)
    refused = [line for line in answer.stderr.splitlines() if line.startswith("Error")]
    assert len(refused) == 1, answer.stderr
    assert "llm-finetune" in refused[0]
    assert "job.batch/train-ranker created" in answer.stdout


def test_a_restarted_kubelet_leaves_the_webhook_in_place(release: Release, node: NodeCluster, namespace: str) -> None:
    before = _webhooks_pods(node)
    node.stop_kubelet()
    node.start_kubelet()
    node.kubectl("wait", "--for=condition=Ready", "pods", "--all", "--namespace=gpu-tiers", "--timeout=240s")
    assert len(before) == 2
    assert _webhooks_pods(node) == before
    assert not release.asked(gpu_pod("asked"), namespace).code


def _dry_run(node: NodeCluster) -> Result:
    return node.kubectl("apply", "--dry-run=server", "-f", str(ROOT / "examples"), check=False)


def _webhooks_pods(node: NodeCluster) -> dict[str, int]:
    """Return how often each has been restarted, by its uid."""
    found = node.api.get("pods", "gpu-tiers")["items"]
    new = [{"restartCount": 0}]  # the kubelet has not said anything of it yet
    return {each["metadata"]["uid"]: each["status"].get("containerStatuses", new)[0]["restartCount"] for each in found}
