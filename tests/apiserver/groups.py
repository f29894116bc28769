"""PodGroups of Kubernetes itself, and gangs that its JobSet controller makes with them."""

import json

from .installed import Installed, Tree, gpu_pod

TRAINS = ["torchrun", "--nnodes=4", "train.py"]


def group(version: str, name: str, tier: str | None = None) -> Tree:
    labels = {"gpu-tiers.dev/tier": tier} if tier else {}
    policy = {"gang": {"minCount": 2}}
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulingPolicy": policy},
    }


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
    answer = installed.create(jobset, namespace)
    assert answer.code == 0, answer.stderr
    uid, reference = (
        json.loads(answer.stdout)["metadata"]["uid"],
        {"name": jobset["metadata"]["name"], "controller": True},
    )
    owner = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "uid": uid, **reference}
    said = answer.stderr.splitlines()
    for each in made:
        each["metadata"]["ownerReferences"] = [owner]
        answer = installed.create(each, namespace)
        assert answer.code == 0, answer.stderr
        said += answer.stderr.splitlines()
    return said


def pods_of(installed: Installed, namespace: str, name: str) -> list[Tree]:
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    return list(installed.api.get("pods", namespace, labelSelector=selector)["items"])


def runs_whole(installed: Installed, namespace: str, name: str) -> bool:
    return [each["status"]["phase"] for each in pods_of(installed, namespace, name)] == ["Running"] * 4
