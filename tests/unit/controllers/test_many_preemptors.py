"""The leader's rounds while very many pods wait for devices: what a round judges and writes is bounded."""

from unittest import mock

from tests.builders.dra_cluster import DraCluster
from tests.builders.simulated_preemption import Case, Simulated, judged, leading, one_round
from webhook.controllers import device_preemption
from webhook.controllers.device_preemption import LONGEST_SPELL
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.cluster_state import Rules
from webhook.policy.preemption.decide_preemption import Known, decide_preemption

LOOK = 0.1
"""Seconds between two looks at the clock."""


class Crowded(Simulated):
    """Its clock goes on with each look. Nothing may be written."""

    @property
    def now(self) -> float:
        self.seconds += LOOK
        return super().now

    async def patch(self, where: str, *_: object, **__: object) -> dict[str, object]:
        raise AssertionError(where)


def test_those_that_need_the_same_are_judged_once() -> None:
    cluster, known = DraCluster(), Known()
    cluster.node("a")
    for name, tier, gpus in (("one", "gpu-training", 3), ("alike", "gpu-training", 3), ("lower", "gpu-serving", 3)):
        cluster.waiting(name, tier, gpus)
    cluster.waiting("more", gpus=4)
    cluster.waiting("elsewhere", gpus=3, nodeSelector={"zone": "west"})
    state, rules = cluster.state(), Rules(cluster.policy)
    answers = {name: decide_preemption(name, state, rules, None, known) for name in cluster.pods}
    assert all(isinstance(each, Phrase) for each in answers.values())
    assert answers["alike"] is answers["one"]
    assert len(known) == 4


def test_a_round_judges_for_a_second_and_writes_nothing() -> None:
    """Each of these pods needs something else that no node has."""
    crowded = Crowded(Case((2,), (30, 30), (), 0))
    for number in range(100):
        crowded.cluster.waiting(f"high-{number}", since=-60, gpus=3, nodeSelector={"number": str(number)})
    with leading(crowded) as leader:
        one_round(leader, crowded)
        first = judged(leader)
        assert 0 < first <= LONGEST_SPELL / LOOK
        one_round(leader, crowded)
        assert judged(leader) == first, "others have the next seconds"


def test_evictions_of_a_minute_are_bounded() -> None:
    """All of them fit, and pods of one tier share a node."""
    most, count, evicted = 5, 8, []
    simulated = Simulated(Case((count,), (200,) * count, ((1, "gpu-training"),) * count, 0))
    with mock.patch.object(device_preemption, "MOST_PER_MINUTE", most), leading(simulated) as leader:
        for _ in range(80):
            simulated.next_second()
            one_round(leader, simulated)
            evicted.append(len(simulated.evicted))
    assert evicted[59] == most
    assert evicted[-1] == count
