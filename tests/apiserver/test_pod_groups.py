"""Gangs that the scheduler knows, as PodGroups and as Workloads: the group gets a tier, and its pods share it."""

import json

import pytest

from .groups import group
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def test_a_labelled_group_and_its_pods_share_a_tier(installed: Installed, namespace: str, version: str) -> None:
    made = installed.create(group(version, "gang", "gpu-training"), namespace)
    assert made.code == 0, made.stderr
    spec = json.loads(made.stdout)["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("gpu-training", 1000)

    for name, gpus in (("worker", 4), ("launcher", 0)):
        pod = gpu_pod(name, gpus, schedulingGroup={"podGroupName": "gang"})
        created = json.loads(installed.create(pod, namespace).stdout)
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


def whole(version: str) -> object:
    return "PodGroup" if version.endswith("v1alpha2") else {"all": {}}


def one_by_one(version: str) -> object:
    return "Pod" if version.endswith("v1alpha2") else {"single": {}}


def test_a_training_gang_goes_whole_where_nobody_says_otherwise(
    installed: Installed, namespace: str, version: str
) -> None:
    """The API server fills the mode in, so it stands there either way; only `kubectl apply` says what was written."""
    said = {
        "create": ["create"],
        "apply": ["apply"],
        "apply by the server": ["apply", "--server-side"],
        "apply it": ["apply"],
        "apply it by the server": ["apply", "--server-side"],
    }
    for name, command in said.items():
        gang = group(version, name.replace(" ", "-"), "gpu-training")
        if "it" in name.split():
            gang["spec"]["disruptionMode"] = one_by_one(version)
        arguments = (*command, f"--namespace={namespace}", "-f", "-", "--output=json")
        made = installed.cluster.kubectl(*arguments, input=json.dumps(gang))
        stays = "it" in name.split()
        assert json.loads(made.stdout)["spec"]["disruptionMode"] == (one_by_one if stays else whole)(version), name
        assert ("[gang-in-parts]" in made.stderr) is stays
        if not stays:
            assert ("[gang-broken-by-pods]" in made.stderr) is version.endswith("v1alpha2")
        if command[0] == "apply":
            installed.cluster.kubectl(*arguments, input=json.dumps(gang))  # what is immutable does not change


def workload(version: str, name: str, **templates: str) -> Tree:
    """Kubernetes' own Workload, its templates by name with their classes."""
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    written = [{"name": each, **policy, "priorityClassName": found} for each, found in templates.items()]
    spec = {"podGroupTemplates": written}
    return {"apiVersion": version, "kind": "Workload", "metadata": {"name": name}, "spec": spec}


def test_a_workloads_templates_share_one_tier(installed: Installed, namespace: str, version: str) -> None:
    labelled = workload(version, "llm", driver="", workers="")
    labelled["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    made = installed.create(labelled, namespace)
    assert made.code == 0, made.stderr
    templates = json.loads(made.stdout)["spec"]["podGroupTemplates"]
    assert [each["priorityClassName"] for each in templates] == ["gpu-training"] * 2

    gang = group(version, "llm-workers")
    older = {"podGroupTemplateRef": {"workload": {"workloadName": "llm", "podGroupTemplateName": "workers"}}}
    newer = {"workloadRef": {"workloadName": "llm", "templateName": "workers"}}
    gang["spec"] |= older if version.endswith("v1alpha2") else newer
    spec = json.loads(installed.create(gang, namespace).stdout)["spec"]
    assert (spec["priorityClassName"], spec["disruptionMode"]) == ("gpu-training", whole(version))

    two = installed.create(workload(version, "mixed", driver="gpu-batch", workers="gpu-training"), namespace)
    assert "driver has priorityClassName gpu-batch, and workers has gpu-training" in two.stderr
    mistyped = installed.create(workload(version, "mistyped", workers="gpu-trainning"), namespace)
    assert mistyped.code == 0, "the API server looks no class up"
    assert "workers has priorityClassName gpu-trainning, which is not a PriorityClass" in mistyped.stderr
