"""The table of kinds as a whole."""

from typing import Any

import msgspec
import pytest

from webhook.policy.workloads.kind_table import BUILT_IN, rows_of
from webhook.policy.workloads.pod_counts import GROUP_COUNTS, POD_COUNTS


def test_gang_labels_are_those_of_kinds_whose_members_may_hold_no_gpu() -> None:
    """The chart's matchConditions list the same. With a Job's among them, a dead webhook would stop all Jobs."""
    assert sorted(BUILT_IN.gang_labels) == [
        "dask.org/cluster-name",
        "elasticjob.dlrover/name",
        "grove.io/podgang",
        "jobset.sigs.k8s.io/jobset-name",
        "leaderworkerset.sigs.k8s.io/name",
        "ray.io/cluster",
        "ray.io/originated-from-cr-name",
        "training.kubeflow.org/job-name",
        "volcano.sh/job-name",
    ]


def test_each_count_is_one_that_a_row_names() -> None:
    templates = [each for row in BUILT_IN.rows for each in row.templates]
    assert {*POD_COUNTS.values()} <= {each.count for each in templates}
    assert {*GROUP_COUNTS.values()} <= {count for each in templates for count in (each.times, each.left, each.least)}


MISTAKES = {
    "a field that no row has": ({"gangs": True}, "unknown field `gangs`"),
    "a type that is none": ({"usualType": "trainng"}, "Invalid enum value 'trainng'"),
    "a count of another sort": ({"templates": [{"path": "spec.template", "times": "job_pods"}]}, "job_pods"),
    "a place in a template that is none": ({"templates": [{"path": "spec.template", "pod": "one"}]}, "field `pod`"),
    "a row that no file has": (
        {"templates": [{"path": "spec.template", "between": [{"metadata": "spec", "row": "batch/Jib"}]}]},
        "batch/Jib",
    ),
}


@pytest.mark.parametrize(("fields", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_file_of_the_table_is_no_row(fields: dict[str, Any], problem: str) -> None:
    entry = {"group": "example.com", "kind": "Job", "plural": "jobs", "source": "https://example.com", **fields}
    with pytest.raises((msgspec.ValidationError, KeyError), match=problem):
        rows_of([entry])
