"""Nodes that can use the volumes of a pod for which others are evicted: where they are, and where they will be made."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.built import Tree
from tests.builders.dra_cluster import DraCluster
from tests.builders.storage import CSI, ZONE, mount, of_zone
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.sentences.sentence import sentence

BETA = "failure-domain.beta.kubernetes.io/zone"


@pytest.fixture
def cluster() -> DraCluster:
    """A node in each of two zones with a device that a lower pod holds, and a pod with the claim `data` that waits.

    Without a volume it gets node a.
    """
    found = DraCluster()
    for name, zone in (("a", "west"), ("b", "east")):
        found.node(name)
        found.nodes[name]["metadata"]["labels"][ZONE] = zone
        found.running(f"low-{name}", name)
    found.at_risk = {"low-b": 100.0}
    found.storage.storage_class()
    mount(found.waiting("high"))
    return found


def evicted(cluster: DraCluster, gang: str = "high") -> list[str]:
    plan = cluster.decide(gang)
    assert isinstance(plan, EvictionPlan), plan
    return [each.name for each in plan.victims]


def why(cluster: DraCluster, gang: str = "high") -> str:
    """The id of the innermost reason."""
    told = cluster.decide(gang)
    assert isinstance(told, Phrase), told
    assert sentence(told)
    while isinstance(inner := told.get("what") or told.get("problem"), Phrase):
        told = inner
    return told.id


@pytest.mark.parametrize(
    ("labels", "volume", "victim"),
    [
        ({}, {}, "low-a"),
        ({}, {"nodeAffinity": of_zone("east")}, "low-b"),
        ({}, {"nodeAffinity": of_zone("b", key="kubernetes.io/hostname"), "csi": None, "local": {}}, "low-b"),
        ({}, {"nfs": {"server": "x"}, "csi": None}, "low-a"),
        ({ZONE: "east"}, {}, "low-b"),
        ({BETA: "east"}, {}, "low-b"),
        ({ZONE: "east__north"}, {}, "low-b"),
        ({ZONE: "north__west"}, {}, "low-a"),
        ({ZONE: "east__"}, {}, "low-a"),
    ],
)
def test_a_bound_volume_is_used_where_it_is(
    cluster: DraCluster, labels: dict[str, str], volume: dict[str, Any], victim: str
) -> None:
    cluster.storage.bound(**volume)["metadata"]["labels"] = labels
    assert evicted(cluster) == [victim]


def test_a_node_without_labels_of_zones_takes_volumes_of_each(cluster: DraCluster) -> None:
    cluster.storage.bound()["metadata"]["labels"] = {ZONE: "east"}
    del cluster.nodes["a"]["metadata"]["labels"][ZONE]
    assert evicted(cluster) == ["low-a"]


def test_no_node_reaches_the_volume(cluster: DraCluster) -> None:
    cluster.storage.bound(nodeAffinity=of_zone("north"))
    assert why(cluster) == "preemption-no-node"
    told = cluster.decide("high")
    assert isinstance(told, Phrase)
    assert told.get("problems") == ("out of reach of its volumes (2)",)


def test_a_volume_that_is_yet_to_be_made(cluster: DraCluster) -> None:
    cluster.storage.claim()
    assert evicted(cluster) == ["low-a"]
    cluster.storage.storage_class(
        allowedTopologies=[{}, {"matchLabelExpressions": [{"key": ZONE, "values": ["east", "north"]}]}]
    )
    assert evicted(cluster) == ["low-b"], "and an empty term matches no node"


def test_a_volume_that_is_being_made_for_a_node(cluster: DraCluster) -> None:
    cluster.storage.claim()["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "b"
    assert evicted(cluster) == ["low-b"]


def test_an_ephemeral_volume(cluster: DraCluster) -> None:
    cluster.pods["high"]["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    assert why(cluster) == "volume-claim-missing"
    claim = cluster.storage.claim("high-scratch")
    assert why(cluster) == "volume-claim-of-another"
    claim["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "high", "uid": "high", "controller": True}]
    assert evicted(cluster) == ["low-a"]


Change = Callable[[DraCluster], object]


def claim(**metadata: Any) -> Change:
    return lambda cluster: cluster.storage.claims["data"]["metadata"].update(metadata)


def spec(**fields: Any) -> Change:
    return lambda cluster: cluster.storage.claims["data"]["spec"].update(fields)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        # The scheduler waits for the claim, not for devices.
        ("volume-claim-missing", lambda c: c.storage.claims.clear()),
        ("volume-claim-deleted", claim(deletionTimestamp="2027-01-01T00:00:00Z")),
        ("volume-claim-unbound", lambda c: c.storage.storage_class(mode="Immediate")),
        ("volume-claim-unbound", lambda c: c.storage.classes.clear()),
        ("volume-claim-unbound", spec(storageClassName="")),
        ("volume-claim-unbound", spec(volumeName="pv-data")),
        ("volume-lost", lambda c: c.storage.bound() and c.storage.volumes.clear()),
        ("volume-lost", lambda c: c.storage.bound() and c.storage.claims["data"]["status"].update(phase="Lost")),
        # More than the labels of a node decides.
        ("volume-to-be-found", lambda c: c.storage.storage_class(provisioner="kubernetes.io/no-provisioner")),
        ("volume-to-be-found", spec(selector={"matchLabels": {"a": "b"}})),
        ("volume-capacity", lambda c: c.storage.driver(storageCapacity=True)),
        ("volume-in-tree", lambda c: c.storage.bound(csi=None, awsElasticBlockStore={"volumeID": "x"})),
    ],
)
def test_nobody_is_evicted(cluster: DraCluster, reason: str, change: Change) -> None:
    cluster.storage.claim()
    assert evicted(cluster), "else this test tells nothing"
    change(cluster)
    assert why(cluster) == reason


@pytest.mark.parametrize(("mode", "judged"), [("ReadWriteOncePod", False), ("ReadWriteOnce", True)])
def test_a_volume_that_another_pod_uses(cluster: DraCluster, mode: str, judged: bool) -> None:
    """Whether ReadWriteOnce can be attached is no matter of the scheduler's."""
    cluster.storage.bound(modes=[mode])
    assert evicted(cluster)
    mount(cluster.pods["low-b"])
    if judged:
        assert evicted(cluster) == ["low-a"]
    else:
        assert why(cluster) == "volume-of-one-pod"


def gang(cluster: DraCluster, claim: str) -> str:
    mount(cluster.waiting("high-2"), claim)
    cluster.group("gang", "high", "high-2", least=2)
    return "team-alpha/gang"


def test_a_gang_with_one_volume(cluster: DraCluster) -> None:
    """If it is not bound it is made where the first pod starts, and the second one may not follow."""
    cluster.storage.claim()
    together = gang(cluster, "data")
    assert why(cluster, together) == "volume-not-made"
    cluster.storage.bound()
    assert sorted(evicted(cluster, together)) == ["low-a", "low-b"]


def test_each_pod_of_a_gang_goes_where_its_volume_is(cluster: DraCluster) -> None:
    cluster.storage.bound(nodeAffinity=of_zone("east"))
    cluster.storage.bound("other", nodeAffinity=of_zone("west"))
    together = gang(cluster, "other")
    assert sorted(evicted(cluster, together)) == ["low-a", "low-b"]
    cluster.storage.bound("other", nodeAffinity=of_zone("east"))
    assert why(cluster, together) == "preemption-nobody-lower", "one device is there for two pods"


class TestLimits:
    """How many volumes a node attaches."""

    @pytest.mark.parametrize(("most", "victim"), [(0, "low-b"), (1, "low-a"), (None, "low-a")])
    def test_a_node_that_attaches_no_more(self, cluster: DraCluster, most: int | None, victim: str) -> None:
        cluster.storage.bound()
        cluster.storage.attaches("a", most)
        assert evicted(cluster) == [victim]

    def test_volumes_of_another_driver_do_not_count(self, cluster: DraCluster) -> None:
        cluster.storage.bound()
        cluster.storage.attaches("a", 0, driver="other.example.com")
        assert evicted(cluster) == ["low-a"]

    def test_those_of_a_victim_are_still_attached_when_it_has_ended(self, cluster: DraCluster) -> None:
        cluster.storage.bound()
        cluster.storage.bound("low")
        mount(cluster.pods["low-a"], "low")
        cluster.storage.attaches("a", 1)
        assert evicted(cluster) == ["low-b"]
        cluster.storage.attaches("a", 2)
        assert evicted(cluster) == ["low-a"]

    def test_one_that_several_pods_use_counts_once(self, cluster: DraCluster) -> None:
        cluster.storage.bound()
        cluster.storage.bound("low")
        mount(cluster.pods["low-a"], "low")
        mount(cluster.running("second", "a", gpus=0), "low")
        cluster.storage.attaches("a", 2)
        assert evicted(cluster) == ["low-a"]

    def test_those_yet_to_be_made_count(self, cluster: DraCluster) -> None:
        cluster.storage.claim()
        cluster.storage.attaches("a", 0)
        assert evicted(cluster) == ["low-b"]

    def test_the_pods_of_a_gang_count_together(self, cluster: DraCluster) -> None:
        cluster.nodes.clear()
        cluster.node("c", gpus=2)
        for name in ("low-c", "low-d"):
            cluster.running(name, "c")
        cluster.storage.bound()
        cluster.storage.bound("other")
        together = gang(cluster, "other")
        cluster.storage.attaches("c", 2)
        assert sorted(evicted(cluster, together)) == ["low-c", "low-d"]
        cluster.storage.attaches("c", 1)
        assert why(cluster, together) == "preemption-nobody-lower"

    def test_the_reason_names_the_driver(self, cluster: DraCluster) -> None:
        cluster.storage.bound()
        for node in ("a", "b"):
            cluster.storage.attaches(node, 0)
        told = cluster.decide("high")
        assert isinstance(told, Phrase)
        assert told.get("problems") == (f"short of volumes of {CSI} (2)",)

    def test_a_driver_that_must_run_on_the_node(self, cluster: DraCluster) -> None:
        cluster.storage.bound()
        cluster.storage.driver(preventPodSchedulingIfMissing=True)
        cluster.storage.attaches("b", None)
        assert evicted(cluster) == ["low-b"]


def test_a_pod_that_runs_may_use_whatever_it_likes(cluster: DraCluster) -> None:
    cluster.storage.bound()
    low: Tree = cluster.pods["low-a"]
    low["spec"]["volumes"] = [{"name": "x", "awsElasticBlockStore": {"volumeID": "x"}}, {"name": "y", "ephemeral": {}}]
    assert evicted(cluster) == ["low-a"]
