"""Somebody who may edit one namespace of a tenant that holds tries to get past the line, or to keep others in it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from localcluster import Result

from .conftest import new_namespace
from .installed import Installed, Tree, gpu_pod
from .test_changed_claims import claim
from .test_hold import GATE, Line

pytestmark = pytest.mark.apiserver

MALLORY = "--as=mallory"
GANG = "gpu-tiers.dev/gang"
H100 = "NVIDIA-H100-80GB-HBM3"


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

    def made_by(self, pod: Tree, kind: str, name: str, uid: str) -> Tree:
        versions = {"Job": "batch/v1", "ConfigMap": "v1", "PyTorchJob": "kubeflow.org/v1"}
        version = versions.get(kind, "example.com/v1")
        owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
        return pod | {"metadata": pod["metadata"] | {"ownerReferences": [owner]}}

    def asked_for(self, name: str, workers: int, worker: Tree, *, suspend: bool = False) -> str:
        """The uid of a PyTorchJob whose pods nobody makes but mallory: no controller of that kind runs here."""
        replicas = {"Worker": {"replicas": workers, "template": worker}}
        spec = {"runPolicy": {"suspend": suspend}, "pytorchReplicaSpecs": replicas}
        self.create({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec})
        return str(self.installed.get(f"pytorchjob/{name}", self.namespace)["metadata"]["uid"])

    def sharing(self, name: str, claim: str) -> Tree:
        """A pod with the devices of a ResourceClaim, which others may name as well."""
        pod = gpu_pod(name, tier="gpu-batch")
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
        return pod

    def of_product(self, name: str, gpus: int, product: str) -> Tree:
        """A pod for the nodes with that GPU, made by one that all others are made by."""
        pod = gpu_pod(name, gpus, tier="gpu-batch", nodeSelector={"nvidia.com/gpu.product": product})
        return self.made_by(pod, "Team", "all", "0c5e1b1a-5f0c-4e0c-9d5c-000000000001")

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


def test_pods_that_leave_their_gang_make_no_room_for_others_in_it(line: Attacked) -> None:
    """They would count alone, beside a gang that still has room for as many: twice the GPUs, and so on."""
    line.create(line.job("mine", 2, "gpu-batch"))
    line.installed.eventually(lambda: len(line.running()) == 2, "the Job")
    line.create(line.pod("head", gpus=7))
    line.is_told(1)
    boss = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "controller": True}
    boss["uid"] = line.asks("create", "configmap", "boss", "-o=json").json()["metadata"]["uid"]
    change = json.dumps({"metadata": {"ownerReferences": [boss]}})
    for name in line.running():
        assert not line.asks("patch", "pod", name, "--type=merge", "-p", change).code
        marked = line.asks("annotate", "pod", name, "--overwrite", "gpu-tiers.dev/gang=other")
        assert "gpu-tiers counts the pod by it: leave it as it is" in marked.stderr
    line.is_told(3)  # the Job makes two anew
    before = line.status()["ledger"]["term"]
    line.installed.kill()
    line.installed.restart()
    line.installed.eventually(lambda: line.status()["ledger"]["term"] != before, "the next leader")
    line.is_told(3)
    assert len(line.running()) == 2
    assert line.installed.usage(f"hold-{line.namespace}") == "total 2/8"


def test_whom_its_pods_say_they_are_of_is_told_only_where_it_can_be_a_name(line: Attacked) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    forged = line.made_by(line.pod("forged"), "Job\n  free: 64 GPUs", "x", "0c5e1b1a-5f0c-4e0c-9d5c-000000000001")
    assert not line.makes(forged).code
    line.is_told(1)
    assert [each["workload"] for each in line.status()["held"]["line"]] == ["Pod/forged"]


def test_who_waits_for_the_row_of_its_tier_keeps_what_it_needs_of_the_total(
    installed: Installed, namespace: str, wide: str
) -> None:
    line, rows = Attacked(installed, namespace, wide), [{"gpus": 8}, {"tier": "gpu-training", "gpus": 3}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        line.create(line.pod("there", gpus=2))
        line.eventually_runs("there")
        line.create(line.pod("head", gpus=3))
        line.create(line.pod("all", gpus=6, tier="gpu-batch"))
        line.is_told(2)
        line.delete("pod", "there")
        line.eventually_runs("head")
        assert line.waiting() == {"all"}


def test_a_place_on_one_flavor_is_none_on_another(installed: Installed, namespace: str, wide: str) -> None:
    """And who names no flavor waits for room on all of them: it is not booked before its gate can be opened."""
    line, rows = Attacked(installed, namespace, wide), [{"gpus": 12}, {"resourceFlavor": "h100", "gpus": 4}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        for name, gpus, product in (("poor", 1, "T4"), ("there", 2, H100)):
            line.create(line.of_product(name, gpus, product))
        line.installed.eventually(lambda: len(line.running()) == 2, "both to run")
        line.create(line.of_product("head", 4, H100))
        line.waits("head")
        line.delete("pod", "poor")
        line.create(line.of_product("rich", 1, H100))
        line.create(line.pod("anywhere", gpus=4))
        line.is_told(3)
        assert line.waiting() == {"head", "rich", "anywhere"}
        line.create(line.of_product("next", 6, "T4"))
        line.installed.eventually(
            lambda: len(line.pods()) == 5 and line.waiting() == {"head", "rich", "anywhere"}, "room for another flavor"
        )


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


def test_a_suspended_job_banks_no_age_by_a_pod_that_says_it_is_its(line: Attacked) -> None:
    """The pod waits, and waits for itself alone."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    job = line.job("late", 4, "gpu-batch")
    job["spec"]["suspend"] = True
    uid = line.makes(job).json()["metadata"]["uid"]
    assert not line.makes(line.made_by(line.pod("dummy", tier="gpu-batch"), "Job", "late", uid)).code
    line.waits("dummy")
    time.sleep(1.5)
    line.create(line.pod("next", gpus=6, tier="gpu-batch"))
    line.is_told(2)
    time.sleep(1.5)
    line.asks("patch", "job", "late", "--type=merge", '-p={"spec": {"suspend": false}}')
    line.is_told(6)
    line.delete("pod", "there")
    line.eventually_runs("next")


def test_a_gang_that_grows_while_it_waits_has_no_older_place_for_that(line: Attacked) -> None:
    """Two pods that were held first keep no place for seven."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    job = line.job("grows", 2, "gpu-batch")
    del job["spec"]["completionMode"], job["spec"]["completions"]
    assert not line.makes(job).code
    line.is_told(2)
    time.sleep(1.5)
    line.create(line.pod("next", gpus=6, tier="gpu-batch"))
    line.is_told(3)
    time.sleep(1.5)
    line.asks("patch", "job", "grows", "--type=merge", '-p={"spec": {"parallelism": 7}}')
    line.is_told(8)
    line.delete("pod", "there")
    line.eventually_runs("next")


@pytest.mark.parametrize(("small", "suspend"), [(2, False), (1, False), (7, True)])
def test_a_gang_that_grows_and_makes_no_more_pods_is_no_older_than_that(
    line: Attacked, small: int, *, suspend: bool
) -> None:
    """Its only pod is the middle one, and was held first."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    grows = line.asked_for("grows", small, line.pod("worker", tier="gpu-batch"), suspend=suspend)
    large = {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": {"Worker": {"replicas": 7}}}
    line.create(line.made_by(line.pod("old", tier="gpu-batch"), "PyTorchJob", "grows", grows))
    line.waits("old")
    time.sleep(1.5)
    line.create(line.pod("next", gpus=6, tier="gpu-batch"))
    line.is_told(1 if suspend else 2)  # the pods of a suspended gang are in no line
    time.sleep(1.5)
    change, where = json.dumps({"spec": large}), f"--namespace={line.namespace}"
    line.installed.cluster.kubectl("patch", "pytorchjob", "grows", where, "--type=merge", f"-p={change}")
    line.is_told(2)
    line.installed.eventually(lambda: line.status()["held"]["line"][0]["workload"] == "Pod/next", "the next is first")
    line.delete("pod", "there")
    line.eventually_runs("next")
    assert line.waiting() == {"old"}


def test_a_gang_lets_nobody_pass_on_a_row_of_which_it_holds_nothing(
    installed: Installed, namespace: str, wide: str
) -> None:
    """A pod of another tier, of another flavor, or with a claim: it would take what the first of the line waits for."""
    line = Attacked(installed, namespace, wide)
    rows = [{"gpus": 18}, {"tier": "gpu-training", "gpus": 4}, {"resourceFlavor": "h100", "gpus": 4}]

    def on(product: str, pod: Tree) -> Tree:
        return pod | {"spec": pod["spec"] | {"nodeSelector": {"nvidia.com/gpu.product": product}}}

    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        mine = line.asked_for("mine", 4, on("T4", line.pod("worker", tier="gpu-batch")))
        own = [
            line.made_by(on("T4", line.pod(name, tier="gpu-batch")), "PyTorchJob", "mine", mine)
            for name in ("m0", "m1")
        ]
        for each in (own[0], on("T4", line.pod("there", 2)), on(H100, line.pod("there-too", 2, "gpu-batch"))):
            line.create(each)
        line.installed.eventually(lambda: not line.waiting() and len(line.pods()) == 3, "three gates, opened")
        for each in (on("T4", line.pod("head", 4)), on(H100, line.pod("head-too", 4, "gpu-batch"))):
            line.create(each)
        line.is_told(2)
        line.create(claim("devices", 9))
        forged = (
            on("T4", line.pod("higher")),
            on(H100, line.pod("rich", tier="gpu-batch")),
            on("T4", line.sharing("claimed", "devices")),
        )
        for each in (*(line.made_by(pod, "PyTorchJob", "mine", mine) for pod in forged), own[1]):
            line.create(each)
        line.installed.eventually(lambda: "m1" not in line.waiting(), "one of the gang's own, opened")
        line.is_told(5)
        assert line.waiting() == {"head", "head-too", "higher", "rich", "claimed"}


def test_a_gang_has_its_turn_by_the_lowest_of_its_tiers(installed: Installed, namespace: str, wide: str) -> None:
    """A pod of a higher tier that says it is of the gang lets it pass nobody; no gang has such a pod of its own."""
    line, rows = Attacked(installed, namespace, wide), [{"gpus": 8}, {"tier": "gpu-training", "gpus": 2}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        line.create(line.pod("there", gpus=8, tier="gpu-batch"))
        line.eventually_runs("there")
        line.create(line.pod("first", gpus=6, tier="gpu-batch"))
        line.waits("first")
        worker = line.pod("worker", tier="gpu-batch")
        forged = line.asked_for("forged", 6, worker)
        line.create(line.made_by(line.pod("high"), "PyTorchJob", "forged", forged))
        roles = {"Master": (1, line.pod("master")), "Worker": (5, worker)}
        specs = {role: {"replicas": pods, "template": template} for role, (pods, template) in roles.items()}
        mixed = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "mixed"}}
        refused = line.installed.create(mixed | {"spec": {"pytorchReplicaSpecs": specs}}, namespace)
        assert "the pods of a PyTorchJob are useful only together and need one tier" in refused.stderr
        line.is_told(2)
        line.delete("pod", "there")
        line.eventually_runs("high", "first")


def test_a_claim_that_others_hold_yet_is_no_place(line: Attacked) -> None:
    """Who ends leaves nothing of it to an heir."""
    boss = line.asks("create", "configmap", "boss", "-o=json").json()["metadata"]["uid"]
    line.create(claim("devices", 4))
    for name in ("s0", "s1", "s2"):
        line.create(line.made_by(line.sharing(name, "devices"), "ConfigMap", "boss", boss))
    line.installed.eventually(lambda: not line.waiting(), "three gates, opened")
    line.create(line.pod("there", gpus=4))
    line.eventually_runs("there")
    line.create(line.pod("head", gpus=4, tier="gpu-batch"))
    line.waits("head")
    line.create(line.made_by(line.pod("heir", 4, "gpu-batch"), "ConfigMap", "boss", boss))
    line.is_told(2)
    line.delete("pod", "s0", "there")
    line.eventually_runs("head")
    assert line.waiting() == {"heir"}


def test_a_claim_is_no_larger_when_the_gate_of_its_pod_opens(line: Attacked) -> None:
    """It is deleted and made anew, again and again, while its pod is booked and opened."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(claim("devices", 1))
    line.create(line.sharing("waits", "devices"))
    line.is_told(1)
    line.delete("pod", "there")
    for _ in range(5):
        line.asks("delete", "resourceclaim", "devices", "--wait=false")
        assert line.makes(claim("devices", 8)).code
        line.makes(claim("devices", 1))
    line.installed.eventually(lambda: not line.waiting(), "its gate, opened")
    line.installed.eventually(lambda: line.installed.usage(f"hold-{line.namespace}") == "total 1/8", "a GPU in use")


def test_a_pod_that_leaves_its_gang_leaves_no_place_beside_it(line: Attacked) -> None:
    """The gang makes another on what it holds already."""
    line.create(line.job("mine", 2, "gpu-batch"))
    line.create(line.pod("there", gpus=5))
    line.installed.eventually(lambda: len(line.running()) == 3, "the Job, and another")
    line.create(line.pod("head", gpus=3, tier="gpu-batch"))
    line.is_told(1)
    boss = line.asks("create", "configmap", "boss", "-o=json").json()["metadata"]["uid"]
    line.create(line.made_by(line.pod("heir", tier="gpu-batch"), "ConfigMap", "boss", boss))
    line.is_told(2)
    leaves = next(name for name in line.running() if name.startswith("mine"))
    owner = line.made_by(line.pod(leaves), "ConfigMap", "boss", boss)["metadata"]["ownerReferences"]
    line.asks("patch", "pod", leaves, "--type=merge", f"-p={json.dumps({'metadata': {'ownerReferences': owner}})}")
    line.is_told(3)  # the Job makes another
    line.asks("delete", "pod", leaves, "--wait=false")  # the Job leaves its finalizer on it
    line.installed.eventually(lambda: len(line.running()) == 3, "the Job's other")
    line.is_told(2)
    assert line.waiting() == {"head", "heir"}


def test_pods_that_outlive_their_job_wait_by_themselves(line: Attacked) -> None:
    """They were in no line, and nobody would ever open their gates."""
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(line.job("gone", 4, "gpu-batch"))
    line.is_told(4)
    line.asks("delete", "job", "gone", "--cascade=orphan")
    line.delete("pod", "there")
    line.installed.eventually(lambda: len(line.running()) == 4, "all four")
