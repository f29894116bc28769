"""The cluster's GPUs as the page shows them, from pods and nodes as they were seen."""

from decimal import Decimal

from msgspec.structs import replace

from webhook.cluster.listed import GpuNode
from webhook.ledger.protocol import Holding
from webhook.policy.quota.charges import Charge
from webhook.report.gpus_now import OnNode, TierGpus, WaitingPod, gpus_now, scattered_gpus

TIERS = ("gpu-training", "gpu-batch")


def node(name: str, gpus: int = 8, *, open_: bool = True) -> GpuNode:
    return GpuNode(name, Decimal(gpus), Decimal(0), Decimal(0), open=open_)


def used(name: str, gpus: int, tier: str = "gpu-batch") -> OnNode:
    return name, Holding("team-alpha", Charge(Decimal(gpus), tier)), Decimal(gpus)


def waits(
    workload: str, tier: str, minute: int, why: str = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
) -> WaitingPod:
    holding = Holding("team-alpha", Charge(Decimal(4), tier))
    return WaitingPod(holding, workload, f"2026-11-23T09:{minute:02}:00Z", why)


def test_a_cluster_is_reported_by_tier_with_what_is_free_and_what_is_closed() -> None:
    nodes = (node("one"), node("two"), node("cordoned", open_=False))
    now = gpus_now(TIERS, [used("one", 6), used("two", 8, "gpu-training"), used("cordoned", 3)], [], nodes, str)
    assert now.tiers == (TierGpus("gpu-training", 8, 0), TierGpus("gpu-batch", 9, 0))
    assert (now.used, now.free, now.closed, now.total) == (17, 2, 5, 24)


def test_a_node_that_is_not_ready_is_lost_if_pods_with_gpus_are_on_it() -> None:
    lost = [replace(node(each, open_=False), lost=True) for each in ("idle", "two", "one")]
    now = gpus_now(TIERS, [used("one", 6), used("two", 1), used("ready", 1)], [], [*lost, node("ready")], str)
    assert now.lost == ("one", "two")


def test_what_a_node_holds_beyond_its_device_plugin_makes_no_other_node_fuller() -> None:
    now = gpus_now(TIERS, [used("of-a-claim", 4), used("one", 1)], [], (node("one"),), str)
    assert (now.used, now.free, now.total) == (5, 7, 12)


def test_pods_below_every_tier_have_a_place_of_their_own() -> None:
    now = gpus_now(TIERS, [used("one", 2, "")], [], (node("one"),), str)
    assert now.tiers[-1] == TierGpus("no tier", 2, 0)


def test_where_nodes_cannot_be_read_nothing_is_said_to_be_free() -> None:
    now = gpus_now(TIERS, [used("one", 2)], [], None, str)
    assert (now.used, now.free, now.closed) == (2, None, None)


def test_pods_of_one_workload_wait_as_one_the_highest_tier_first_and_then_the_longest() -> None:
    waiting = [
        waits("Job/sweep", "gpu-batch", 5),
        waits("Job/older", "gpu-batch", 3),
        waits("PyTorchJob/llm", "gpu-training", 9, "the scheduler has not looked at it yet"),
        waits("Job/sweep", "gpu-batch", 4, "too few"),
    ]
    now = gpus_now(TIERS, [], waiting, (), {"team-alpha": "alpha"}.get)
    rows = [(each.workload, each.tenant, each.pods, each.gpus, each.since[11:16]) for each in now.waits]
    assert rows == [
        ("PyTorchJob/llm", "alpha", 1, 4, "09:09"),
        ("Job/older", "alpha", 1, 4, "09:03"),
        ("Job/sweep", "alpha", 2, 8, "09:04"),
    ]
    assert now.waits[-1].why == "too few", "of the one that waits longest"
    assert [each.waiting for each in now.tiers] == [4, 12]
    assert [each.since[11:16] for each in now.tiers] == ["09:09", "09:03"], "whoever waits longest"


def test_gpus_that_lie_apart_fit_nobody_who_waits() -> None:
    """Two nodes with three GPUs free each, and whoever waits asks for four on one."""
    nodes = (node("one"), node("two"), node("full"), node("cordoned", open_=False))
    there = [used("one", 5), used("two", 5), used("full", 8)]
    assert scattered_gpus(nodes, there, [Decimal(8), Decimal(4)]) == 6
    assert scattered_gpus(nodes, there, [Decimal(4), Decimal(2)]) == 0, "one of them asks for two"
    assert scattered_gpus(nodes, there, [Decimal(8)]) == 0, "there are too few for it on all nodes together"
    assert scattered_gpus(nodes, there, []) == 0, "nobody waits"
