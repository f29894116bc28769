"""A pod that is created after the label of its owner was changed gets the new tier, however soon it comes."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from webhook.kube.client import Client

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

TIERS = ("gpu-batch", "gpu-training", "gpu-serving")
TIER = "gpu-tiers.dev/tier"


def deployment(tier: str, replicas: int) -> Tree:
    pod = {"metadata": {"labels": {"app": "work"}}, "spec": gpu_pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "work"}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": labelled(tier), "spec": spec}


def job(tier: str, parallelism: int) -> Tree:
    pod = {"spec": gpu_pod("")["spec"] | {"restartPolicy": "Never"}}
    spec = {"parallelism": parallelism, "completions": len(TIERS) * 2, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": labelled(tier), "spec": spec}


def labelled(tier: str) -> Tree:
    return {"name": "work", "labels": {TIER: tier}}


@pytest.mark.parametrize("made", [deployment, job], ids=["Deployment", "Job"])
def test_one_apply_that_changes_label_and_count(
    installed: Installed, namespace: str, made: Callable[[str, int], Tree]
) -> None:
    """Each apply makes one more pod, within milliseconds of the one before."""
    found: dict[str, str] = {}
    for count, tier in enumerate(TIERS * 2, start=1):
        installed.api.apply(made(tier, count), namespace=namespace)
        installed.eventually(partial(has_pods, installed, namespace, count), f"{count} pods")
        now = classes(installed, namespace)
        assert [now[name] for name in now.keys() - found.keys()] == [tier]
        found = now


def test_who_relabels_a_workload_reads_that_its_pods_stay(installed: Installed, namespace: str) -> None:
    installed.api.apply(job("gpu-training", 1), namespace=namespace)
    installed.eventually(partial(has_pods, installed, namespace, 1), "its pod")
    change = ("label", "job/work", f"{TIER}=gpu-batch", "--overwrite", "-n", namespace)
    said = installed.cluster.kubectl(*change).stderr
    assert "Warning: new pods of this Job get gpu-batch; existing pods keep their tier" in said
    assert list(classes(installed, namespace).values()) == ["gpu-training"]


def has_pods(installed: Installed, namespace: str, count: int) -> bool:
    return len(classes(installed, namespace)) == count


def classes(installed: Installed, namespace: str) -> dict[str, str]:
    """The class of each pod, by its name."""
    pods = installed.get("pods", namespace)["items"]
    return {each["metadata"]["name"]: each["spec"]["priorityClassName"] for each in pods}


async def test_a_pod_right_after_the_label(installed: Installed, namespace: str, client: Client) -> None:
    """A ReplicaSet's Deployment is two look-ups away; many turns, so that a race would show."""
    installed.api.apply(deployment(TIERS[0], 0), namespace=namespace)
    installed.eventually(lambda: bool(installed.get("replicasets", namespace)["items"]), "its ReplicaSet")
    (owner,) = installed.get("replicasets", namespace)["items"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    member = gpu_pod("", 1)
    member["metadata"] = {"generateName": "work-", "labels": {"app": "work"}, "ownerReferences": [reference]}
    for tier in TIERS * 10:
        await client.patch(installed.api.path("deployment/work", namespace), {"metadata": {"labels": {TIER: tier}}})
        made = await client.create(installed.api.path("pods", namespace), member)
        assert made["spec"]["priorityClassName"] == tier, json.dumps(made["metadata"])
