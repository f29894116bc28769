"""Real Volcano Jobs: Volcano's controllers and webhooks beside ours. The test lets their groups begin."""

import pytest

from .samples import a_volcano_cron_job, a_volcano_job
from .team import Team, hooked, uids
from .volcano import begins, has_workers, rank_of

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("volcano")]


def test_every_pod_has_its_jobs_verdict(team: Team) -> None:
    answer = team.apply(a_volcano_job("bert"))
    assert answer.startswith("Warning: [guess-at-top] ")
    assert answer.count("Warning") == 1, "Volcano runs anything, and what torchrun starts got the top tier"
    begins(team, "bert")
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["pytorch"]] * 4
    assert rank_of(team, "bert") == "gpu-training"
    team.shows("gpu-training 4/8, total 4/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_volcano_job("first"))
    begins(team, "first")
    team.runs(4)
    refused = team.apply(a_volcano_job("second", workers=1, gpus=3))
    assert "exceeded quota: Job second asks for 6 GPUs (2 x 3); tenant" in refused
    assert "has 4 of gpu-training left. " in refused
    assert len(team.pods()) == 4


def test_a_demoted_job_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this Job run as gpu-batch" in team.apply(a_volcano_job("bert"))
    begins(team, "bert")
    team.runs(4)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400)}
    assert rank_of(team, "bert") == "gpu-batch"


def test_it_grows_within_its_quota_and_no_further(team: Team) -> None:
    team.apply(a_volcano_job("bert"))
    begins(team, "bert")
    team.runs(4)
    assert "gpu-training allows 8 GPUs; this Job asks for 9 in all." in has_workers(team, "bert", 8)
    assert has_workers(team, "bert", 5) == ""
    team.runs(6)
    team.shows("gpu-training 6/8, total 6/16")
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert has_workers(team, "bert", 3) == ""
    team.runs(4)
    team.shows("gpu-training 4/8, total 4/16")


def test_a_job_that_restarts_keeps_its_place(team: Team) -> None:
    team.apply(a_volcano_job("bert", workers=7, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    begins(team, "bert")
    before = team.runs(8)
    team.fails(before[0])
    assert "has 0 of gpu-training left" in team.apply(a_volcano_job("other"))
    team.eventually(lambda: not uids(before) & uids(team.pods()), "the end of all its pods")
    begins(team, "bert")
    team.runs(8)
    team.shows("gpu-training 8/8, total 8/16")


def test_the_jobs_of_a_cronjob_have_its_verdict(team: Team) -> None:
    answer = team.apply(a_volcano_cron_job("nightly"))
    assert answer.startswith("Warning: [guess-at-top] ")
    begins(team, "nightly")
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["pytorch"]] * 4
    assert rank_of(team, "nightly") == "gpu-training"
    team.shows("gpu-training 4/8, total 4/16")
