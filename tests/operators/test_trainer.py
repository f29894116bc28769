"""Real TrainJobs: Kubeflow's Trainer, and JobSet which makes their pods, beside our webhook."""

import pytest

from .samples import a_trainjob
from .team import Team, hooked

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("trainer")]


AS_SHIPPED = (
    "Warning: [runtime-backoff] preemptions count against the runtime's backoffLimit 6: let its pods restart Never\n"
)
"""Trainer's own runtimes say nothing of restartPolicy."""


def test_every_pod_has_its_jobs_verdict(team: Team) -> None:
    assert team.apply(a_trainjob("bert")) == AS_SHIPPED
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["node"]] * 4
    team.shows("gpu-training 4/8, total 4/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_trainjob("first"))
    team.runs(4)
    refused = team.apply(a_trainjob("second", nodes=2, gpus=3))
    assert "exceeded quota: TrainJob second asks for 6 GPUs (2 x 3); tenant" in refused
    assert "has 4 of gpu-training left, enough for 1 of these pods, but they start only together." in refused
    assert len(team.pods()) == 4
    assert [each["metadata"]["name"] for each in team.get("jobsets")["items"]] == ["first"]


def test_a_demoted_job_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this TrainJob run as gpu-batch" in team.apply(a_trainjob("bert"))
    team.runs(4)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400)}


def test_a_suspended_job_holds_nothing(team: Team) -> None:
    team.apply(a_trainjob("bert"))
    team.runs(4)
    assert team.patch("trainjob/bert", {"spec": {"suspend": True}}) == ""
    team.runs(0)
    team.shows("gpu-training 0/8, total 0/16")
    assert team.patch("trainjob/bert", {"spec": {"suspend": False}}) == ""
    team.runs(4)
    team.shows("gpu-training 4/8, total 4/16")


def test_a_pod_that_fails_is_made_again_in_its_place(team: Team) -> None:
    team.apply(a_trainjob("bert", nodes=8))
    before = team.runs(8)
    team.fails(before[0])
    assert "has 0 of gpu-training left" in team.apply(a_trainjob("other", nodes=2))
    running = {"Running": 8, "Failed": 1}
    team.eventually(lambda: team.phases() == running, "another pod in place of the failed one")
    team.shows("gpu-training 8/8, total 8/16")
