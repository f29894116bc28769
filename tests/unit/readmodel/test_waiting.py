"""Where a pod stands, as its own fields say it, and what scheduler and Kueue say of it."""

from typing import Any

from webhook.readmodel.waiting import kueue_says, scheduler_says, standing


def pod(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train-0"}, "spec": spec or {}, "status": {"phase": "Pending", **status}}


def test_a_pod_that_runs_or_has_ended_waits_for_nothing() -> None:
    assert standing(pod({"nodeName": "a"}, phase="Running")).sentence == "It runs on a."
    assert standing(pod({"nodeName": "a"}, phase="Failed")).sentence == "It has ended: Failed."


def test_gates_are_named_with_who_lifts_them() -> None:
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/data"}]
    found = standing(pod({"schedulingGates": gates}))
    assert found.state == "gated"
    assert "kueue.x-k8s.io/admission: Kueue has not admitted it; example.com/data: whoever" in found.sentence


def test_a_pod_with_a_node_waits_for_its_containers() -> None:
    waits = {"reason": "ImagePullBackOff", "message": "no such image"}
    found = standing(pod({"nodeName": "a"}, containerStatuses=[{"name": "main", "state": {"waiting": waits}}]))
    assert found.state == "starting"
    assert found.sentence.endswith("are starting: main waits (ImagePullBackOff: no such image).")


def test_a_pod_that_is_deleted_says_until_when() -> None:
    found = standing({**pod(), "metadata": {"deletionTimestamp": "2026-05-04T12:00:00Z"}})
    assert (found.state, "at 2026-05-04T12:00:00Z at the latest" in found.sentence) == ("ending", True)


def test_the_scheduler_is_quoted_from_the_condition_else_from_its_newest_event() -> None:
    events = [
        {"reason": "FailedScheduling", "lastTimestamp": "2026-05-04T12:00:00Z", "message": "older"},
        {"reason": "FailedScheduling", "eventTime": "2026-05-04T12:01:00.0Z", "message": "newer"},
    ]
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    assert scheduler_says(pod(conditions=[condition]), events) == "0/2 nodes are available"
    assert scheduler_says(pod(), events) == "newer"
    assert scheduler_says(pod(), []) == ""


def test_kueue_says_why_it_has_not_admitted_the_workload_of_a_job() -> None:
    reserved = {"type": "QuotaReserved", "status": "False", "message": "couldn't assign flavors to pod set main"}
    workload = {"metadata": {"ownerReferences": [{"uid": "job"}]}, "status": {"conditions": [reserved]}}
    assert kueue_says([workload], frozenset({"job"})) == "couldn't assign flavors to pod set main"
    assert kueue_says([workload], frozenset({"another"})) == ""
