"""Real Volcano Jobs: Volcano's controllers and webhooks beside ours. The test lets their groups begin."""

import pytest

from .samples import a_volcano_job
from .team import Team, Tree, hooked
from .volcano import begins

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("volcano")]

JOB = "jobs.batch.volcano.sh/bert"


def test_every_pod_has_its_jobs_verdict(team: Team) -> None:
    assert team.apply(a_volcano_job("bert")) == ""
    begins(team, "bert")
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["pytorch"]] * 4
    team.shows("gpu-training 4/8, total 4/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_volcano_job("first"))
    begins(team, "first")
    team.runs(4)
    refused = team.apply(a_volcano_job("second", workers=1, gpus=3))
    assert "Job second asks for 6 GPUs (2 x 3); tenant" in refused
    assert "has 4 of gpu-training free." in refused
    assert len(team.pods()) == 4


def test_a_demoted_job_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this Job run as gpu-serving" in team.apply(a_volcano_job("bert"))
    begins(team, "bert")
    team.runs(4)
    assert team.tiers() == {("gpu-serving", "gpu-serving", 800)}


def test_it_grows_by_what_is_free_and_shrinks(team: Team) -> None:
    team.apply(a_volcano_job("bert", workers=1))
    begins(team, "bert")
    team.runs(2)
    assert "has 8 of gpu-training free" in team.patch(JOB, with_workers(8))
    assert team.patch(JOB, with_workers(3)) == ""
    team.runs(4)
    team.shows("gpu-training 4/8, total 4/16")
    assert team.patch(JOB, with_workers(1)) == ""
    team.runs(2)
    team.shows("gpu-training 2/8, total 2/16")


def with_workers(count: int) -> Tree:
    """A patch: a list is replaced as a whole."""
    spec = a_volcano_job("bert", workers=count)["spec"]
    return {"spec": {"tasks": spec["tasks"], "minAvailable": 2}}
