"""A gang that the scheduler knows as a PodGroup: the group gets a tier, and its pods share it."""

import json

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def version(installed: Installed) -> str:
    """The version of the PodGroup API that this API server serves."""
    known = installed.cluster.kubectl("api-versions").stdout.split()
    return next(each for each in ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2") if each in known)


def group(version: str, name: str, tier: str | None = None) -> Tree:
    labels = {"gpu-tiers.dev/tier": tier} if tier else {}
    policy = {"gang": {"minCount": 2}}
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulingPolicy": policy},
    }


def test_a_labelled_group_and_its_pods_share_a_tier(installed: Installed, namespace: str, version: str) -> None:
    made = installed.create(group(version, "gang", "gpu-training"), namespace, "--output=json")
    assert made.code == 0, made.stderr
    spec = json.loads(made.stdout)["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("gpu-training", 1000)

    for name, gpus in (("worker", 4), ("launcher", 0)):
        pod = gpu_pod(name, gpus, schedulingGroup={"podGroupName": "gang"})
        created = json.loads(installed.create(pod, namespace, "--output=json").stdout)
        assert (created["spec"]["priority"], created["spec"]["priorityClassName"]) == (1000, "gpu-training")
        assert created["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == "group: PodGroup/gang is gpu-training"


def test_a_gpu_pod_of_a_group_without_a_tier_is_refused(installed: Installed, namespace: str, version: str) -> None:
    assert installed.create(group(version, "plain"), namespace).code == 0
    refused = installed.create(gpu_pod("worker", 1, schedulingGroup={"podGroupName": "plain"}), namespace)
    assert "spec.schedulingGroup: PodGroup/plain has no tier" in refused.stderr
    assert installed.create(gpu_pod("cpu", 0, schedulingGroup={"podGroupName": "plain"}), namespace).code == 0


def test_a_pod_may_not_leave_its_groups_tier(installed: Installed, namespace: str, version: str) -> None:
    installed.create(group(version, "gang", "gpu-batch"), namespace)
    pod = gpu_pod("worker", 1, tier="gpu-training", schedulingGroup={"podGroupName": "gang"})
    assert "PodGroup/gang is gpu-batch; a group and its pods share one tier" in installed.create(pod, namespace).stderr
