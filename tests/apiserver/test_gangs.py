"""Gangs on a real API server: a workload is let in whole or not at all, and its pods draw on what it holds."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def pytorchjob(name: str, workers: int, gpus: int = 1, **spec: Any) -> Tree:
    """As a user writes it, with a master and some workers of as many GPUs."""
    template = gpu_pod("", gpus)
    del template["apiVersion"], template["kind"], template["metadata"]["name"]
    replicas = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": workers, "template": template}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
    }


class Gangs:
    """A tenant of 8 GPUs of training, and what its user does."""

    def __init__(self, installed: Installed, namespace: str) -> None:
        self.installed = installed
        self.namespace = namespace

    def apply(self, tree: Tree) -> str:
        """`kubectl create`: what it prints to stderr."""
        return self.installed.create(tree, self.namespace).stderr

    def pod(self, name: str, of: str, gpus: int = 1) -> str:
        """The operator makes a pod of a PyTorchJob: what it is told."""
        uid = self.installed.get(f"pytorchjob/{of}", self.namespace)["metadata"]["uid"]
        tree = gpu_pod(name, gpus)
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": of, "uid": uid, "controller": True}
        tree["metadata"]["ownerReferences"] = [owner]
        return self.installed.create(tree, self.namespace).stderr

    def patch(self, name: str, patch: Tree) -> str:
        """`kubectl patch`: what it prints to stderr."""
        arguments = ("patch", "pytorchjob", name, "-n", self.namespace, "--type=merge", f"--patch={json.dumps(patch)}")
        return self.installed.cluster.kubectl(*arguments, check=False).stderr

    def delete(self, what: str, *arguments: str) -> None:
        self.installed.cluster.kubectl("delete", what, f"--namespace={self.namespace}", *arguments)

    def shows(self, usage: str) -> None:
        """`kubectl get tenantquota` shows this before long."""
        self.installed.eventually(
            lambda: self.installed.usage("gang") == usage, f"{usage}, and not {self.installed.usage('gang')}"
        )


@pytest.fixture
def gangs(installed: Installed, namespace: str) -> Iterator[Gangs]:
    installed.tenant("gang", namespace, quotas=[{"tier": "gpu-training", "gpus": "8"}, {"gpus": "16"}])
    yield Gangs(installed, namespace)
    installed.cluster.kubectl("delete", "tenantquota", "gang")


def test_of_two_gangs_that_fit_alone_one_is_let_in_whole(gangs: Gangs) -> None:
    assert gangs.apply(pytorchjob("first", 7)) == ""
    refused = gangs.apply(pytorchjob("second", 7))
    assert "PyTorchJob second asks for 8 GPUs (8 x 1); tenant gang has 0 of gpu-training free. " in refused
    assert "Would fit: gpu-serving (8 free), gpu-batch (8 free), gpu-interactive (8 free). " in refused
    gangs.shows("gpu-training 0/8 (+8 reserved), total 0/16 (+8 reserved)")
    for number in range(8):
        assert gangs.pod(f"first-{number}", "first") == "", "the pods of one that was let in are never refused"
    gangs.shows("gpu-training 8/8, total 8/16")
    assert "gpu-training is at 8 of 8 GPUs; this pod asks for 1." in gangs.pod("first-more", "first")


def test_a_gang_keeps_its_place_until_it_is_deleted(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 3))
    assert gangs.pod("one", "first") == ""
    gangs.shows("gpu-training 1/8 (+3 reserved), total 1/16 (+3 reserved)")
    gangs.delete("pod/one", "--force", "--grace-period=0")
    gangs.shows("gpu-training 0/8 (+4 reserved), total 0/16 (+4 reserved)")
    assert gangs.pod("one", "first") == ""
    gangs.shows("gpu-training 1/8 (+3 reserved), total 1/16 (+3 reserved)")
    gangs.delete("pytorchjob/first", "--cascade=orphan")
    gangs.shows("gpu-training 1/8, total 1/16")


def test_a_gang_grows_by_what_is_free_and_shrinks(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 3))

    def workers(count: int) -> Tree:
        return {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": count}}}}

    assert "PyTorchJob first asks for 10 GPUs (10 x 1); tenant gang has 8 of gpu-training free." in gangs.patch(
        "first", workers(9)
    ) or "gpu-training allows 8 GPUs; this PyTorchJob asks for 10 in all." in gangs.patch("first", workers(9))
    assert gangs.patch("first", workers(7)) == ""
    gangs.shows("gpu-training 0/8 (+8 reserved), total 0/16 (+8 reserved)")
    assert gangs.patch("first", workers(1)) == ""
    gangs.shows("gpu-training 0/8 (+2 reserved), total 0/16 (+2 reserved)")


def test_a_suspended_workload_is_booked_when_it_is_released(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 5))
    assert gangs.apply(pytorchjob("queued", 3, runPolicy={"suspend": True})) == ""
    gangs.shows("gpu-training 0/8 (+6 reserved), total 0/16 (+6 reserved)")
    release = {"spec": {"runPolicy": {"suspend": False}}}
    assert "PyTorchJob queued asks for 4 GPUs (4 x 1); tenant gang has 2 of gpu-training free." in gangs.patch(
        "queued", release
    )
    gangs.delete("pytorchjob/first")
    gangs.shows("gpu-training 0/8, total 0/16")
    assert gangs.patch("queued", release) == ""
    gangs.shows("gpu-training 0/8 (+4 reserved), total 0/16 (+4 reserved)")
    assert gangs.patch("queued", {"spec": {"runPolicy": {"suspend": True}}}) == ""
    gangs.shows("gpu-training 0/8, total 0/16")


def test_a_gang_is_demoted_as_a_whole(installed: Installed, namespace: str) -> None:
    rows = [{"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}]
    installed.tenant("lending", namespace, quotas=rows, onExceed="Demote")
    try:
        gangs = Gangs(installed, namespace)
        told = gangs.apply(pytorchjob("wide", 3))
        assert (
            "tenant lending is over its quota of gpu-training: all pods of this PyTorchJob run as gpu-serving" in told
        )
        for number in range(4):
            gangs.pod(f"wide-{number}", "wide")
        pods = installed.get("pods", namespace)["items"]
        assert {each["spec"]["priorityClassName"] for each in pods} == {"gpu-serving"}
        assert len(pods) == 4
    finally:
        installed.cluster.kubectl("delete", "tenantquota", "lending")
