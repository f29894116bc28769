"""Gangs of Kubernetes' own kinds on the real scheduler: who trains goes as a whole (KEP-4671, KEP-5710)."""

import json
import os
from collections.abc import Iterator

import pytest

from installation.workload_crds import workload_crds
from localcluster import ControlPlane
from localcluster.for_tests import started
from localcluster.versions import DEFAULT_KUBERNETES

from .installed import Installed, Tree, gpu_pod
from .test_pod_groups import group, version
from .test_preemption import events, running

__all__ = ["version"]

pytestmark = pytest.mark.apiserver

TRAINS = ["torchrun", "--nnodes=4", "train.py"]


def a_gang(version: str, name: str, tier: str, node: str) -> tuple[Tree, Tree, Tree]:
    """A JobSet of four pods with a GPU each, and what the JobSet controller makes of it: a PodGroup and a Job."""
    template = pod_template(name, node)
    spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "backoffLimit": 100, "template": template}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "labels": {"gpu-tiers.dev/tier": tier}},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": spec}}]},
    }
    pods = group(version, name)
    pods["spec"]["schedulingPolicy"]["gang"]["minCount"] = 4
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{name}-workers-0"}, "spec": spec}
    return jobset, pods, job


def pod_template(name: str, node: str) -> Tree:
    labels = {"jobset.sigs.k8s.io/jobset-name": name}
    spec = gpu_pod(name, 1, node=node, restartPolicy="Never", schedulingGroup={"podGroupName": name})["spec"]
    spec["containers"][0]["command"] = TRAINS
    return {"metadata": {"labels": labels}, "spec": spec}


def apply_gang(installed: Installed, namespace: str, gang: tuple[Tree, Tree, Tree]) -> list[str]:
    """Create the JobSet, and as its controller the group and the Job; answers with all warnings."""
    jobset, *made = gang
    answer = installed.create(jobset, namespace, "--output=json")
    assert answer.code == 0, answer.stderr
    uid, whom = json.loads(answer.stdout)["metadata"]["uid"], {"name": jobset["metadata"]["name"], "controller": True}
    owner = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "uid": uid, **whom}
    said = answer.stderr.splitlines()
    for each in made:
        each["metadata"]["ownerReferences"] = [owner]
        answer = installed.create(each, namespace)
        assert answer.code == 0, answer.stderr
        said += answer.stderr.splitlines()
    return said


def pods_of(installed: Installed, namespace: str, name: str) -> list[Tree]:
    selector = f"--selector=jobset.sigs.k8s.io/jobset-name={name}"
    command = ("get", "pods", f"--namespace={namespace}", selector, "--output=json")
    found: list[Tree] = installed.cluster.kubectl(*command).json()["items"]
    return found


def runs_whole(installed: Installed, namespace: str, name: str) -> bool:
    return [each["status"]["phase"] for each in pods_of(installed, namespace, name)] == ["Running"] * 4


def test_of_two_jobsets_of_which_one_fits_the_lower_goes_whole_and_saves(
    installed: Installed, namespace: str, node: str, version: str
) -> None:
    apply_gang(installed, namespace, a_gang(version, "sweep", "gpu-batch", node))
    installed.eventually(lambda: runs_whole(installed, namespace, "sweep"), "the first gang")
    lower = pods_of(installed, namespace, "sweep")
    assert {each["spec"]["priorityClassName"] for each in lower} == {"gpu-batch"}
    assert all("preStop" in each["spec"]["containers"][0]["lifecycle"] for each in lower), "each of them saves"

    apply_gang(installed, namespace, a_gang(version, "pretrain", "gpu-training", node))
    installed.eventually(lambda: runs_whole(installed, namespace, "pretrain"), "the second gang")
    names = {each["metadata"]["name"] for each in lower}
    installed.eventually(lambda: names <= {*events(installed, namespace, "Preempted")}, "an event on all four of them")
    waiting = [each["status"]["phase"] for each in pods_of(installed, namespace, "sweep")]
    assert "Running" not in waiting, "no pod of it holds a GPU that the others wait for"


def test_a_pod_outside_any_group_evicts_a_gang_whole_on_1_37_and_breaks_it_on_1_36(
    installed: Installed, namespace: str, node: str, version: str
) -> None:
    older = version.endswith("v1alpha2")
    said = apply_gang(installed, namespace, a_gang(version, "sweep", "gpu-batch", node))
    assert any("[gang-broken-by-pods]" in each for each in said) is older
    installed.eventually(lambda: runs_whole(installed, namespace, "sweep"), "the gang")
    gang = {each["metadata"]["name"] for each in pods_of(installed, namespace, "sweep")}

    installed.create(gpu_pod("urgent", 1, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "urgent"), "the urgent pod")
    most = 1 if older else 4

    def evicted() -> set[str]:
        return gang & {*events(installed, namespace, "Preempted")}

    installed.eventually(lambda: len(evicted()) >= most, "the events, which the scheduler writes beside")
    assert len(evicted()) == most


@pytest.fixture(scope="module")
def with_job_groups(pytestconfig: pytest.Config) -> Iterator[Installed]:
    """A control plane whose Job controller makes Workloads and PodGroups itself, with gpu-tiers in it."""
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    gates = ["WorkloadWithJob", *(["PodGroupPreemptionPolicy"] if minor != "1.36" else [])]
    with started(ControlPlane(minor, feature_gates=gates), pytestconfig) as cluster:
        cluster.apply(json.dumps(workload_crds()), "--server-side")
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
