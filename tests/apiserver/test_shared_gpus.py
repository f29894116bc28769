"""Parts of GPUs by annotation, as KAI Scheduler takes them, on a real API server. No GPU is asked for by name."""

import json
from collections.abc import Iterator

import pytest

from installation.examples import example_policy

from .installed import Installed, Tree

pytestmark = pytest.mark.apiserver

SHARING = [{"name": "nvidia.com/gpu"}, {"annotation": "gpu-fraction"}]


@pytest.fixture
def sharing(installed: Installed, namespace: str) -> Iterator[Installed]:
    """The webhook whose policy counts parts, and a tenant that may hold one GPU."""
    installed.upgrade(policy=example_policy() | {"resources": SHARING})
    installed.tenant("zeta", namespace, quotas=[{"gpus": "1"}])
    installed.eventually(lambda: bool(installed.create(pod("1.5"), namespace, dry_run=True).code), "an answer")
    yield installed
    installed.api.delete("tenantquota/zeta")
    installed.upgrade()


def pod(fraction: str) -> Tree:
    container = {"name": "main", "image": "registry.example/work:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "part-", "annotations": {"gpu-fraction": fraction}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


def deployment(fraction: str) -> Tree:
    made = pod(fraction)
    template = {"metadata": {**made["metadata"], "labels": {"app": "a"}}, "spec": made["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def test_a_part_of_a_gpu_has_a_tier_and_is_charged(sharing: Installed, namespace: str) -> None:
    made = json.loads(sharing.create(pod("0.6"), namespace).stdout)
    assert made["spec"]["priorityClassName"] == "gpu-interactive"
    refused = sharing.create(pod("0.6"), namespace).stderr
    assert "tenant zeta: the total is at 0.6 of 1 GPU; this pod asks for 0.6." in refused
    change = (
        "annotate",
        "pod",
        made["metadata"]["name"],
        f"--namespace={namespace}",
        "--overwrite",
        "gpu-fraction=0.9",
    )
    answer = sharing.cluster.kubectl(*change, check=False).stderr
    assert "metadata.annotations[gpu-fraction]: 0.9, but it was 0.6; a pod's part of a GPU is fixed" in answer


def test_a_pod_holds_its_part_until_it_has_ended(sharing: Installed, namespace: str) -> None:
    saving = {"terminationGracePeriodSeconds": 1_000_000, "nodeName": "node-without-a-kubelet"}
    made = pod("0.6")
    made["spec"] |= saving
    name = json.loads(sharing.create(made, namespace).stdout)["metadata"]["name"]

    def changed(to: str) -> str:
        return sharing.cluster.kubectl(
            "annotate", "pod", name, f"--namespace={namespace}", "--overwrite", to, check=False
        ).stderr

    sentence = "a pod's part of a GPU is fixed when it is created"
    assert sentence in changed("gpu-memory=1"), "which the policy does not count, but beside which no part is read"
    sharing.api.delete(f"pod/{name}", namespace=namespace, wait=False)
    assert "deletionTimestamp" in sharing.get(f"pod/{name}", namespace)["metadata"]
    assert sentence in changed("gpu-fraction=0.01")
    assert "the total is at 0.6 of 1 GPU" in sharing.create(made, namespace).stderr


def test_a_mistake_is_refused_where_it_is_applied(sharing: Installed, namespace: str) -> None:
    for fraction in ("abc", "1.5", "-1"):
        sentence = f'metadata.annotations[gpu-fraction]: "{fraction}" is not a part of a GPU; write a number above 0'
        for tree in (deployment(fraction), pod(fraction)):
            assert sentence in sharing.create(tree, namespace).stderr


def test_a_part_that_the_policy_does_not_count_is_warned_about(installed: Installed, namespace: str) -> None:
    answer = installed.create(deployment("0.5"), namespace)
    assert not answer.code
    assert (
        "Warning: [gpu-not-counted] annotation gpu-fraction: no quota counts it, as the policy does not list it"
        in answer.stderr
    )
    assert not installed.create(pod("0.5"), namespace, dry_run=True).code
