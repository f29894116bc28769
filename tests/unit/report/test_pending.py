"""The GPUs that a pod could take, and why it can't: the sentences for a person who waits."""

from decimal import Decimal
from typing import Any

from webhook.policy.checkpoint.work_lost import Work
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting, room_for, to_evict

GPU = "nvidia.com/gpu"


def gpus(number: int) -> dict[str, Decimal]:
    return {GPU: Decimal(number)}


def node(name: str, number: int = 8, obstacle: str = "") -> NodeForPod:
    return NodeForPod(name, gpus(number), obstacle)


def a_holder(name: str, on: str, number: int, priority: int = 400, **more: Any) -> GpuHolder:
    tiers = {1000: "gpu-training", 400: "gpu-batch", 200: "gpu-interactive"}
    return GpuHolder(name, on, gpus(number), priority, tiers[priority], "alpha", **more)


def waiting(number: int, priority: int = 400, **more: Any) -> Waiting:
    return Waiting(gpus(number), priority, "gpu-batch", **more)


def text(room: Room) -> str:
    return " ".join(room.sentences)


def whys(room: Room) -> dict[str, str]:
    return {each.names: each.why for each in room.holders}


def test_equal_and_higher_tiers_keep_their_gpus() -> None:
    room = room_for(waiting(4), [node("a")], [a_holder("train", "a", 4, 1000), a_holder("batch", "a", 4)])
    assert text(room) == (
        "It waits for 4 free nvidia.com/gpu on one node: only a accepts it, and has 0 free. "
        "No pod there has a lower priority than gpu-batch's: it starts when pods there end."
    )
    assert whys(room) == {
        "train": "no: higher priority",
        "batch": "no: the same priority",
    }


def test_a_pod_without_a_tier_reads_its_priority() -> None:
    alone = Waiting(gpus(4), 0)
    assert text(room_for(alone, [node("a")], [a_holder("train", "a", 8, 1000)])).endswith(
        "No pod there has a lower priority than its own, 0: it starts when pods there end."
    )


def test_a_tier_that_evicts_nobody_waits_and_so_does_any_during_adoption() -> None:
    below = [a_holder("notebook", "a", 8, 200)]
    assert "Its tier gpu-batch evicts nobody (preemptionPolicy Never): it starts when pods there end" in text(
        room_for(waiting(4, evicts="never"), [node("a")], below)
    )
    room = room_for(waiting(4, evicts="adoption"), [node("a")], below)
    assert "No tier evicts anybody while adoption is on" in text(room)
    assert whys(room) == {"notebook": "no: lower priority, but the waiting pod evicts nobody"}


def test_free_gpus_that_lie_apart_are_named() -> None:
    pods = [a_holder("one", "a", 5), a_holder("two", "b", 5)]
    room = room_for(waiting(4), [node("a"), node("b")], pods)
    assert room.sentences[0] == "It waits for 4 free nvidia.com/gpu on one node. 6 are free, apart: a has 3, b has 3."
    assert room.free == {"a": 3, "b": 3}


def test_lower_pods_that_hold_too_little_on_each_node_are_no_way_out() -> None:
    pods = [a_holder("train", "a", 6, 1000), a_holder("notebook", "a", 2, 200)]
    room = room_for(waiting(4), [node("a")], pods)
    assert "Evicting the pods of lower tiers would free too few GPUs on each node" in text(room)
    assert whys(room)["notebook"] == "no: lower priority, but too few GPUs on its node"


def test_an_eviction_under_way_says_how_long_it_may_take() -> None:
    pods = [a_holder("notebook", "a", 8, 200, ends_in=93.2)]
    room = room_for(waiting(4, nominated="a"), [node("a")], pods)
    assert text(room) == (
        "The scheduler is evicting 1 pod on a for it, which may save first: it should start within 93 s."
    )
    assert whys(room) == {"notebook": "ending: its GPUs become free when it has saved"}


def test_an_eviction_that_has_not_begun_is_the_schedulers_to_tell() -> None:
    room = room_for(waiting(4), [node("a")], [a_holder("notebook", "a", 8, 200)])
    assert "The scheduler may evict pods of lower tiers for it." in text(room)
    assert whys(room) == {"notebook": "yes: lower priority"}


def test_gpus_that_are_free_are_not_what_it_waits_for() -> None:
    room = room_for(waiting(4), [node("a"), node("b")], [a_holder("batch", "a", 8)])
    assert room.sentences == ("It does not wait for GPUs: b has 8 nvidia.com/gpu free.",)


def test_a_pod_that_no_node_takes_reads_which_obstacle_stands_where() -> None:
    tainted = "tainted with team=beta:NoSchedule, which it does not tolerate"
    room = room_for(waiting(4), [node("a", obstacle=tainted), node("b", obstacle=tainted)], [])
    assert text(room) == f"No node with nvidia.com/gpu accepts it, whatever is free: 2 of 2 are {tainted}."
    mars = "without the label zone=mars of its nodeSelector"
    each = text(room_for(waiting(4), [node("a", obstacle=mars), node("b", obstacle=tainted)], []))
    assert f": 1 of 2 is {mars}; 1 of 2 is {tainted}." in each
    assert text(room_for(waiting(4), [], [])) == "No node has nvidia.com/gpu."


def test_a_pod_larger_than_any_node_never_runs() -> None:
    room = room_for(waiting(16), [node("a"), node("b", 4)], [])
    assert "It can never run: it asks for 16 nvidia.com/gpu, and the largest node that accepts it has 8." in text(room)


def test_many_pods_of_a_tenant_are_one_line() -> None:
    room = room_for(waiting(8), [node("a")], [a_holder(f"batch-{number}", "a", 1) for number in range(5)])
    (group,) = room.holders
    assert (group.tier, group.tenant, group.gpus) == ("gpu-batch", "alpha", 5)
    assert group.names == "batch-0, batch-1, batch-2 and 2 more"


def works(gpu_hours: float) -> Work:
    return Work(gpu_hours * 3600, exact=False)


def test_what_evicting_them_now_loses_is_said_of_those_that_the_scheduler_would_choose() -> None:
    younger, older = (
        a_holder(name, "a", 4, 200, work=works(hours), created=f"2026-11-24T{hour}:00:00Z")
        for name, hours, hour in (("younger", 3.2, "09"), ("older", 40, "01"))
    )
    room = room_for(waiting(4), [node("a")], [younger, older])
    assert "may evict pods of lower tiers for it; evicting them now loses at most 3.2 GPU-hours. If" in text(room)
    both = room_for(waiting(8), [node("a")], [younger, older])
    assert "evicting them now loses at most 43.2 GPU-hours." in text(both)


def test_of_several_nodes_the_one_counts_where_most_would_be_lost() -> None:
    cheap, dear = a_holder("cheap", "a", 8, 200, work=works(1)), a_holder("dear", "b", 8, 200, work=works(20))
    room = room_for(waiting(8), [node("a"), node("b")], [cheap, dear])
    assert "evicting them now loses at most 20.0 GPU-hours." in text(room)
    full = room_for(waiting(8), [node("a"), node("b")], [cheap, dear, a_holder("stays", "b", 1, 1000)])
    assert "evicting them now loses at most 60 GPU-minutes." in text(full), "on b there would be no room"


def victim(asks: Waiting, nodes: list[NodeForPod], *holders: GpuHolder) -> str:
    found = to_evict(asks, nodes, holders)
    return found.name if found else ""


TRAINING = waiting(8, 1000)
BATCH, NOTEBOOK = a_holder("batch", "a", 6), a_holder("notebook", "a", 2, 200)


def test_a_pod_waits_while_lower_ones_run_where_it_would_fit() -> None:
    assert victim(TRAINING, [node("a")], BATCH, NOTEBOOK) == "notebook", "the lowest of them"
    assert victim(TRAINING, [node("a"), node("b")], BATCH, a_holder("train", "b", 8, 1000)) == "batch"


def test_nobody_is_named_where_it_could_evict_nobody_or_waits_for_something_else() -> None:
    assert victim(waiting(8, 1000, evicts="never"), [node("a")], BATCH) == ""
    assert victim(TRAINING, [node("a", obstacle="has a taint")], BATCH) == "", "the node does not take it"
    assert victim(TRAINING, [node("a", 4)], a_holder("batch", "a", 4)) == "", "the node is too small for it"
    assert victim(TRAINING, [node("a")], a_holder("batch", "a", 4), a_holder("train", "a", 4, 1000)) == "", (
        "no room then either"
    )
    assert victim(TRAINING, [node("a"), node("b")], BATCH) == "", "b is free: it is not GPUs that it waits for"
    assert victim(TRAINING, [node("a")], a_holder("batch", "a", 8, ends_in=300.0)) == "", "what is there goes by itself"
