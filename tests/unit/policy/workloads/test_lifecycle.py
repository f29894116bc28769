"""The controller of a workload writes whether some of its pods are done."""

import pytest

from webhook.policy.workloads.workload import is_partly_done

STATUSES = {
    "a Job": {"succeeded": 3},
    "a PyTorchJob": {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"succeeded": 1}}},
    "a JobSet": {"replicatedJobsStatus": [{"name": "workers", "succeeded": 2}]},
}


@pytest.mark.parametrize("what", STATUSES)
def test_it_is_once_a_pod_has_succeeded(what: str) -> None:
    assert is_partly_done({"status": STATUSES[what]})


def test_it_is_not_while_all_run_or_where_the_status_is_odd() -> None:
    for status in ({"succeeded": 0, "active": 4}, {}, None, [], {"replicaStatuses": {"Worker": None}}):
        assert not is_partly_done({"status": status})
