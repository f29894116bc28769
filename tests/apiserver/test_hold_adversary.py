"""A user who may edit one namespace of a queueing tenant tries to get GPUs beyond its rows, or past a gate."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localcluster import Result
from tests.builders.claims import a_claim

from .conftest import new_namespace
from .installed import Installed, Tree, gpu_pod
from .queue import GATE, QueueingTenant

pytestmark = pytest.mark.apiserver

MALLORY = "--as=mallory"
GANG = "gpu-tiers.dev/gang"
H100 = "NVIDIA-H100-80GB-HBM3"


class Attacked(QueueingTenant):
    """A line of 8 GPUs, and mallory, who has the role `edit` in its namespace."""

    def asks(self, *arguments: str, **options: str) -> Result:
        where = (f"--namespace={self.namespace}", MALLORY)
        return self.installed.cluster.kubectl(*arguments, *where, check=False, **options)

    def makes(self, tree: Tree) -> Result:
        return self.asks("create", "-f", "-", "-o=json", input=json.dumps(tree))

    def waits(self, *names: str) -> None:
        self.installed.eventually(lambda: set(names) <= self.waiting(), f"{names} to be gated")

    def shows(self, pods: int) -> None:
        """Wait until the tenant's status shows so many queued pods: by then the leader has looked at them."""
        self.installed.eventually(lambda: self.status().get("queue", {}).get("pods") == pods, f"{pods} in the queue")

    def made_by(self, pod: Tree, kind: str, name: str, uid: str) -> Tree:
        versions = {"Job": "batch/v1", "ConfigMap": "v1"}
        version = versions.get(kind, "example.com/v1")
        owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
        return pod | {"metadata": pod["metadata"] | {"ownerReferences": [owner]}}

    def sharing(self, name: str, claim: str) -> Tree:
        """A pod with the devices of a ResourceClaim, which others may name as well."""
        pod = gpu_pod(name, tier="gpu-batch")
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
        return pod

    def of_product(self, name: str, gpus: int, product: str) -> Tree:
        """A pod for the nodes with that GPU."""
        return gpu_pod(name, gpus, tier="gpu-batch", nodeSelector={"nvidia.com/gpu.product": product})

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
    line.shows(3)
    assert line.waiting() == {"head", "owned", "marked"}
    line.delete("pod", "owned")  # else it would take the place of one of the Job's: a GPU for a GPU
    line.delete("job", "mine")
    line.eventually_runs("head")


def test_pods_that_leave_their_gang_make_no_room_for_others_in_it(line: Attacked) -> None:
    """They would count alone, beside a gang that still has room for as many: twice the GPUs, and so on."""
    line.create(line.job("mine", 2, "gpu-batch"))
    line.installed.eventually(lambda: len(line.running()) == 2, "the Job")
    line.create(line.pod("head", gpus=7))
    line.shows(1)
    boss = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "controller": True}
    boss["uid"] = line.asks("create", "configmap", "boss", "-o=json").json()["metadata"]["uid"]
    change = json.dumps({"metadata": {"ownerReferences": [boss]}})
    for name in line.running():
        assert not line.asks("patch", "pod", name, "--type=merge", "-p", change).code
        marked = line.asks("annotate", "pod", name, "--overwrite", "gpu-tiers.dev/gang=other")
        assert "gpu-tiers counts the pod by this annotation: leave it unchanged" in marked.stderr
    line.shows(3)  # the Job makes two again
    before = line.status()["ledger"]["term"]
    line.installed.change_leader()
    line.installed.eventually(lambda: line.status()["ledger"]["term"] != before, "the next leader")
    line.shows(3)
    assert len(line.running()) == 2
    assert [each["used"] for each in line.status()["usage"]] == ["2"]


def test_the_owner_that_its_pods_name_is_shown_only_where_it_can_be_a_name(line: Attacked) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    forged = line.made_by(line.pod("forged"), "Job\n  free: 64 GPUs", "x", "0c5e1b1a-5f0c-4e0c-9d5c-000000000001")
    assert not line.makes(forged).code
    line.shows(1)
    assert [each["workload"] for each in line.status()["queue"]["entries"]] == ["Pod/forged"]


def test_a_pod_that_names_no_flavor_is_booked_when_all_rows_have_room(
    installed: Installed, namespace: str, wide: str
) -> None:
    """A pod booked on none of the rows could not be opened where one is full, and would keep its room."""
    line, rows = Attacked(installed, namespace, wide), [{"gpus": 12}, {"resourceFlavor": "h100", "gpus": 4}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        line.create(line.of_product("there", 2, H100))
        line.installed.eventually(lambda: not line.waiting(), "its gate, opened")
        line.create(line.pod("anywhere", gpus=4))
        line.shows(1)
        line.create(line.of_product("next", 6, "T4"))
        line.installed.eventually(lambda: line.waiting() == {"anywhere"}, "room for another flavor")
        line.delete("pod", "there")
        line.installed.eventually(lambda: not line.waiting(), "room on all rows")


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


def test_a_claim_is_no_larger_when_the_gate_of_its_pod_opens(line: Attacked) -> None:
    """The claim is deleted and made again, repeatedly, while its pod is booked and opened."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(a_claim("devices", 1).unplaced())
    line.create(line.sharing("waits", "devices"))
    line.shows(1)
    line.delete("pod", "there")
    for _ in range(5):
        line.asks("delete", "resourceclaim", "devices", "--wait=false")
        assert line.makes(a_claim("devices", 8).unplaced()).code
        line.makes(a_claim("devices", 1).unplaced())
    line.installed.eventually(lambda: not line.waiting(), "its gate, opened")
    line.installed.eventually(lambda: line.installed.usage(f"hold-{line.namespace}") == "total 1/8", "a GPU in use")


def test_pods_that_outlive_their_job_wait_by_themselves(line: Attacked) -> None:
    """They were in no queue, and nobody would ever open their gates."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(line.job("gone", 4, "gpu-batch"))
    line.shows(4)
    line.asks("delete", "job", "gone", "--cascade=orphan")
    line.delete("pod", "there")
    line.installed.eventually(lambda: len(line.running()) == 4, "all four")
