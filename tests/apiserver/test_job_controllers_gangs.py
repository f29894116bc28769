"""Gangs behind feature gates: the Job controller makes Workload and PodGroup itself, groups are in trees (KEP-5547)."""

import json
import os
from collections.abc import Iterator

import pytest

from installation.workload_crds import add_kinds
from localcluster import ControlPlane
from localcluster.for_tests import started
from localcluster.versions import DEFAULT_KUBERNETES

from .groups import group, pod_template, pods_of
from .installed import Installed, Tree, gpu_pod

pytestmark = [pytest.mark.apiserver, pytest.mark.release]


TREES = "scheduling.k8s.io/v1alpha3"
"""The version of 1.37 that has CompositePodGroups."""


@pytest.fixture(scope="module")
def with_job_groups(pytestconfig: pytest.Config) -> Iterator[Installed]:
    """A control plane whose Job controller makes Workloads and PodGroups itself, with gpu-tiers in it."""
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    newer = ["PodGroupPreemptionPolicy", "TopologyAwareWorkloadScheduling", "CompositePodGroup"]
    gates = ["WorkloadWithJob", *(newer if minor != "1.36" else [])]
    options = [f"--runtime-config={TREES}=true"] if minor != "1.36" else []
    with started(ControlPlane(minor, feature_gates=gates, apiserver_options=options), pytestconfig) as cluster:
        add_kinds(cluster)
        webhook = Installed(cluster)
        yield webhook
        webhook.end()


def a_job(name: str, node: str, **scheduling: object) -> Tree:
    """A Job of two pods that train and start together, which 1.37 has to be told."""
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": pod_template(name, node)}
    del spec["template"]["spec"]["schedulingGroup"]
    spec["scheduling"] = {"schedulingPolicy": {"gang": {}}, **scheduling}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_the_job_controllers_own_groups_agree_with_their_pods(with_job_groups: Installed) -> None:
    installed, where = with_job_groups, "default"
    installed.cluster.add_node("gpu-0", gpus=4)
    for job in (a_job("train", "gpu-0"), a_job("elastic", "gpu-0", disruptionMode={"single": {}})):
        answer = installed.create(job, where, strict=False)
        assert answer.code == 0, answer.stderr

    def scheduled(name: str) -> bool:
        return [each["status"]["phase"] for each in pods_of(installed, where, name)] == ["Running"] * 2

    installed.eventually(lambda: scheduled("train") and scheduled("elastic"), "both Jobs' pods")
    found = installed.get("podgroups.scheduling.k8s.io", where)["items"]
    groups = {each["metadata"]["ownerReferences"][0]["name"]: each for each in found}
    for name, each in groups.items():
        assert (each["spec"]["priorityClassName"], each["spec"]["priority"]) == ("gpu-training", 1000)
        assert {pod["spec"]["priority"] for pod in pods_of(installed, where, name)} == {1000}
        trace = each["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"]
        assert trace == 'workload-type: training, a guess from its command ("train.py")'
    modes = {name: each["spec"]["disruptionMode"] for name, each in groups.items()}
    newer = found[0]["apiVersion"].endswith("v1beta1")
    written = {"single": {}} if newer else "PodGroup"  # a Job of 1.36 can't say it
    assert modes == {"train": {"all": {}} if newer else "PodGroup", "elastic": written}


def test_a_gang_that_is_demoted_is_demoted_whole(with_job_groups: Installed) -> None:
    """Its group and its pods are made after it, and the scheduler wants one priority in all of them."""
    installed, where = with_job_groups, "borrower"
    installed.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where}})
    installed.cluster.add_node("gpu-1", gpus=2)
    rows = [{"tier": "gpu-training", "gpus": 1}, {"tier": "gpu-batch", "gpus": 2}]
    installed.tenant("borrower", where, allowedTiers=["gpu-training", "gpu-batch"], quotas=rows, onExceed="Demote")
    job = a_job("finetune", "gpu-1")
    job["spec"]["template"]["metadata"]["labels"]["gpu-tiers.dev/tier"] = "gpu-training"
    answer = installed.create(job, where, strict=False)
    assert answer.code == 0, answer.stderr
    installed.eventually(
        lambda: [each["status"]["phase"] for each in pods_of(installed, where, "finetune")] == ["Running"] * 2,
        "both pods",
    )
    (gang,) = installed.get("podgroups.scheduling.k8s.io", where)["items"]
    for each in (gang, *pods_of(installed, where, "finetune")):
        assert (each["spec"]["priorityClassName"], each["spec"]["priority"]) == ("gpu-batch", 400)
        assert (each is gang) is (each["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-batch"), "its author's stays"
    installed.eventually(lambda: installed.usage("borrower") == "gpu-training 0/1, gpu-batch 2/2", "its usage")


def test_a_group_of_a_tier_that_evicts_nobody_says_so_where_groups_can(with_job_groups: Installed) -> None:
    """Priority computes the policy before we are asked, and compares it with our class's afterwards."""
    served = with_job_groups.cluster.kubectl("api-versions").stdout.split()
    if "scheduling.k8s.io/v1beta1" not in served:
        pytest.skip("PodGroups of 1.36 have no preemptionPolicy")
    made = with_job_groups.create(group("scheduling.k8s.io/v1beta1", "notes", "gpu-interactive"), "default")
    assert made.code == 0, made.stderr
    assert with_job_groups.get("podgroup/notes", "default")["spec"]["preemptionPolicy"] == "Never"


def test_a_tree_of_groups_shares_the_tier_of_its_root(with_job_groups: Installed) -> None:
    """The scheduler starts no pod of a tree in which one priority differs, so it must start these."""
    installed, where = with_job_groups, "default"
    if TREES not in installed.cluster.kubectl("api-versions").stdout.split():
        pytest.skip("1.36 has no CompositePodGroups")
    installed.cluster.add_node("gpu-2", gpus=2)
    gang, groups = {"gang": {"minCount": 1}}, {"gang": {"minGroupCount": 2}}
    leaves = [{"name": name, "schedulingPolicy": gang} for name in ("leader", "workers")]
    template = {"name": "root", "schedulingPolicy": groups, "podGroupTemplates": leaves}
    templates = {"compositePodGroupTemplates": [template]}
    labels = {"gpu-tiers.dev/tier": "gpu-training"}
    tree = tree_object("Workload", "llm", templates, labels)
    made = json.loads(installed.create(tree, where).stdout)["spec"]["compositePodGroupTemplates"][0]
    assert {each["priorityClassName"] for each in (made, *made["podGroupTemplates"])} == {"gpu-training"}

    root = {"schedulingPolicy": groups, "workloadRef": {"workloadName": "llm", "templateName": "root"}}
    parts = [tree_object("CompositePodGroup", "llm", root)]
    for name in ("leader", "workers"):
        of = {"workloadName": "llm", "templateName": name}
        spec = {"schedulingPolicy": gang, "workloadRef": of, "parentCompositePodGroupName": "llm"}
        parts.append(tree_object("PodGroup", name, spec))
    for part in parts:
        answer = installed.create(part, where)
        assert answer.code == 0, answer.stderr
        spec = json.loads(answer.stdout)["spec"]
        assert (spec["priorityClassName"], spec["priority"]) == ("gpu-training", 1000)
    for name in ("leader", "workers"):
        pod = gpu_pod(
            f"llm-{name}", 1, schedulingGroup={"podGroupName": name}, nodeSelector={"kubernetes.io/hostname": "gpu-2"}
        )
        assert installed.create(pod, where).code == 0

    def running(name: str) -> bool:
        return bool(installed.get(f"pod/llm-{name}", where)["status"]["phase"] == "Running")

    installed.eventually(lambda: running("leader") and running("workers"), "both groups")

    raised = tree_object("PodGroup", "raised", {**parts[1]["spec"]}, {"gpu-tiers.dev/tier": "gpu-batch"})
    assert "CompositePodGroup/llm above it has priorityClassName gpu-training" in installed.create(raised, where).stderr


def tree_object(kind: str, name: str, spec: Tree, labels: dict[str, str] | None = None) -> Tree:
    """An object of the API version that knows trees."""
    return {"apiVersion": TREES, "kind": kind, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}
