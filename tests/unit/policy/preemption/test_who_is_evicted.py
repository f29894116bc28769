"""Who is evicted so that a pod gets its devices of DRA: on which node, and in which order."""

from typing import Any

import pytest

from tests.builders.claims import DEVICE_CLASS
from tests.builders.dra_cluster import DraCluster
from webhook.policy.preemption.preemptor import EvictionPlan


@pytest.fixture
def cluster() -> DraCluster:
    return DraCluster()


def planned(cluster: DraCluster, gang: str = "high") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nodes and the victims."""
    plan = cluster.decide(gang)
    assert isinstance(plan, EvictionPlan), plan
    return plan.nodes, tuple(each.name for each in plan.victims)


@pytest.mark.parametrize("by", ["claim", "resource"])
def test_the_pod_of_a_lower_tier_that_holds_the_device(cluster: DraCluster, by: str) -> None:
    cluster.node("a")
    cluster.running("low", "a")
    cluster.waiting("high", by=by)
    assert planned(cluster) == (("a",), ("low",))


def test_no_more_pods_than_it_needs(cluster: DraCluster) -> None:
    """Two devices are free, so one of three pods goes for a pod that needs three."""
    cluster.node("a", gpus=5)
    for name in ("one", "two", "three"):
        cluster.running(name, "a")
    cluster.waiting("high", gpus=3)
    nodes, victims = planned(cluster)
    assert (nodes, len(victims)) == (("a",), 1)


def test_the_lowest_tier_goes_first(cluster: DraCluster) -> None:
    for node, tier in (("a", "gpu-serving"), ("b", "gpu-interactive"), ("c", "gpu-batch")):
        cluster.node(node)
        cluster.running(f"on-{node}", node, tier)
    cluster.waiting("high")
    assert planned(cluster) == (("b",), ("on-b",))


def test_on_one_node_the_lowest_tier_goes_first(cluster: DraCluster) -> None:
    cluster.node("a", gpus=3)
    for tier in ("gpu-serving", "gpu-interactive", "gpu-batch"):
        cluster.running(tier, "a", tier)
    cluster.waiting("high")
    assert planned(cluster)[1] == ("gpu-interactive",)


def test_among_equals_who_loses_least(cluster: DraCluster) -> None:
    for node in ("a", "b"):
        cluster.node(node)
        cluster.running(f"on-{node}", node)
    cluster.waiting("high")
    cluster.at_risk = {"on-a": 9000.0, "on-b": 60.0}
    assert planned(cluster) == (("b",), ("on-b",))


def test_a_budget_counts_before_the_tier(cluster: DraCluster) -> None:
    cluster.node("a")
    cluster.node("b")
    cluster.running("kept", "a", "gpu-interactive")["metadata"]["labels"] = {"app": "web"}
    cluster.running("other", "b", "gpu-batch")
    cluster.budget("web", {"app": "web"})
    cluster.waiting("high")
    assert planned(cluster) == (("b",), ("other",))


def test_a_budget_is_broken_where_nothing_else_helps(cluster: DraCluster) -> None:
    """kube-scheduler does the same."""
    cluster.node("a")
    cluster.running("kept", "a")["metadata"]["labels"] = {"app": "web"}
    cluster.budget("web", {"app": "web"})
    cluster.waiting("high")
    assert planned(cluster) == (("a",), ("kept",))


def test_few_pods_go_rather_than_many(cluster: DraCluster) -> None:
    cluster.node("a", gpus=2)
    cluster.node("b", gpus=2)
    cluster.running("one", "a")
    cluster.running("two", "a")
    cluster.running("both", "b", gpus=2)
    cluster.waiting("high", gpus=2)
    assert planned(cluster) == (("b",), ("both",))


def test_the_pod_that_started_last_goes(cluster: DraCluster) -> None:
    for node in ("a", "b"):
        cluster.node(node)
        cluster.running(f"on-{node}", node)
    cluster.pods["on-a"]["status"]["startTime"] = "2026-01-01T00:00:00Z"
    cluster.waiting("high")
    assert planned(cluster) == (("b",), ("on-b",))


def test_the_longest_grace_is_the_first_to_go(cluster: DraCluster) -> None:
    cluster.node("a", gpus=2)
    cluster.running("short", "a", terminationGracePeriodSeconds=5)
    cluster.running("long", "a", terminationGracePeriodSeconds=90)
    cluster.waiting("high", gpus=2)
    assert planned(cluster)[1] == ("long", "short")


def test_pods_without_devices_go_where_their_cpu_is_needed(cluster: DraCluster) -> None:
    cluster.node("a", cpu="2")
    cluster.running("low", "a")
    cluster.running("cpu-hog", "a", gpus=0)
    pod = cluster.waiting("high")
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert set(planned(cluster)[1]) == {"low", "cpu-hog"}


def test_a_named_claim_is_free_when_all_its_pods_are_gone(cluster: DraCluster) -> None:
    cluster.node("a")
    low = cluster.running("low", "a")
    low["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "low-gpu"}]
    cluster.running("second", "a", gpus=0)
    users = [{"resource": "pods", "name": each, "uid": each} for each in ("low", "second")]
    cluster.claims["team-alpha/low-gpu"]["status"]["reservedFor"] = users
    cluster.waiting("high")
    assert set(planned(cluster)[1]) == {"low", "second"}


def test_a_group_that_goes_whole_goes_on_all_its_nodes(cluster: DraCluster) -> None:
    for node in ("a", "b", "c"):
        cluster.node(node)
    cluster.running("worker-0", "a")
    cluster.running("worker-1", "b")
    cluster.group("workers", "worker-0", "worker-1", whole=True)
    cluster.running("serving", "c", "gpu-serving")
    cluster.waiting("high")
    nodes, victims = planned(cluster)
    assert (len(nodes), set(victims)) == (1, {"worker-0", "worker-1"})


def test_the_loss_of_a_whole_group_counts(cluster: DraCluster) -> None:
    for node in ("a", "b", "c"):
        cluster.node(node)
        cluster.running(f"on-{node}", node)
    cluster.group("workers", "on-a", "on-b", whole=True)
    cluster.waiting("high")
    cluster.at_risk = {"on-a": 10.0, "on-b": 5000.0, "on-c": 100.0}
    assert planned(cluster) == (("c",), ("on-c",))


def test_a_gang_gets_all_its_nodes(cluster: DraCluster) -> None:
    for node in ("a", "b", "c"):
        cluster.node(node)
        cluster.running(f"on-{node}", node)
    cluster.waiting("worker-0")
    cluster.waiting("worker-1")
    cluster.group("high", "worker-0", "worker-1", least=2)
    nodes, victims = planned(cluster, "team-alpha/high")
    assert len(nodes) == len(victims) == 2
    assert {f"on-{node}" for node in nodes} == set(victims)


def test_a_free_node_of_a_gang_is_reserved_too(cluster: DraCluster) -> None:
    """Else a pod of a lower tier takes it while the victims end."""
    cluster.node("a")
    cluster.node("b")
    cluster.running("low", "a")
    cluster.waiting("worker-0")
    cluster.waiting("worker-1")
    cluster.group("high", "worker-0", "worker-1", least=2)
    assert planned(cluster, "team-alpha/high") == (("a", "b"), ("low",))


def test_several_pods_of_a_gang_on_one_node(cluster: DraCluster) -> None:
    cluster.node("a", gpus=4)
    cluster.running("one", "a", gpus=2)
    cluster.running("two", "a", gpus=2)
    for each in ("worker-0", "worker-1"):
        cluster.waiting(each, gpus=2)
    cluster.group("high", "worker-0", "worker-1", least=2)
    nodes, victims = planned(cluster, "team-alpha/high")
    assert (nodes, set(victims)) == (("a",), {"one", "two"})


def test_the_first_alternative_that_can_be_had(cluster: DraCluster) -> None:
    """It would rather have an H100; with three A100 it can run as well."""
    cluster.node("a", gpus=3, model="A100")
    for name in ("one", "two", "three"):
        cluster.running(name, "a")
    cluster.waiting("high")
    cluster.claims["team-alpha/high-gpu"]["spec"]["devices"]["requests"] = [
        {"name": "gpu", "firstAvailable": [alternative("h100", "H100", 1), alternative("a100", "A100", 2)]}
    ]
    assert len(planned(cluster)[1]) == 2


def alternative(name: str, model: str, count: int) -> dict[str, Any]:
    selector = {"cel": {"expression": f"device.attributes['{DEVICE_CLASS}'].model == '{model}'"}}
    return {"name": name, "deviceClassName": DEVICE_CLASS, "count": count, "selectors": [selector]}


def test_devices_of_another_model_free_nothing(cluster: DraCluster) -> None:
    cluster.node("a", model="A100")
    cluster.node("b", model="H100")
    cluster.running("on-a", "a", "gpu-interactive")
    cluster.running("on-b", "b", "gpu-batch")
    cluster.waiting("high", claim={"selectors": alternative("", "H100", 1)["selectors"]})
    assert planned(cluster) == (("b",), ("on-b",))


def test_a_selector_that_is_not_read_is_judged_like_for_like(cluster: DraCluster) -> None:
    large = {"selectors": [{"cel": {"expression": "device.capacity['x'].memory.isGreaterThan(quantity('40Gi'))"}}]}
    cluster.node("a")
    cluster.node("b")
    cluster.running("on-a", "a", "gpu-interactive")
    cluster.running("on-b", "b", claim=large)
    cluster.waiting("high", claim=large)
    assert planned(cluster) == (("b",), ("on-b",))


def test_on_other_nodes_nobody_is_evicted_the_second_time(cluster: DraCluster) -> None:
    for node in ("a", "b"):
        cluster.node(node)
    cluster.running("on-a", "a", "gpu-batch")
    cluster.running("on-b", "b", "gpu-interactive")
    cluster.waiting("high")
    plan = cluster.decide("high", within=["a"])
    assert isinstance(plan, EvictionPlan)
    assert plan.nodes == ("a",)
