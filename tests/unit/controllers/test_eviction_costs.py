"""The objects that get a cost of eviction, of which pods' work, how often, and by how many writes at most."""

from dataclasses import replace
from decimal import Decimal

from tests.builders import a_policy
from webhook.controllers.pods_on_nodes import PodWork
from webhook.controllers.work_at_risk import (
    MOST_WRITES,
    ROUND,
    AnnotatedObject,
    PodAtRisk,
    Wanted,
    boosts,
    save_times,
    writes_of_a_round,
)
from webhook.ledger.protocol import Holding
from webhook.policy.quota.charges import Charge

NOW, MINUTE = 1_800_000_000.0, 60.0
POLICY = a_policy()


def pod(uid: str, minutes: float, gpus: int = 1, namespace: str = "research", **made_by: str) -> PodAtRisk:
    """A pod that saved so many minutes ago."""
    holding = Holding(namespace, Charge(Decimal(gpus), "gpu-batch"), name=uid, **made_by)
    work = PodWork(NOW - 100 * MINUTE)
    return PodAtRisk(uid, holding, "node-1", work, float(gpus), NOW - minutes * MINUTE, exact=True)


def workload(*owners: str, value: str = "", ours: bool = True, namespace: str = "research") -> AnnotatedObject:
    return AnnotatedObject(namespace, "work", owners, value, ours)


def boosted(*pods: PodAtRisk, **found: AnnotatedObject) -> dict[str, str]:
    return {uid: wanted.value for uid, wanted in boosts(pods, found, POLICY, NOW).items()}


def test_a_workload_answers_for_the_pods_of_its_job_whoever_stands_between() -> None:
    of_job = [pod(f"job-{number}", 50, controller="job") for number in range(4)]
    of_jobset = [pod(f"set-{number}", 50, controller="its-job", gang="jobset") for number in range(8)]
    found = {"one": workload("job"), "other": workload("jobset")}
    assert boosted(*of_job, *of_jobset, **found) == {"one": "5", "other": "6"}


def test_plain_pods_in_a_group_own_their_workload_together() -> None:
    assert boosted(pod("a", 50), pod("b", 50), group=workload("a", "b")) == {"group": "4"}


def test_one_that_has_just_saved_has_none_and_pods_elsewhere_raise_nobody() -> None:
    assert boosted(pod("a", 0.02, controller="job"), one=workload("job")) == {}
    assert boosted(pod("a", 50, controller="job", namespace="forger"), one=workload("job")) == {}


def test_volcano_reads_when_a_pod_saved_last_and_in_the_future_is_now() -> None:
    times = save_times(
        [pod("a", 50), pod("b", -2), pod("elsewhere", 1)], {"a": workload(), "b": workload()}, POLICY, NOW
    )
    assert {uid: each.value for uid, each in times.items()} == {
        "a": "2027-01-15T07:10:00Z",
        "b": "2027-01-15T08:00:00Z",
    }
    written = {"a": workload(value="2027-01-15T07:07:00Z")}
    assert save_times([pod("a", 50)], written, POLICY, NOW)["a"] == Wanted("2027-01-15T07:07:00Z", 0), "about the same"


def test_a_value_that_is_none_of_ours_under_our_name_is_put_right() -> None:
    for value in ("-5", "150", "x", "9" * 5000):
        assert boosted(pod("a", 50, controller="job"), one=workload("job", value=value)) == {"one": "3"}
    for value in ("yesterday", "0001-01-01T00:00:00", "2027-01-15T07:10:00+09:00"):
        times = save_times([pod("a", 50)], {"a": workload(value=value)}, POLICY, NOW)
        assert times["a"].value == "2027-01-15T07:10:00Z"


def test_what_somebody_else_wrote_stays_and_what_runs_no_more_loses_its_own_first() -> None:
    found = {
        "another's": workload(value="7", ours=False),
        "evicted": workload(value="2"),
        "saved": workload(value="9"),
        "right": workload(value="3"),
        "plain": workload(),
    }
    wanted = {"another's": Wanted("1", 6), "saved": Wanted("3", 6), "right": Wanted("3", 0)}
    assert writes_of_a_round(found, wanted) == [("evicted", ""), ("saved", "3")]


def test_few_writes_keep_up_with_a_hundred_trainings_and_the_first_round_writes_no_more_than_any() -> None:
    """Jobs of 8 GPUs that save each 20 minutes, for half an hour from the moment at which a replica begins to tell."""
    found = {f"w{number}": workload(f"job-{number}") for number in range(100)}
    trainings = [pod(f"p{number}", 0, gpus=8, controller=f"job-{number}") for number in range(100)]
    rounds = []
    for second in range(0, 1800, int(ROUND)):
        now = NOW + second
        at_risk = [each._replace(since=now - since_save(number, second)) for number, each in enumerate(trainings)]
        of_round = writes_of_a_round(found, boosts(at_risk, found, POLICY, now))
        for uid, value in of_round:
            found[uid] = replace(found[uid], value=value)
        rounds.append(len(of_round))
    assert rounds[0] == MOST_WRITES
    assert max(rounds[2:]) < 10
    assert sum(rounds) / 1800 < 0.6, "writes a second"
    assert not writes_of_a_round(found, boosts(at_risk, found, POLICY, now))


def since_save(number: int, second: int) -> float:
    """They save one after another."""
    return (second + 12 * number) % (20 * MINUTE)
