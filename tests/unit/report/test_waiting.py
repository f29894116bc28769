"""The state of a waiting pod, by its own fields, the scheduler and Kueue."""

from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.report.waiting import kueue_says, scheduler_says, standing, waits_for_gpus_alone


def pod(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train-0"}, "spec": spec or {}, "status": {"phase": "Pending", **status}}


def test_a_pod_that_runs_or_has_ended_waits_for_nothing() -> None:
    assert standing(pod({"nodeName": "a"}, phase="Running")).sentence == "It runs on a."
    assert standing(pod({"nodeName": "a"}, phase="Failed")).sentence == "It has ended: Failed."


def test_a_failed_pod_says_why() -> None:
    states = [{"name": "main", "state": {"terminated": {"reason": "Error", "exitCode": 137}}}]
    failed = {"metadata": {}, "spec": {}, "status": {"phase": "Failed", "containerStatuses": states}}
    assert standing(failed).sentence == "It has ended: Failed (container main: Error, exit code 137)."
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    assert standing(failed).sentence == "It has ended: Failed (Evicted)."


def test_gates_are_named_with_who_lifts_them() -> None:
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/data"}]
    found = standing(pod({"schedulingGates": gates}))
    assert found.state == "gated"
    assert "kueue.x-k8s.io/admission: Kueue has not admitted it; example.com/data: the system" in found.sentence


def test_a_pod_with_a_node_waits_for_its_containers() -> None:
    waits = {"reason": "ImagePullBackOff", "message": "no such image"}
    found = standing(pod({"nodeName": "a"}, containerStatuses=[{"name": "main", "state": {"waiting": waits}}]))
    assert found.state == "starting"
    assert found.sentence.endswith("are starting: main waits (ImagePullBackOff: no such image).")


def test_a_pod_that_is_deleted_says_until_when() -> None:
    found = standing({**pod(), "metadata": {"deletionTimestamp": "2026-05-04T12:00:00Z"}})
    assert (found.state, "ends by 2026-05-04T12:00:00Z" in found.sentence) == ("ending", True)
    late = standing({**pod(), "metadata": {"deletionTimestamp": "2026-05-04T12:00:00Z"}}, datetime.now(UTC))
    assert late.sentence == "It is being deleted, and should have ended by 2026-05-04T12:00:00Z."


def test_the_scheduler_is_quoted_from_the_condition_else_from_its_newest_event() -> None:
    events = [
        {"reason": "FailedScheduling", "lastTimestamp": "2026-05-04T12:00:00Z", "message": "older"},
        {"reason": "FailedScheduling", "eventTime": "2026-05-04T12:01:00.0Z", "message": "newer"},
    ]
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    assert scheduler_says(pod(conditions=[condition]), events) == "0/2 nodes are available"
    assert scheduler_says(pod(), events) == "newer (reported at 2026-05-04T12:01:00Z)"
    assert scheduler_says(pod(), []) == ""


def test_kueue_says_why_it_has_not_admitted_the_workload_of_a_job() -> None:
    reserved = {"type": "QuotaReserved", "status": "False", "message": "couldn't assign flavors to pod set main"}
    workload = {"metadata": {"ownerReferences": [{"uid": "job"}]}, "status": {"conditions": [reserved]}}
    assert kueue_says([workload], frozenset({"job"})) == "couldn't assign flavors to pod set main"
    assert kueue_says([workload], frozenset({"another"})) == ""


GPUS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
ALONE = [
    "",
    GPUS,
    "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient nvidia.com/gpu.",
]
MORE = [
    f"{GPUS} preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
    f"{GPUS} preemption: not eligible due to preemptionPolicy=Never.",
    "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.",
    "0/3 nodes are available: 3 Insufficient memory.",
    "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
    "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
    "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.",
    "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.",
    "0/3 nodes are available: 3 Too many pods.",
    "0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.",
]


@pytest.mark.parametrize("words", ALONE)
def test_the_scheduler_names_gpus_alone_or_has_said_nothing(words: str) -> None:
    assert waits_for_gpus_alone(words)


@pytest.mark.parametrize("words", MORE)
def test_the_scheduler_has_looked_for_victims_or_names_something_else(words: str) -> None:
    assert not waits_for_gpus_alone(words)
