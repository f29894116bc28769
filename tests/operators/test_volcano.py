"""Real Volcano Jobs: Volcano's controllers and webhooks beside ours. The test lets their groups begin."""

import pytest

from .samples import a_volcano_job
from .team import Team, hooked
from .volcano import begins

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("volcano")]


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
