"""Gangs of Kubernetes' own kinds on the real scheduler: who trains goes as a whole (KEP-4671, KEP-5710)."""

import json

import pytest

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
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    return list(installed.read(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"])


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
