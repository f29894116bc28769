"""Somebody who may edit one namespace of a tenant that holds tries to get past the line, or to keep others in it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localcluster import Result

from .conftest import new_namespace
from .installed import Installed, Tree
from .test_hold import GATE, Line

pytestmark = pytest.mark.apiserver

MALLORY = "--as=mallory"
GANG = "gpu-tiers.dev/gang"


class Attacked(Line):
    """A line of 8 GPUs, and mallory, who has the role `edit` in its namespace."""

    def asks(self, *arguments: str, **options: str) -> Result:
        where = (f"--namespace={self.namespace}", MALLORY)
        return self.installed.cluster.kubectl(*arguments, *where, check=False, **options)

    def makes(self, tree: Tree) -> Result:
        return self.asks("create", "-f", "-", "-o=json", input=json.dumps(tree))

    def waits(self, *names: str) -> None:
        self.installed.eventually(lambda: set(names) <= self.waiting(), f"{names} to be held")

    def is_told(self, pods: int) -> None:
        """Until the tenant's status tells of so many that wait: by then the leader has looked at them."""
        self.installed.eventually(lambda: self.status().get("held", {}).get("pods") == pods, f"{pods} in the line")

    def status(self) -> Tree:
        found: Tree = self.installed.get(f"tenantquota/hold-{self.namespace}", "").get("status", {})
        return found

    def made_by(self, pod: Tree, kind: str, name: str, uid: str) -> Tree:
        version = "batch/v1" if kind == "Job" else "v1"
        owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
        return pod | {"metadata": pod["metadata"] | {"ownerReferences": [owner]}}

    def with_gate(self, pod: Tree, *gates: Any) -> Tree:
        return pod | {"spec": pod["spec"] | {"schedulingGates": [*gates]}}


@pytest.fixture(scope="module")
def wide(installed: Installed) -> str:
    installed.cluster.add_node("adversary", gpus=64)
    return "adversary"


@pytest.fixture
def line(installed: Installed, wide: str) -> Iterator[Attacked]:
    with new_namespace(installed.cluster) as namespace:
        where = f"--namespace={namespace}"
        installed.cluster.kubectl("create", "rolebinding", "mallory", "--clusterrole=edit", "--user=mallory", where)
        with installed.tenant_for(f"hold-{namespace}", namespace, quotas=[{"gpus": 8}], onExceed="Hold"):
            yield Attacked(installed, namespace, wide)


def test_pods_that_say_they_are_of_a_job_that_runs_do_not_pass_the_line(line: Attacked) -> None:
    line.create(line.job("mine", 2, "gpu-batch"))
    line.installed.eventually(lambda: len(line.running()) == 2, "the Job")
    uid = line.installed.get("job/mine", line.namespace)["metadata"]["uid"]
    line.create(line.pod("head", gpus=8))
    line.waits("head")
    assert not line.makes(line.made_by(line.pod("owned", tier="gpu-batch"), "Job", "mine", uid)).code
    marked = line.pod("marked", tier="gpu-batch")
    marked["metadata"]["annotations"] = {GANG: uid}
    answer = line.makes(marked)
    assert answer.json()["metadata"]["annotations"][GANG] == "", "what it says is not what is so"
    line.is_told(3)
    assert line.waiting() == {"head", "owned", "marked"}
    line.delete("pod", "owned")  # else it would take the place of one of the Job's: a GPU for a GPU
    line.delete("job", "mine")
    line.eventually_runs("head")


def test_one_gpu_given_up_is_no_place_for_seven(line: Attacked) -> None:
    uid = line.asks("create", "configmap", "boss", "-o=json").json()["metadata"]["uid"]
    assert not line.makes(line.made_by(line.pod("one", tier="gpu-batch"), "ConfigMap", "boss", uid)).code
    line.create(line.pod("there", gpus=7))
    line.eventually_runs("one", "there")
    line.create(line.pod("head", gpus=8))
    line.waits("head")
    assert not line.makes(line.made_by(line.pod("seven", 7, "gpu-batch"), "ConfigMap", "boss", uid)).code
    line.waits("seven")
    line.asks("delete", "pod", "one", "--wait=false")
    line.delete("pod", "there")
    line.eventually_runs("head")
    assert line.waiting() == {"seven"}


def test_who_stands_in_no_line_is_refused_while_others_wait(line: Attacked) -> None:
    line.create(line.pod("there", gpus=4))
    line.eventually_runs("there")
    line.create(line.pod("head", gpus=6))
    line.is_told(1)
    bound = line.pod("bound", tier="gpu-batch")
    bound["spec"]["nodeName"] = line.node
    told = "is kept for pods that wait before this pod, which names its node"
    assert told in line.makes(bound).stderr
    bound["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert told in line.makes(bound).stderr
    grouped = line.pod("grouped", tier="gpu-batch")
    grouped["metadata"]["labels"] |= {"kueue.x-k8s.io/pod-group-name": "g"}
    grouped["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    assert "and group g can't wait: no workload makes it" in line.makes(grouped).stderr
    assert line.running() == {"there"}
    line.delete("pod", "there")
    line.eventually_runs("head")
    line.is_told(0)
    bound["spec"]["nodeName"] = line.node
    bound["metadata"]["annotations"] = {}
    assert not line.makes(bound).code, "nobody waits any more"


def test_it_is_no_older_than_it_is(line: Attacked) -> None:
    line.create(line.pod("there", gpus=8))
    line.create(line.pod("first", gpus=8, tier="gpu-batch"))
    line.waits("first")
    aged = line.pod("aged", 8, "gpu-batch")
    aged["metadata"] |= {"creationTimestamp": "2001-01-01T00:00:00Z", "uid": "00000000-0000-4000-8000-000000000000"}
    aged["status"] = {"phase": "Succeeded"}
    assert not line.makes(aged).code
    line.is_told(2)
    line.delete("pod", "there")
    line.eventually_runs("first")
    assert line.waiting() == {"aged"}


def test_a_pod_that_cannot_end_does_not_keep_what_it_waited_for(line: Attacked) -> None:
    """A finalizer of one's own."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    stays = line.pod("stays", 8, "gpu-batch")
    stays["metadata"]["finalizers"] = ["example.com/never"]
    assert not line.makes(stays).code
    line.waits("stays")
    line.asks("delete", "pod", "stays", "--wait=false")
    line.create(line.pod("next", gpus=8, tier="gpu-batch"))
    line.delete("pod", "there")
    line.eventually_runs("next")
    line.asks("patch", "pod", "stays", "--type=merge", '--patch={"metadata": {"finalizers": null}}')


def test_gates_of_ones_own_hold_up_nobody_elses(line: Attacked) -> None:
    """Its GPUs are booked, as those of a pod are that runs: what is over stays for the others."""
    many = [{"name": f"example.com/g{number}"} for number in range(64)]
    assert not line.makes(line.with_gate(line.pod("many", 4, "gpu-batch"), *many)).code
    twice = line.makes(line.with_gate(line.pod("twice"), GATE, GATE))
    assert "Duplicate value" in twice.stderr
    line.create(line.pod("other", gpus=4, tier="gpu-batch"))
    line.eventually_runs("other")
    line.installed.eventually(
        lambda: line.installed.get("pod/many", line.namespace)["spec"]["schedulingGates"] == many, "ours, opened"
    )
    line.installed.eventually(lambda: "8/8" in line.installed.usage(f"hold-{line.namespace}"), "all 8, counted")


def test_our_gate_holds_nothing_where_nobody_holds(line: Attacked) -> None:
    with new_namespace(line.installed.cluster) as free:
        for namespace in (free, "kube-system"):
            answer = line.installed.create(line.with_gate(line.pod("brought"), GATE), namespace)
            assert not answer.code, answer.stderr
        line.installed.eventually(
            lambda: all(
                not line.installed.get("pod/brought", each)["spec"].get("schedulingGates")
                for each in (free, "kube-system")
            ),
            "both gates, opened",
        )
        where = ("--namespace=kube-system", "--grace-period=0", "--force")
        line.installed.cluster.kubectl("delete", "pod", "brought", *where)
