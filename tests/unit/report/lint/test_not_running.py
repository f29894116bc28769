"""Workloads that use quota and do not run."""

from typing import Any

from tests.builders import a_tenant
from tests.unit.report.lint.asking import a_cluster, a_listed_pod, active, found
from webhook.cluster.listed import PodSummary
from webhook.policy.values.facts import Namespace
from webhook.report.lint.snapshot import ClusterSnapshot

HOURS_AGO = "2026-11-21T19:00:00Z"
WHY = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def pending(name: str = "train-0", gpus: int = 2, **fields: Any) -> PodSummary:
    there = {"node": "", "created": HOURS_AGO, "unscheduled": WHY, "job": "train"}
    return a_listed_pod(name, gpus, **(there | fields))


def a_team(*pods: PodSummary, gpus: int = 4) -> ClusterSnapshot:
    tenants = active(a_tenant().allowing(gpus, tier="gpu-training").allowing(16).view())
    labels = {"kubernetes.io/metadata.name": "team-alpha", "example.com/tenant": "alpha"}
    return a_cluster(tenants=tenants, namespaces=(Namespace("team-alpha", labels),), pods=pods)


def findings(*pods: PodSummary, gpus: int = 4) -> list[str]:
    return found("pending-for-hours", a_team(*pods, gpus=gpus))


def test_a_full_quota_on_which_nothing_runs() -> None:
    assert findings(pending(), pending("train-1", unscheduled="2 nodes had taints")) == [
        (
            "Job/train in team-alpha: 2 of its 2 pods have had no node for 5 hours, using 4 GPUs of gpu-training of "
            f"tenant alpha; gpu-training is full, and nothing runs on it. The scheduler says: {WHY}"
        )
    ]


def test_what_runs_beside_it_is_said_to_run() -> None:
    runs = a_listed_pod("train-1", 2, job="train", created=HOURS_AGO)
    assert findings(pending(), runs) == [
        (
            "Job/train in team-alpha: 1 of its 2 pods have had no node for 5 hours, using 2 GPUs of gpu-training of "
            f"tenant alpha. The scheduler says: {WHY}"
        )
    ]


def test_a_scheduler_that_has_not_looked_is_named() -> None:
    (line,) = findings(pending(unscheduled="", scheduler="volcano"), gpus=8)
    assert line.endswith("alpha. The scheduler says: nothing yet (schedulerName: volcano)")


def test_its_words_stand_on_one_line() -> None:
    (line,) = findings(pending(unscheduled="0/3 nodes:\n  none"))
    assert line.endswith("The scheduler says: 0/3 nodes: none")


def test_what_uses_nothing_or_not_for_long_is_left_out() -> None:
    assert findings(pending(created="2026-11-21T23:00:00Z")) == [], "an hour: an autoscaler may be at it"
    assert findings(pending(queued=True)) == [], "it waits for quota, and uses none"
    assert findings(pending(ends="2026-11-22T00:00:30Z")) == []
    assert findings(pending(created="")) == []
    assert findings(a_listed_pod(created=HOURS_AGO)) == []
