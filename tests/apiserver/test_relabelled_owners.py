"""A pod that is created after the label of its owner was changed gets the new tier, however soon it comes."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from webhook.kube.client import Client

from .installed import Installed, Tree, gpu_pod
from .reading import PLACES

pytestmark = pytest.mark.apiserver

TIERS = ("gpu-batch", "gpu-training", "gpu-serving")
DEPLOYMENTS, REPLICA_SETS = "/apis/apps/v1/namespaces/{}/deployments", "/apis/apps/v1/namespaces/{}/replicasets"
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


@pytest.mark.parametrize(
    ("made", "place"), [(deployment, DEPLOYMENTS), (job, PLACES["jobs"])], ids=["Deployment", "Job"]
)
def test_one_apply_that_changes_label_and_count(
    installed: Installed, namespace: str, made: Callable[[str, int], Tree], place: str
) -> None:
    """Each apply makes one more pod, within milliseconds of the one before."""
    found: dict[str, str] = {}
    for count, tier in enumerate(TIERS * 2, start=1):
        installed.read.apply(f"{place.format(namespace)}/work", made(tier, count))
        installed.eventually(partial(has_pods, installed, namespace, count), f"{count} pods")
        now = classes(installed, namespace)
        assert [now[name] for name in now.keys() - found.keys()] == [tier]
        found = now


def has_pods(installed: Installed, namespace: str, count: int) -> bool:
    return len(classes(installed, namespace)) == count


def classes(installed: Installed, namespace: str) -> dict[str, str]:
    """The class of each pod, by its name."""
    pods = installed.get("pods", namespace)["items"]
    return {each["metadata"]["name"]: each["spec"]["priorityClassName"] for each in pods}


async def test_a_pod_right_after_the_label(installed: Installed, namespace: str, client: Client) -> None:
    """A ReplicaSet's Deployment is two look-ups away; many turns, so that a race would show."""
    place, pods = DEPLOYMENTS.format(namespace), PLACES["pods"].format(namespace)
    installed.read.apply(f"{place}/work", deployment(TIERS[0], 0))
    sets = REPLICA_SETS.format(namespace)
    installed.eventually(lambda: bool(installed.read(sets)["items"]), "its ReplicaSet")
    (owner,) = (await client.get(sets))["items"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    member = gpu_pod("", 1)
    member["metadata"] = {"generateName": "work-", "labels": {"app": "work"}, "ownerReferences": [reference]}
    for tier in TIERS * 10:
        await client.patch(f"{place}/work", {"metadata": {"labels": {TIER: tier}}})
        made = await client.create(pods, member)
        assert made["spec"]["priorityClassName"] == tier, json.dumps(made["metadata"])
