"""Trainings are asked to save in time, a few at once, and nobody saves twice for one request."""

import pytest
from msgspec.structs import replace

from tests.builders.trainings import Replicas, SimulatedTraining
from webhook.controllers.asked_saves import REMEMBERED, EndingNodes
from webhook.controllers.pods_on_nodes import PodWork
from webhook.policy.saves.save_requests import Training, latest_starts, requested
from webhook.policy.values.tier_policy import AtOnce, Saves

BOUND = 600


def test_a_stock_program_that_never_saves_by_itself_loses_at_most_its_tiers_bound() -> None:
    training = SimulatedTraining("a")
    replicas = Replicas(training, saves=Saves({"gpu-training": BOUND}))
    replicas.live(3600)
    assert training.worst <= BOUND + training.save_seconds + 1
    assert len(training.saves) == 3600 // (BOUND + 10), "no more often than the bound wants it"
    assert replicas.told == [], "what happens each ten minutes is a metric, and no event"


@pytest.mark.release
def test_a_thousand_trainings_keep_their_bound_and_no_limit_of_the_storage_is_passed() -> None:
    trainings = [
        SimulatedTraining(f"{number}", f"team-{number % 10}", volume=f"store-{number % 100}", answers_lost=0.1)
        for number in range(1_000)
    ]
    limits = AtOnce(cluster=120, tenant=16, volume_claim=3)
    replicas = Replicas(*trainings, saves=Saves({"gpu-training": 300}, limits))
    replicas.live(420, leader_changes_each=250)
    in_time = [each for each in trainings if each.worst <= 300 + 2 * each.save_seconds]
    assert len(in_time) >= 850, "others lost an answer twice, or the leader that had asked them"
    assert max(each.worst for each in trainings) <= 300 + 5 * replicas.reports[0].period
    for each in trainings:
        assert len({wish for wish, _ in each.saves}) == len(each.saves) >= 1, "one save for each request"
    assert replicas.most_at_once["cluster"] <= 2 * 120, "a new leader does not know who saves already"


def test_limits_hold_exactly_while_one_replica_leads() -> None:
    trainings = [SimulatedTraining(f"{number}", volume="one") for number in range(40)]
    replicas = Replicas(*trainings, saves=Saves({"gpu-training": BOUND}, AtOnce(volume_claim=3)))
    replicas.live(2 * BOUND)
    assert replicas.most_at_once["one"] == 3
    assert max(each.worst for each in trainings) <= BOUND + 30, "the first ones began early enough for the last ones"


def test_a_rack_that_is_drained_saves_once_and_the_most_work_first() -> None:
    trainings = [SimulatedTraining(f"{number}", gpus=1 + number % 8, node=f"node-{number}") for number in range(64)]
    replicas = Replicas(*trainings, saves=Saves(at_once=AtOnce(volume_claim=4, tenant=64, cluster=8)))
    replicas.live(60)
    assert not any(each.saves for each in trainings), "without a bound nobody asks"
    for number in range(32):
        replicas.going[f"node-{number}"] = "drained", replicas.now
    replicas.live(120)
    assert [len(each.saves) for each in trainings] == [1] * 32 + [0] * 32
    firsts = sorted(trainings[:32], key=lambda each: each.saves[0][1])[:4]
    assert all(each.gpus >= 7 for each in firsts)
    assert replicas.most_at_once["cluster"] <= 8
    assert sorted(replicas.told) == sorted((f"{number}", "Saved") for number in range(32))


def test_a_person_asks_once() -> None:
    training = SimulatedTraining("a")
    replicas = Replicas(training, SimulatedTraining("b"), saves=Saves())
    replicas.live(30)
    training.work = PodWork(training.began, save_requested=replicas.now)
    replicas.live(600, leader_changes_each=60)
    assert [len(each.saves) for each in replicas.trainings] == [1, 0]
    assert ("a", "Saved") in replicas.told


def test_one_that_is_evicted_next_saves_before_those_whose_node_goes() -> None:
    trainings = [SimulatedTraining(f"{number}", gpus=number + 1, volume="one") for number in range(4)]
    replicas = Replicas(*trainings, saves=Saves(at_once=AtOnce(volume_claim=1)))
    replicas.live(30)
    assert replicas.unsaved_since.keys() == {"0", "1", "2", "3"}
    replicas.going["node-1"] = "drained", replicas.now
    decided = replicas.now
    replicas.evicted["0"] = decided
    replicas.live(25, leader_changes_each=9)
    assert [wish for wish, _ in trainings[0].saves] == [f"eviction-{decided}"]
    assert replicas.unsaved_since.get("0", decided) >= decided, "it is not waited for any more"
    assert sum(len(each.saves) for each in trainings[1:]) <= 2


def test_who_asks_all_the_time_keeps_no_place_of_others() -> None:
    greedy = [SimulatedTraining(f"{number}", "greedy") for number in range(20)]
    other = SimulatedTraining("other", "team-alpha")
    replicas = Replicas(*greedy, other, saves=Saves({"gpu-training": BOUND}, AtOnce(cluster=4, tenant=3)))
    for _ in range(2 * BOUND // 20):
        for each in greedy:
            each.work = PodWork(each.began, save_requested=replicas.now)
        replicas.live(20)
    assert replicas.most_at_once["greedy"] == 3
    assert other.worst <= BOUND + other.save_seconds + 10


def test_one_that_could_not_save_is_not_waited_for() -> None:
    training = SimulatedTraining("a", fails=9)
    replicas = Replicas(training, saves=Saves())
    replicas.live(30)
    replicas.evicted["a"] = replicas.now
    replicas.live(30)
    assert replicas.unsaved_since == {}


@pytest.mark.parametrize(("retry", "again"), [(0, None), (2, "eviction-100.0-2")])
def test_one_whose_second_try_succeeded_is_asked_no_third_time(retry: int, again: str | None) -> None:
    """Also if its clock dates the save before the decision to evict it."""
    training = Training(
        "a", ("team-alpha", "a"), 8, 90.0, 7, evicted_at=100.0, finished="eviction-100.0-1", retry=retry
    )
    request = requested(training)
    assert (request.id if request else None) == again
    assert training.has_saved_for_eviction
    assert not replace(training, finished="eviction-50.0-1").has_saved_for_eviction


def test_a_signal_that_stays_is_the_same_one_and_one_that_comes_back_after_an_hour_another() -> None:
    now = 0.0
    nodes = EndingNodes(None, None, None, lambda: now)  # type: ignore[arg-type]
    for now, signal, since in (
        (0.0, "drained", 0.0),
        (2 * REMEMBERED, "drained", 0.0),
        (2 * REMEMBERED, None, None),
        (2 * REMEMBERED + 60, "drained", 2 * REMEMBERED + 60),
        (2 * REMEMBERED + 70, None, None),
        (2 * REMEMBERED + 90, "drained", 2 * REMEMBERED + 60),
    ):
        nodes._seen("node-1", signal)
        assert nodes.signal("node-1") == (None if since is None else ("drained", since)), now


def test_a_time_in_the_future_asks_no_more_often() -> None:
    training = SimulatedTraining("a")
    replicas = Replicas(training, saves=Saves())
    training.work = PodWork(training.began, save_requested=replicas.now + 86_400)
    replicas.live(600)
    assert training.saves == []


def test_a_full_disk_is_told_and_tried_again_more_and_more_seldom() -> None:
    training = SimulatedTraining("a", fails=4)
    replicas = Replicas(training, saves=Saves({"gpu-training": 60}))
    replicas.live(3600)
    pauses = [later - earlier for (_, earlier), (_, later) in zip(training.saves, training.saves[1:], strict=False)]
    assert pauses[0] < pauses[1] < pauses[2] < pauses[3]
    assert replicas.told == [("a", "NotSaved")] * 4
    assert pauses[4:] == sorted(pauses[4:])[: len(pauses[4:])]
    assert replicas.counted.count(("at-risk", "failed")) == 4


def test_a_program_that_cannot_save_is_asked_once() -> None:
    training = SimulatedTraining("a", unable=True)
    replicas = Replicas(training, saves=Saves({"gpu-training": 60}))
    replicas.live(3600)
    assert len(training.saves) == 1
    assert replicas.told == [("a", "NotSaved")]


def test_the_pods_own_bound_comes_before_that_of_its_tier() -> None:
    own = SimulatedTraining("own")
    replicas = Replicas(own, SimulatedTraining("tiers"), saves=Saves({"gpu-training": BOUND}))
    own.work = PodWork(own.began, max_at_risk=60)
    replicas.live(BOUND)
    assert own.worst <= 60 + 11
    assert len(own.saves) >= 8
    own.work = replace(own.work, max_at_risk=None)


def test_saves_that_are_due_together_begin_earlier() -> None:
    assert latest_starts([100.0] * 4, at_once=2, seconds=30) == [70.0, 70.0, 100.0, 100.0]
    assert latest_starts([100.0, 200.0], at_once=1, seconds=30) == [100.0, 200.0]
    assert latest_starts([], at_once=3, seconds=30) == []
