"""Preemption for devices of DRA on a real scheduler: nodes are reserved, pods evicted, and who was to get it does.

Every test has claims of another driver that are freed elsewhere, and fresh pods of a low tier.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from installation.replicas import Replica
from webhook.objects.view import view
from webhook.policy.preemption.failures import failures_on
from webhook.policy.preemption.node_state import SchedulableNode, node_state

from .asking import events, running, why
from .busy_devices import Busy, seconds_until
from .installed import QUICK, Installed

pytestmark = pytest.mark.apiserver

SOON = 12.0
"""Seconds from the end of the last victim: kube-scheduler asks a pod that failed again after 10 s at most."""


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
        assert f"eserved for {busy.namespace}/high (gpu-training) until" in told
        seconds_until(lambda: not busy.on("late"), 40)
        assert not busy.on("soon")
        seconds_until(lambda: busy.on("high"), SOON)
    assert evicted(busy) == {"soon", "late"}


def test_a_gang_gets_both_of_its_nodes(busy: Busy) -> None:
    busy.add_nodes("a", "b")
    busy.create(busy.pod("low-1", "gpu-batch", grace=3), busy.pod("low-2", "gpu-batch", grace=6))
    all_run(busy, "low-1", "low-2")
    with busy.unrest():
        busy.create(busy.job("gang", "gpu-training", pods=2))
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
        busy.installed.change_leader()
        seconds_until(lambda: busy.on("high"), 60)
        seconds_until(lambda: not busy.reserved(), 10)


@pytest.fixture
def second(preempting: Installed) -> Iterator[Replica]:
    """A replica that leads when the first one does not."""
    cluster = preempting.cluster
    replica = Replica(cluster, "second", QUICK)
    replica.wait_until_ready()
    yield replica
    replica.kill()
    cluster.processes.end(replica.process)
    preempting.eventually(lambda: not leader(preempting).startswith("second"), "the first one, leading")


def leader(installed: Installed) -> str:
    return str(installed.get("lease/gpu-tiers", "gpu-tiers")["spec"].get("holderIdentity", ""))


@pytest.mark.release
@pytest.mark.parametrize("when", ["reserved", "evicted"])
def test_of_two_leaders_one_evicts(busy: Busy, second: Replica, when: str) -> None:
    """One is paused in the middle of it, and goes on beside the next one."""
    busy.add_nodes("a", "b")
    busy.create(busy.pod("low-1", "gpu-batch", grace=10), busy.pod("low-2", "gpu-batch", grace=10))
    all_run(busy, "low-1", "low-2")
    first = busy.installed.process.popen
    assert not leader(busy.installed).startswith(second.name)
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        if when == "evicted":
            busy.installed.eventually(lambda: bool(evicted(busy)), "the eviction")
        first.send_signal(signal.SIGSTOP)
        try:
            seconds_until(lambda: leader(busy.installed).startswith(second.name), 60)
        finally:
            first.send_signal(signal.SIGCONT)
        seconds_until(lambda: busy.on("high"), 60)
        seconds_until(lambda: not busy.reserved(), 10)
    assert len(evicted(busy)) == 1
    assert bool(busy.on("low-1")) != bool(busy.on("low-2"))


@pytest.fixture
def kubelets(preempting: Installed) -> Iterator[subprocess.Popen[bytes]]:
    """The process that answers for the kubelets of all nodes."""
    found = preempting.cluster.processes.named("kwok").popen
    yield found
    found.send_signal(signal.SIGCONT)


@pytest.mark.release
def test_a_victim_on_a_lost_node_closes_it_for_its_time(busy: Busy, kubelets: subprocess.Popen[bytes]) -> None:
    """Its kubelet is silent, so it never ends."""
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=2))
    all_run(busy, "low")
    with busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        kubelets.send_signal(signal.SIGSTOP)
        seconds_until(lambda: not busy.reserved(), 120)
        told = events(busy.installed, busy.namespace, "NodesReleased")["high"]
    assert "a pod that was evicted there does not end" in told
    assert evicted(busy) == {"low"}
    assert busy.on("low"), "nobody says that it has ended"


@pytest.mark.release
def test_a_pod_that_does_not_start_for_a_reason_nobody_sees(busy: Busy) -> None:
    """Somebody's policy refuses to bind it. Nobody else is evicted for pods of its namespace for a while."""
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=2))
    all_run(busy, "low")
    with refused(busy.installed, "pods/binding", busy.namespace, "high"), busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: "low" in evicted(busy), "the eviction")
        seconds_until(lambda: not busy.reserved(), 60)
        assert "it could not start" in events(busy.installed, busy.namespace, "NodesReleased")["high"]
    node = busy.installed.get(f"node/{busy.node('a')}", "")
    assert set(failures_on(node_state(view(node, SchedulableNode)))) >= {f"{busy.namespace}/"}


@pytest.mark.release
def test_a_pod_that_may_not_be_deleted_closes_no_node(busy: Busy) -> None:
    """Somebody's policy keeps it."""
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", grace=2))
    all_run(busy, "low")
    with refused(busy.installed, "pods", busy.namespace, "low", operation="DELETE"), busy.unrest():
        busy.create(busy.pod("high", "gpu-training"))
        busy.installed.eventually(lambda: bool(busy.reserved()), "the reservation")
        seconds_until(lambda: not busy.reserved(), 10)
        told = events(busy.installed, busy.namespace, "NodesReleased")["high"]
        assert f"does not let gpu-tiers evict {busy.namespace}/low" in told
        assert busy.on("low")


@contextmanager
def refused(
    installed: Installed, resource: str, namespace: str, name: str, operation: str = "CREATE"
) -> Iterator[None]:
    """Somebody's policy refuses this for a pod."""
    policy = f"refuses-{namespace}"
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": policy}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": [operation]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {
        "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
        "validations": [{"expression": f"request.?name.orValue('') != '{name}'", "message": "not this one"}],
    }
    binding = {"policyName": policy, "validationActions": ["Deny"]}
    installed.api.apply(
        {"kind": "ValidatingAdmissionPolicy", **about, "spec": spec},
        {"kind": "ValidatingAdmissionPolicyBinding", **about, "spec": binding},
    )
    try:
        yield
    finally:
        installed.api.delete(f"validatingadmissionpolicy/{policy}", f"validatingadmissionpolicybinding/{policy}")


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
        # what it leaves is kept for 5 s for others, after the 6 s of grace
        seconds_until(lambda: not busy.reserved(), 30)


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
