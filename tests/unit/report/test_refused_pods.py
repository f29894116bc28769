"""The controller's refusals and its next try, from events as Kubernetes writes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook.report.waiting import RefusedPods, ignores_failures, next_pod_of_job, refused_pods

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NO_ROOM = "exceeded quota: tenant alpha: the total is at 2 of 2 GPUs; this pod asks for 1. Would fit: no tier now."
DENIED = f'Error creating: admission webhook "pods.validate.gpu-tiers.dev" denied the request: {NO_ROOM}'


def event(first: str, last: str, kind: str = "Job", reason: str = "FailedCreate", **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": "train", "uid": "u"}
    times = {"firstTimestamp": f"2026-05-04T{first}Z", "lastTimestamp": f"2026-05-04T{last}Z", "count": 4}
    return {"involvedObject": about, "reason": reason, "message": DENIED, **times, **more}


def found(*events: dict[str, Any]) -> RefusedPods:
    refused = refused_pods(events)
    assert refused is not None
    return refused


def test_the_sentence_is_that_of_the_webhook_alone() -> None:
    assert found(event("11:58:00", "11:59:20")).sentence == NO_ROOM


def test_a_controller_waits_about_as_long_again_as_it_has_been_refused() -> None:
    refused = found(event("11:59:10", "11:59:40", "ReplicaSet"))
    assert refused.said(NOW) == (
        "ReplicaSet/train was refused 4 times, the last time 20 seconds ago. It tries again by itself, within 10 "
        "seconds or so."
    )


def test_a_controller_waits_no_longer_for_refusals_before_a_pod_was_admitted() -> None:
    refusal_event = event("10:00:00", "11:59:40", "ReplicaSet")
    refused = refused_pods([refusal_event], {"u": datetime(2026, 5, 4, 11, 59, 10, tzinfo=UTC)})
    assert refused is not None
    assert refused.tries_again == datetime(2026, 5, 4, 12, 0, 10, tzinfo=UTC)
    for created in ({"other": NOW - timedelta(seconds=50)}, {"u": NOW}):  # of another controller, or after the refusal
        assert refused_pods([refusal_event], created) == refused_pods([refusal_event])


def test_what_was_refused_once_has_no_last_time() -> None:
    refused = found(event("11:59:40", "11:59:40", count=1))
    assert refused.said(NOW).startswith("Job/train was refused once, 20 seconds ago. It may")


def test_a_job_waits_a_minute_at_most_and_others_seventeen() -> None:
    long_ago = ("09:00:00", "11:59:30")
    assert "within 30 seconds or so" in found(event(*long_ago)).said(NOW)
    assert "within 16 minutes or so" in found(event(*long_ago, "StatefulSet")).said(NOW)


def test_what_is_due_may_come_at_any_moment() -> None:
    assert "It may try again at any moment." in found(event("11:57:00", "11:57:10")).said(NOW)


def test_the_controllers_own_word_counts_before_ours_of_the_same_time() -> None:
    ours = event("11:59:00", "11:59:50", "JobSet", "OverQuota", message=NO_ROOM)
    assert found(event("11:59:00", "11:59:45"), ours).controller == "Job/train"
    assert found(event("11:50:00", "11:51:00"), ours).controller == "JobSet/train"


@pytest.mark.parametrize("reason", ["FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod"])
def test_operators_tell_of_a_refused_pod_by_reasons_of_their_own(reason: str) -> None:
    refused = found(event("11:59:10", "11:59:40", "PyTorchJob", reason))
    assert (refused.controller, refused.sentence, refused.ours) == ("PyTorchJob/train", NO_ROOM, True)
    other = event("11:59:10", "11:59:40", "PyTorchJob", reason, message="exceeded quota: rq, requested: pods=1")
    assert not found(other).ours


def test_events_of_the_newer_api_have_other_times() -> None:
    newer = {"firstTimestamp": None, "lastTimestamp": None, "count": None, "eventTime": "2026-05-04T11:59:00.000001Z"}
    series = {"series": {"count": 7, "lastObservedTime": "2026-05-04T11:59:30.000000Z"}}
    refused = found(event("0", "0", **newer, **series))
    assert (refused.times, refused.last.second, refused.since.second) == (7, 30, 0)


def test_what_another_has_refused_is_reported_whole_and_is_not_ours() -> None:
    refusal_event = 'Error creating: pods "train-0" is forbidden: exceeded quota: compute, requested: pods=1'
    refused = found(event("11:58:00", "11:59:00", message=refusal_event))
    assert (refused.sentence, refused.ours) == (refusal_event, False)
    assert found(event("11:58:00", "11:59:00")).ours
    assert found(event("11:58:00", "11:59:00", reason="Refused", message=NO_ROOM)).ours


def test_events_of_other_things_tell_of_no_refusal() -> None:
    assert refused_pods([]) is None
    assert refused_pods([event("11:58:00", "11:59:00", reason="UpdateRefused")]) is None, "its pod is there"
    assert refused_pods([event("11:58:00", "11:59:00", reason="BackOff"), {"reason": "FailedCreate"}]) is None


def test_another_sentence_does_not_restart_the_count() -> None:
    full = event("11:50:00", "11:58:00", count=7)
    now = event("11:59:30", "11:59:30", count=1, message=DENIED.replace("no tier now", "gpu-batch"))
    other = event("11:59:00", "11:59:10", count=9) | {"involvedObject": {"kind": "Job", "name": "other", "uid": "v"}}
    refused = found(full, now, other)
    assert (refused.controller, refused.times, refused.since.minute) == ("Job/train", 8, 50)


def test_an_outage_of_ours_is_no_refusal_of_ours_and_none_of_another() -> None:
    refusal_event = (
        'Error creating: Internal error occurred: failed calling webhook "pods.validate.gpu-tiers.dev": failed to call '
        'webhook: Post "https://10.0.0.9:443/x/validate?timeout=10s": read: connection reset by peer'
    )
    refused = found(event("11:58:00", "11:59:00", message=refusal_event))
    assert (refused.ours, refused.unreached) == (False, True)
    assert not found(event("11:58:00", "11:59:00", message=refusal_event.replace("gpu-tiers", "another"))).unreached


@pytest.mark.parametrize(("failed", "seconds"), [(0, 10), (1, 10), (2, 20), (4, 80), (7, 600), (2000, 600)])
def test_a_job_makes_its_next_pod_later_after_each_that_failed(failed: int, seconds: int) -> None:
    assert next_pod_of_job(failed, NOW) == NOW + timedelta(seconds=seconds)


def test_failures_that_a_pod_failure_policy_ignores_are_missing_from_the_status() -> None:
    """Twelve pods that are evicted at once make the controller wait for 10 minutes, whatever its status counts."""
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert ignores_failures({"spec": {"podFailurePolicy": {"rules": [ignore]}}, "status": {"failed": 1}})
    assert not ignores_failures({"spec": {"podFailurePolicy": {"rules": [{"action": "FailJob"}]}}})
    assert not ignores_failures({"status": {"failed": 12}})
