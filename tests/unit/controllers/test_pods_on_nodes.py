"""A pod that runs counts on the flavor of its node, whatever it names, and again when the node's labels change."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_tenant
from tests.builders.counted_ledger import CountedLedger
from webhook.controllers.pods_on_nodes import NO_FLAVOR, ObservedPod, PodsOnNodes, PodWork, WorkingPod
from webhook.controllers.work_at_risk import WorkAtRisk
from webhook.ledger.protocol import Holding
from webhook.policy.checkpoint.work_lost import LastSave
from webhook.policy.quota.charges import Charge

ALPHA = a_tenant().allowing("9").allowing("1", flavor="h100").allowing("1", flavor="a100").view()


class Cluster:
    """A tenant's ledger, and nodes by their flavor."""

    def __init__(self) -> None:
        self.flavors: dict[str, str] = {}
        self.ledger = CountedLedger(lambda: 0.0, lambda _: "alpha")
        self.pods = PodsOnNodes(self.ledger, self.flavors.get)

    def used(self) -> tuple[int, ...]:
        """Return the GPUs in total, on h100 and on a100."""
        usage = self.ledger.usage(ALPHA)
        return tuple(int(usage[row]) for row in ALPHA.rows)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def placed(node: str = "", flavor: str | None = None) -> ObservedPod:
    holding = Holding("team-alpha", Charge(Decimal(2), "gpu-batch", flavor))
    return ObservedPod("team-alpha", "", holding=holding, node=node)


def test_a_pod_that_names_no_flavor_counts_on_one_once_it_is_bound(cluster: Cluster) -> None:
    cluster.flavors["node-1"] = "h100"
    cluster.pods.pod_changed("one", placed())
    assert cluster.used() == (2, 0, 0)
    cluster.pods.pod_changed("one", placed("node-1"))
    assert cluster.used() == (2, 2, 0), "whether or not there is room"
    cluster.pods.pod_changed("one", None)
    assert cluster.used() == (0, 0, 0)


def test_a_node_that_is_labelled_after_its_pod_was_seen(cluster: Cluster) -> None:
    cluster.pods.pods_listed({"one": placed("node-1"), "elsewhere": placed("node-2")})
    assert cluster.used() == (4, 0, 0)
    for flavor, used in (("h100", (4, 2, 0)), ("a100", (4, 0, 2))):
        cluster.flavors["node-1"] = flavor
        cluster.pods.node_changed("node-1")
        assert cluster.used() == used
    cluster.flavors.clear()
    cluster.pods.node_changed("node-1")
    assert cluster.used() == (4, 0, 0)


def test_on_a_node_that_tells_no_flavor_a_pod_counts_on_the_one_it_names(cluster: Cluster) -> None:
    """The labels of a model come and go with the program that writes them."""
    cluster.pods.pod_changed("one", placed("node-1", "h100"))
    assert cluster.used() == (2, 2, 0)


def test_of_pods_that_are_gone_nothing_is_counted_when_their_node_changes(cluster: Cluster) -> None:
    cluster.pods.pods_listed({"one": placed("node-1"), "two": placed("node-1")})
    cluster.pods.pods_listed({"two": placed("node-1")})
    cluster.pods.pod_changed("two", None)
    cluster.flavors["node-1"] = "h100"
    cluster.pods.node_changed("node-1")
    assert cluster.used() == (0, 0, 0)


def test_a_pod_that_may_run_on_each_flavor_counts_on_all_until_its_node_is_known(cluster: Cluster) -> None:
    pending, there = placed(flavor="h100? a100?"), placed("node-1", "h100? a100?")
    for pod, used in ((pending, (2, 2, 2)), (there, (2, 2, 2))):
        cluster.pods.pod_changed("one", pod)
        assert cluster.used() == used
    for flavor, used in (("a100", (2, 0, 2)), (NO_FLAVOR, (2, 0, 0))):
        cluster.flavors["node-1"] = flavor
        cluster.pods.node_changed("node-1")
        assert cluster.used() == used
    cluster.pods.pod_changed("one", placed("node-1", "h100"))
    assert cluster.used() == (2, 2, 0), "of a flavor that it names it is, whatever became of the labels"


def test_pods_with_work_to_lose_are_known_while_they_are_on_a_node(cluster: Cluster) -> None:
    def working() -> dict[str, float]:
        return {each.uid: each.work.since for each in cluster.pods.working()}

    trains = replace(placed("node-1"), work=PodWork(1_000.0))
    cluster.pods.pods_listed({"serves": placed("node-1"), "trains": trains})
    assert working() == {"trains": 1_000.0}
    cluster.pods.pod_changed("more", trains)
    cluster.pods.pod_changed("trains", None)
    assert working() == {"more": 1_000.0}
    cluster.pods.pods_listed({})
    assert not working()


def test_work_at_risk_adds_up_by_tenant_and_tier_and_keeps_apart_what_is_exact() -> None:
    now = [10_000.0]
    used = Holding("team-alpha", Charge(Decimal(8), "gpu-training"))
    claim = Charge(Decimal(2), "gpu-batch", shared={"training-gpus": Decimal(2)})
    pods = [WorkingPod(uid, used, "node-1", PodWork(1_000.0)) for uid in ("reports", "silent")]
    shares = Holding("research", claim)
    pods += [WorkingPod(uid, shares, "node-1", PodWork(9_000.0)) for uid in ("shares", "shares too")]
    saves = {"reports": LastSave(1240, 9_990.0)}
    tenants = {"team-alpha": "alpha"}
    risk = WorkAtRisk(lambda: pods, tenants.get, saves.get, lambda: now[0])
    assert risk.gpu_seconds() == {
        ("alpha", "gpu-training", True): 80.0,
        ("alpha", "gpu-training", False): 72_000.0,
        ("", "gpu-batch", False): 2_000.0,
    }
    saves["reports"] = LastSave(1250, 10_000.0)
    assert dict(risk.samples())["alpha", "gpu-training", "true"] == 80.0, "a sum is good for a while"
    now[0] += 10
    assert dict(risk.samples())["alpha", "gpu-training", "true"] == 80.0
    pods.clear()
    now[0] += 10
    assert not risk.gpu_seconds(), "as for a replica that leads no more"
