"""Preemption for devices of DRA as trainings need it: they have volumes, and several small ones need one node.

Each test has claims of another driver that are freed elsewhere, and fresh pods of a low tier.
"""

from collections.abc import Iterator

import pytest

from .asking import events, why
from .busy_devices import Busy, seconds_until
from .installed import Installed, Tree

pytestmark = pytest.mark.apiserver

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def busy(preempting: Installed, namespace: str) -> Iterator[Busy]:
    found = Busy(preempting, namespace)
    yield found
    found.remove()
    preempting.api.delete("persistentvolumeclaims", namespace=namespace, wait=False)
    preempting.api.delete(f"persistentvolume/{found.name}", f"storageclass/{found.name}")


def on_nodes(busy: Busy, *names: str) -> None:
    seconds_until(lambda: all(busy.on(each) for each in names), 30)


def evicted(busy: Busy) -> set[str]:
    return set(events(busy.installed, busy.namespace, "Preempted"))


def with_volume(pod: Tree) -> Tree:
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod


def claim(storage_class: str) -> Tree:
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": storage_class, **size}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def volume(busy: Busy, storage_class: str, zone: str) -> Tree:
    """A volume of that zone for the claim."""
    line = {"key": ZONE, "operator": "In", "values": [zone]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": storage_class,
        "claimRef": {"namespace": busy.namespace, "name": "data"},
        "nfs": {"server": "192.0.2.1", "path": "/"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": busy.name}, "spec": spec}


def two_zones(busy: Busy) -> None:
    """A node in each zone, with a device that a low pod holds. The one in the west would be the first to go."""
    busy.add_nodes("west", "east")
    for name in ("west", "east"):
        busy.installed.api.patch(f"node/{busy.node(name)}", {"metadata": {"labels": {ZONE: name}}})
        low = busy.pod(f"low-{name}", "gpu-batch" if name == "west" else "gpu-serving")
        low["spec"]["nodeSelector"][ZONE] = name
        busy.create(low)
    on_nodes(busy, "low-west", "low-east")


def is_bound(busy: Busy) -> bool:
    return bool(busy.installed.get("persistentvolumeclaim/data", busy.namespace)["status"].get("phase") == "Bound")


def test_a_training_gets_devices_where_its_volume_is(busy: Busy) -> None:
    two_zones(busy)
    busy.installed.api.apply(volume(busy, "", "east"))
    busy.create(claim(""))
    seconds_until(lambda: is_bound(busy), 30)
    with busy.unrest():
        busy.create(with_volume(busy.pod("high", "gpu-training")))
        seconds_until(lambda: busy.on("high"), 40)
        seconds_until(lambda: not busy.reserved(), 10)
    assert busy.on("high") == busy.node("east")
    assert evicted(busy) == {"low-east"}
    assert busy.on("low-west")


def test_a_training_whose_volume_is_made_where_it_starts(busy: Busy) -> None:
    two_zones(busy)
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}]
    busy.installed.api.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": busy.name},
            "provisioner": f"{busy.name}.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": terms,
        }
    )
    busy.create(claim(busy.name))

    def selected() -> str:
        metadata = busy.installed.get("persistentvolumeclaim/data", busy.namespace)["metadata"]
        return str(metadata.get("annotations", {}).get("volume.kubernetes.io/selected-node", ""))

    with busy.unrest():
        busy.create(with_volume(busy.pod("high", "gpu-training")))
        seconds_until(selected, 40)
        assert selected() == busy.node("east")
        busy.installed.api.apply(volume(busy, busy.name, "east"))  # as its provisioner would
        seconds_until(lambda: busy.on("high"), 20)
    assert evicted(busy) == {"low-east"}


@pytest.mark.release
def test_a_claim_that_nobody_binds_evicts_nobody(busy: Busy) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch"), claim("no-such-class"))
    on_nodes(busy, "low")
    with busy.unrest():
        busy.create(with_volume(busy.pod("high", "gpu-training")))
        with pytest.raises(AssertionError):
            seconds_until(lambda: bool(busy.reserved()) or not busy.on("low"), 15)
    assert "PersistentVolumeClaim" in why(busy.installed, busy.namespace, "high")


def test_small_pods_share_a_node_while_the_victims_save(busy: Busy) -> None:
    """All victims have their grace at the same time, and no lower pod gets a device before each of the four has one."""
    lows, highs = [f"low-{each}" for each in range(4)], [f"high-{each}" for each in range(4)]
    busy.add_nodes("a", devices=4)
    busy.create(*(busy.pod(each, "gpu-batch", grace=12) for each in lows))
    on_nodes(busy, *lows)

    def ending() -> bool:
        pods = busy.installed.api.get("pods", busy.namespace)["items"]
        going = {each["metadata"]["name"] for each in pods if each["metadata"].get("deletionTimestamp")}
        return going.issuperset(lows)

    with busy.unrest():
        busy.create(*(busy.pod(each, "gpu-training") for each in highs))
        seconds_until(ending, 20)
        assert busy.reserved() == {busy.node("a"): "gpu-training"}
        told = why(busy.installed, busy.namespace, "high-3")
        assert f"eserved for {busy.namespace}/high-3 and 3 other pods (gpu-training) until" in told
        on_nodes(busy, *highs)
        seconds_until(lambda: not busy.reserved(), 10)
    assert evicted(busy) == set(lows)
    pods = busy.installed.api.get("pods", busy.namespace)["items"]
    there = {each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") == busy.node("a")}
    assert there == set(highs)
