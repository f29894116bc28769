"""Gangs of which the Job controller makes Workload and PodGroup itself, where a feature gate lets it (KEP-5547)."""

import os
from collections.abc import Iterator

import pytest

from installation.workload_crds import add_kinds
from localcluster import ControlPlane
from localcluster.for_tests import started
from localcluster.versions import DEFAULT_KUBERNETES

from .installed import Installed, Tree
from .test_native_gangs import pod_template, pods_of
from .test_pod_groups import group

pytestmark = [pytest.mark.apiserver, pytest.mark.release]


@pytest.fixture(scope="module")
def with_job_groups(pytestconfig: pytest.Config) -> Iterator[Installed]:
    """A control plane whose Job controller makes Workloads and PodGroups itself, with gpu-tiers in it."""
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    gates = ["WorkloadWithJob", *(["PodGroupPreemptionPolicy"] if minor != "1.36" else [])]
    with started(ControlPlane(minor, feature_gates=gates), pytestconfig) as cluster:
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
        answer = installed.create(job, where, "--validate=ignore")
        assert answer.code == 0, answer.stderr

    def scheduled(name: str) -> bool:
        return [each["status"]["phase"] for each in pods_of(installed, where, name)] == ["Running"] * 2

    installed.eventually(lambda: scheduled("train") and scheduled("elastic"), "both Jobs' pods")
    found = installed.get("podgroups.scheduling.k8s.io", where)["items"]
    groups = {each["metadata"]["ownerReferences"][0]["name"]: each for each in found}
    for name, each in groups.items():
        assert (each["spec"]["priorityClassName"], each["spec"]["priority"]) == ("gpu-training", 1000)
        assert {pod["spec"]["priority"] for pod in pods_of(installed, where, name)} == {1000}
        told = each["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"]
        assert told == 'workload-type: training, a guess from its command ("train.py")'
    modes = {name: each["spec"]["disruptionMode"] for name, each in groups.items()}
    newer = found[0]["apiVersion"].endswith("v1beta1")
    written = {"single": {}} if newer else "PodGroup"  # a Job of 1.36 can't say it
    assert modes == {"train": {"all": {}} if newer else "PodGroup", "elastic": written}


def test_a_gang_that_is_demoted_is_demoted_whole(with_job_groups: Installed) -> None:
    """Its group and its pods are made after it, and the scheduler wants one priority in all of them."""
    installed, where = with_job_groups, "borrower"
    installed.cluster.kubectl("create", "namespace", where)
    installed.cluster.add_node("gpu-1", gpus=2)
    rows = [{"tier": "gpu-training", "gpus": 1}, {"tier": "gpu-batch", "gpus": 2}]
    installed.tenant("borrower", where, allowedTiers=["gpu-training", "gpu-batch"], quotas=rows, onExceed="Demote")
    job = a_job("finetune", "gpu-1")
    job["spec"]["template"]["metadata"]["labels"]["gpu-tiers.dev/tier"] = "gpu-training"
    answer = installed.create(job, where, "--validate=ignore")
    assert answer.code == 0, answer.stderr
    installed.eventually(
        lambda: [each["status"]["phase"] for each in pods_of(installed, where, "finetune")] == ["Running"] * 2,
        "both pods",
    )
    (gang,) = installed.get("podgroups.scheduling.k8s.io", where)["items"]
    for each in (gang, *pods_of(installed, where, "finetune")):
        assert (each["spec"]["priorityClassName"], each["spec"]["priority"]) == ("gpu-batch", 400)
        assert each["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-batch"
    installed.eventually(lambda: installed.usage("borrower") == "gpu-training 0/1, gpu-batch 2/2", "its usage")


def test_a_group_of_a_tier_that_evicts_nobody_says_so_where_groups_can(with_job_groups: Installed) -> None:
    """Priority computes the policy before we are asked, and compares it with our class's afterwards."""
    served = with_job_groups.cluster.kubectl("api-versions").stdout.split()
    if "scheduling.k8s.io/v1beta1" not in served:
        pytest.skip("PodGroups of 1.36 have no preemptionPolicy")
    made = with_job_groups.create(group("scheduling.k8s.io/v1beta1", "notes", "gpu-interactive"), "default")
    assert made.code == 0, made.stderr
    assert with_job_groups.get("podgroup/notes", "default")["spec"]["preemptionPolicy"] == "Never"
