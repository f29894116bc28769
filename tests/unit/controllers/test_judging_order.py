"""Which gangs are judged next: nobody's pods keep those of other namespaces or of higher tiers waiting."""

from msgspec.structs import replace

from tests.builders.dra_cluster import NOW, TIERS, DraCluster
from tests.unit.clock import Clock
from webhook.controllers.device_preemption import AGAIN, LATEST, REST, JudgingOrder
from webhook.policy.preemption.pod_state import PodState


def waiting(name: str, tier: str = "gpu-training", namespace: str = "team-alpha", since: float = 60.0) -> PodState:
    cluster = DraCluster()
    cluster.waiting(name, tier, since=-since)
    return replace(cluster.state().pods[name], namespace=namespace)


def test_the_highest_tier_is_first_then_the_longest_waiting() -> None:
    pods = [waiting("late", since=20), waiting("low", "gpu-batch"), waiting("early"), waiting("new", since=1)]
    assert TIERS["gpu-batch"] < TIERS["gpu-training"]
    assert JudgingOrder(Clock()).due(pods, NOW) == ["early", "late", "low"]


def test_those_of_one_namespace_take_turns_with_those_of_others() -> None:
    """Whoever has hundreds of pods wait keeps nobody else's waiting, not even those that came later."""
    many = [waiting(f"theirs-{each}", namespace="theirs", since=900) for each in range(300)]
    few = [waiting("ours", since=10), waiting("also-ours", "gpu-batch", since=10)]
    due = JudgingOrder(Clock()).due([*many, *few], NOW)
    assert set(due[:2]) == {"theirs-0", "ours"}
    assert due.index("also-ours") < 4


def test_what_was_judged_longest_ago_is_next() -> None:
    clock = Clock()
    order, pods = JudgingOrder(clock), [waiting(f"pod-{each}") for each in range(3)]
    order.judged("pod-0", "why")
    clock.now += AGAIN / 2
    order.judged("pod-1", "why")
    assert order.due(pods, NOW) == ["pod-2"]
    clock.now += AGAIN + 1
    assert order.due(pods, NOW) == ["pod-2", "pod-0", "pod-1"]


def test_for_the_same_reason_it_is_judged_less_and_less_often() -> None:
    clock = Clock()
    order, pods, pauses = JudgingOrder(clock), [waiting("pod")], list[float]()
    for _ in range(8):
        order.judged("pod", "why")
        began = clock.now
        while not order.due(pods, NOW):
            clock.now += 1
        pauses.append(clock.now - began)
    assert pauses == sorted(pauses)
    assert AGAIN < pauses[0] < pauses[1] <= pauses[-1] == LATEST + 1
    order.judged("pod", "another reason")
    clock.now += AGAIN + 1
    assert order.due(pods, NOW) == ["pod"]


def test_judging_has_a_share_of_the_time() -> None:
    clock = Clock()
    order, pods = JudgingOrder(clock), [waiting("pod")]
    order.rest(2.0)
    clock.now += 2.0 * REST - 0.1
    assert order.due(pods, NOW) == []
    clock.now += 0.2
    assert order.due(pods, NOW) == ["pod"]
