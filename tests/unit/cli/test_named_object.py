"""A kind that is not a kind: what was perhaps meant."""

from webhook.cli.cluster.one_object import meant
from webhook.kube.discovery import ServedResource

JOB = ServedResource("batch/v1", "Job", "jobs", frozenset(("jobs", "job")))
DEPLOYMENT = ServedResource("apps/v1", "Deployment", "deployments", frozenset(("deployments", "deployment", "deploy")))


def test_a_name_before_its_kind_a_misspelt_kind_and_one_that_is_like_none() -> None:
    assert meant([JOB, DEPLOYMENT], "dashboard", "deploy") == "write the kind first: deploy dashboard"
    assert meant([JOB, DEPLOYMENT], "jobb", "nope") == "did you mean job/nope?"
    assert meant([JOB, DEPLOYMENT], "widget", "nope") == "it serves Deployment, Job"
