"""A kind that is not a kind: what was perhaps meant."""

from pathlib import Path

from tests.builders import a_podgroup, policy_file
from tests.builders.api import ApiOfObjects
from tests.unit.cli.conftest import Answering
from tests.unit.cli.person import asked
from tests.unit.cli.test_person_asks import lists
from webhook.cli.cluster.one_object import meant
from webhook.kube.discovery import ServedResource

JOB = ServedResource("batch/v1", "Job", "jobs", frozenset(("jobs", "job")))
DEPLOYMENT = ServedResource("apps/v1", "Deployment", "deployments", frozenset(("deployments", "deployment", "deploy")))


def test_a_name_before_its_kind_a_misspelt_kind_and_one_that_is_like_none() -> None:
    assert meant([JOB, DEPLOYMENT], "dashboard", "deploy") == "write the kind first: deploy dashboard"
    assert meant([JOB, DEPLOYMENT], "jobb", "nope") == "did you mean job/nope?"
    assert meant([JOB, DEPLOYMENT], "widget", "nope") == "it serves Deployment, Job"


def test_who_asks_about_a_podgroup_reads_to_ask_about_a_pod_of_it(answering: Answering, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_file(preset="four-tier"))
    api = ApiOfObjects(lists(**{"/apis/scheduling.k8s.io/v1/podgroups": [a_podgroup("b1").json()]}))
    command = ("why-pending", "podgroup/b1", "--namespace=team-alpha", f"--policy={policy}")
    code, text = asked(tmp_path, answering(api), {"token": "hers"}, *command)
    assert code == 2
    assert '"podgroup" makes no pods that gpu-tiers knows of; ask about one of its pods by name' in text
