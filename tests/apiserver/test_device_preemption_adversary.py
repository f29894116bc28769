"""Somebody with the role `edit` in one namespace has nobody evicted in vain, and closes no node."""

import json
from collections.abc import Iterator

import pytest

from webhook.policy.preemption.node_state import RESERVATION

from .asking import running, why
from .busy_devices import Busy, seconds_until
from .conftest import new_namespace
from .installed import Installed, Tree
from .test_device_preemption import evicted

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

MALLORY = "mallory"


@pytest.fixture
def busy(preempting: Installed, namespace: str) -> Iterator[Busy]:
    """One device, which a pod of a low tier has, in a namespace where Mallory may edit."""
    found, cluster = Busy(preempting, namespace), preempting.cluster
    command = ("create", "rolebinding", MALLORY, "--clusterrole=edit", f"--user={MALLORY}", f"--namespace={namespace}")
    cluster.kubectl(*command)
    found.add_nodes("a")
    found.create(found.pod("low", "gpu-batch", grace=2))
    preempting.eventually(lambda: running(preempting, namespace, "low"), "low")
    yield found
    found.remove()


def attempt(busy: Busy, *objects: Tree) -> None:
    for each in objects:
        made = busy.installed.create(each, busy.namespace, user=MALLORY)
        assert made.code == 0, made.stderr


def nobody_is_evicted(busy: Busy, seconds: float = 15.0) -> None:
    with pytest.raises(AssertionError):
        seconds_until(lambda: bool(busy.reserved()) or not busy.on("low"), seconds)
    assert evicted(busy) == set()


def claim(busy: Busy, name: str, *, finalizer: str = "", **changed: object) -> Tree:
    """A ResourceClaim for a device of the nodes, with other fields."""
    made = busy.template(1)
    made |= {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": busy.namespace},
        "spec": made["spec"]["spec"],
    }
    made["spec"]["devices"]["requests"][0]["exactly"] |= changed
    if finalizer:
        made["metadata"]["finalizers"] = [finalizer]
    return made


def claiming(busy: Busy, name: str) -> Tree:
    """A pod of a high tier that names the ResourceClaim of its name."""
    pod = busy.pod(name, "gpu-training")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    return pod


def waits(busy: Busy, name: str) -> bool:
    conditions = busy.installed.get(f"pod/{name}", busy.namespace)["status"].get("conditions", [])
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def test_claims_that_nobody_can_satisfy(busy: Busy) -> None:
    with busy.unrest():
        changes: dict[str, Tree] = {
            "too-many": {"count": 2},
            "no-such": {"selectors": [{"cel": {"expression": "device.driver == 'other.example.com'"}}]},
            "never": {"selectors": [{"cel": {"expression": "device.attributes.size() > 99"}}]},
        }
        for name, changed in changes.items():
            attempt(busy, claim(busy, name, **changed), claiming(busy, name))
        nobody_is_evicted(busy)


def test_a_claim_that_is_being_deleted_and_never_goes(busy: Busy) -> None:
    """kube-scheduler takes no such claim."""
    with busy.unrest():
        attempt(busy, claim(busy, "kept", finalizer="mallory.example.com/kept"), claiming(busy, "kept"))
        busy.installed.eventually(lambda: waits(busy, "kept"), "that it waits")
        busy.installed.api.delete("resourceclaim/kept", namespace=busy.namespace, wait=False)
        nobody_is_evicted(busy)
        assert "is being deleted" in why(busy.installed, busy.namespace, "kept")
    nothing = {"metadata": {"finalizers": None}}
    busy.installed.api.patch("resourceclaim/kept", nothing, busy.namespace)


def test_pods_that_go_away_once_a_node_is_reserved(busy: Busy) -> None:
    """The node is closed for a second. The first may be a mistake, after the second this namespace waits a minute."""
    pods, gone = {f"high-{each}" for each in range(3)}, set[str]()
    with busy.unrest():
        attempt(busy, *(busy.pod(each, "gpu-training") for each in pods))
        while len(gone) < 2:
            seconds_until(lambda: bool(reserved_for(busy) - gone), 30)
            (named,) = reserved_for(busy) - gone
            busy.installed.api.delete(f"pod/{named}", namespace=busy.namespace, seconds=0)
            gone.add(named)
        seconds_until(lambda: not busy.reserved(), 10)
        with pytest.raises(AssertionError):
            seconds_until(lambda: bool(busy.reserved()), 20)
        (left,) = pods - gone
        assert "for pods of this namespace did not help" in why(busy.installed, busy.namespace, left)


def reserved_for(busy: Busy) -> set[str]:
    """The first pods of the reservations on its node."""
    note = busy.installed.get(f"node/{busy.node('a')}", "")["metadata"].get("annotations", {}).get(RESERVATION)
    return {json.loads(note)["name"].partition("/")[2]} if note else set()


def test_pods_that_tolerate_every_taint_get_no_reserved_device(busy: Busy) -> None:
    """Many write that to run on GPU nodes at all. They have the device again once the higher pod is gone."""

    def holders() -> list[str]:
        pods = busy.installed.get("pods", busy.namespace)["items"]
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") == busy.node("a")]

    with busy.unrest(grace=lambda: 5, tolerations=[{"operator": "Exists"}]):
        for number in range(3):
            busy.create(busy.pod(f"high-{number}", "gpu-serving"))
            seconds_until(lambda: any(each.startswith("high") for each in holders()), 40)
            busy.installed.api.delete(f"pod/high-{number}", namespace=busy.namespace, seconds=1)
            seconds_until(lambda: any(each.startswith("fresh") for each in holders()), 40)


def test_no_node_is_changed_by_hand(busy: Busy) -> None:
    taint = ("taint", "node", busy.node("a"), "gpu-tiers.dev/reserved=gpu-training:NoSchedule", f"--as={MALLORY}")
    note = ("annotate", "node", busy.node("a"), "gpu-tiers.dev/reservation={}", f"--as={MALLORY}")
    for command in (taint, note):
        assert "Forbidden" in busy.installed.cluster.kubectl(*command, check=False).stderr


def test_a_pod_that_keeps_all_others_off_its_own_node(busy: Busy) -> None:
    """It keeps them off nowhere else: pods of other namespaces have theirs."""
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with new_namespace(busy.installed.cluster) as other:
        ours = Busy(busy.installed, other)
        try:
            ours.add_nodes("a")
            ours.create(ours.pod("low", "gpu-batch", grace=2))
            busy.installed.eventually(lambda: running(busy.installed, other, "low"), "low")
            busy.add_nodes("b")
            attempt(busy, busy.pod("mallory", "gpu-batch", affinity=apart))
            busy.installed.eventually(lambda: running(busy.installed, busy.namespace, "mallory"), "it runs")
            ours.create(ours.pod("high", "gpu-training"))
            seconds_until(lambda: ours.on("high"), 40)
        finally:
            ours.remove()
