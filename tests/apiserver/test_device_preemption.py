"""Preemption for devices of DRA on a real scheduler: nodes are reserved, pods evicted, and who was to get it does.

Every test has claims of another driver that are freed elsewhere, and fresh pods of a low tier.
"""

import random
from collections.abc import Iterator

import pytest

from .asking import events, running, why
from .busy_devices import Busy, seconds_until
from .installed import Installed

pytestmark = pytest.mark.apiserver

SOON = 12.0
"""Seconds from the end of the last victim: kube-scheduler asks a pod that failed again after 10 s at most."""


@pytest.fixture(scope="module")
def preempting(installed: Installed) -> Iterator[Installed]:
    with installed.policy_with(preemption={"dra": "On"}):
        yield installed


@pytest.fixture
def busy(preempting: Installed, namespace: str) -> Iterator[Busy]:
    found = Busy(preempting, namespace)
    yield found
    found.remove()


def all_run(busy: Busy, *names: str) -> None:
    busy.installed.eventually(lambda: all(running(busy.installed, busy.namespace, each) for each in names), str(names))


def evicted(busy: Busy) -> set[str]:
    return set(events(busy.installed, busy.namespace, "Preempted"))


@pytest.mark.parametrize("by", ["claim", "resource"])
def test_a_pod_of_a_high_tier_gets_the_device_of_a_low_one(busy: Busy, by: str) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", by=by, grace=4))
    all_run(busy, "low")
    with busy.unrest(by=by):
        busy.create(busy.pod("high", "gpu-training", by=by))
        busy.installed.eventually(lambda: busy.reserved() == {busy.node("a"): "gpu-training"}, "the reservation")
        assert busy.on("low"), "reserved first, then evicted"
        seconds_until(lambda: not busy.on("low"), 30)
        seconds_until(lambda: busy.on("high"), SOON)
        seconds_until(lambda: not busy.reserved(), 10)
    assert evicted(busy) == {"low"}
    told = events(busy.installed, busy.namespace, "PreemptionOutcome")["low"]
    assert f"low (gpu-batch) was evicted from {busy.node('a')} for {busy.namespace}/high (gpu-training)" in told


def test_devices_that_come_free_one_after_the_other(busy: Busy) -> None:
    """Without the reservation the first one goes to a low pod at once, and the pod that needs both never runs."""
    busy.add_nodes("a", devices=2)
    busy.create(busy.pod("soon", "gpu-batch", grace=3), busy.pod("late", "gpu-batch", grace=8))
    all_run(busy, "soon", "late")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training", 2))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        told = why(busy.installed, busy.namespace, "high")
        assert f"{busy.node('a')} reserved for {busy.namespace}/high (gpu-training) until" in told
        seconds_until(lambda: not busy.on("late"), 40)
        assert not busy.on("soon")
        seconds_until(lambda: busy.on("high"), SOON)
    assert evicted(busy) == {"soon", "late"}


def test_a_gang_gets_both_of_its_nodes(busy: Busy) -> None:
    busy.add_nodes("a", "b")
    busy.create(busy.pod("low-1", "gpu-batch", grace=3), busy.pod("low-2", "gpu-batch", grace=6))
    all_run(busy, "low-1", "low-2")
    template = busy.pod("", "gpu-training", restartPolicy="Never")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "gang", "labels": template["metadata"]["labels"]},
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": template["spec"]}},
    }
    with busy.unrest():
        busy.create(job)
        nodes = {busy.node("a"): "gpu-training", busy.node("b"): "gpu-training"}
        busy.installed.eventually(lambda: busy.reserved() == nodes, "both nodes, reserved")

        def both_run() -> bool:
            pods = busy.installed.api.get("pods", busy.namespace, labelSelector="batch.kubernetes.io/job-name=gang")
            return sum(bool(each["spec"].get("nodeName")) for each in pods["items"]) == 2

        seconds_until(both_run, 30)
        seconds_until(lambda: not busy.reserved(), 10)
    assert evicted(busy) == {"low-1", "low-2"}


@pytest.mark.release
def test_a_named_claim_is_freed_where_the_pod_is_made_again_at_once(busy: Busy) -> None:
    """The new pod joins the claim while the old one ends, unless it is kept off the node."""
    busy.add_nodes("a")
    claim = busy.template(1)
    busy.create({**claim, "kind": "ResourceClaim", "metadata": {"name": "kept"}, "spec": claim["spec"]["spec"]})
    pod = busy.pod("", "gpu-batch", grace=4, resourceClaims=[{"name": "gpu", "resourceClaimName": "kept"}])
    metadata = {"labels": {"app": "low", **pod["metadata"]["labels"]}, "annotations": pod["metadata"]["annotations"]}
    del pod["spec"]["terminationGracePeriodSeconds"]
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "low"}}}
    spec["template"] = {"metadata": metadata, "spec": {**pod["spec"], "terminationGracePeriodSeconds": 4}}
    busy.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "low"}, "spec": spec})

    def on_node() -> list[str]:
        pods = busy.installed.api.get("pods", busy.namespace, labelSelector="app=low")["items"]
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]

    busy.installed.eventually(lambda: len(on_node()) == 1, "the ReplicaSet's pod")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        seconds_until(lambda: busy.on("high"), 40)
    assert on_node() == []


@pytest.mark.release
@pytest.mark.parametrize("when", ["reserved", "evicted"])
def test_the_next_leader_goes_on(busy: Busy, when: str) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=8))
    all_run(busy, "low")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        if when == "evicted":
            busy.installed.eventually(lambda: "low" in evicted(busy), "the eviction")
        busy.installed.kill()
        busy.installed.restart()
        seconds_until(lambda: busy.on("high"), 60)
        seconds_until(lambda: not busy.reserved(), 10)


@pytest.mark.release
def test_remove_ends_reservations(busy: Busy) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=20))
    all_run(busy, "low")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        with busy.installed.policy_with(preemption={"dra": "Remove"}):
            seconds_until(lambda: not busy.reserved(), 15)
            with pytest.raises(AssertionError):
                seconds_until(lambda: bool(busy.reserved()), 12)


@pytest.mark.release
def test_a_pod_that_is_gone_keeps_no_node(busy: Busy) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=6))
    all_run(busy, "low")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: "low" in evicted(busy), "the eviction")
        busy.installed.api.delete("pod/high", namespace=busy.namespace)
        seconds_until(lambda: not busy.reserved(), 10)


def test_where_it_can_not_be_told_nobody_is_evicted(busy: Busy) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch"))
    all_run(busy, "low")
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training", affinity=apart))
        with pytest.raises(AssertionError):
            seconds_until(lambda: bool(busy.reserved()) or not busy.on("low"), 20)
    assert "required affinity or anti-affinity" in why(busy.installed, busy.namespace, "high")


@pytest.mark.release
def test_many_in_a_row(busy: Busy) -> None:
    """Pods of one and of two devices take turns with pods of a low tier, which end after some seconds."""
    chance = random.Random(7)  # noqa: S311
    busy.add_nodes("a", devices=2)
    waits: list[float] = []
    with busy.unrest("gpu-interactive"):
        for number in range(6):
            names = [f"low-{number}-{each}" for each in "ab"]
            busy.create(*(busy.pod(each, "gpu-batch", grace=chance.randint(1, 6)) for each in names))
            seconds_until(lambda names=names: all(busy.on(each) for each in names), 60)
            count = chance.choice((1, 2))
            busy.create(busy.pod(f"high-{number}", "gpu-training", count))
            going = lambda names=names, count=count: sum(not busy.on(each) for each in names) >= count  # noqa: E731
            seconds_until(going, 40)
            waits.append(seconds_until(lambda number=number: busy.on(f"high-{number}"), SOON))
            busy.installed.api.delete(
                f"pod/high-{number}", *(f"pod/{each}" for each in names), namespace=busy.namespace
            )
    assert max(waits) < SOON, waits
