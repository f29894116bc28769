"""Real JobSets: JobSet's controller and webhooks beside ours."""

import pytest

from localcluster.operators import RunningOperator

from .samples import a_jobset
from .team import Team, hooked, uids

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("jobset")]


def test_every_pod_has_its_jobsets_verdict(team: Team) -> None:
    assert team.apply(a_jobset("train")) == ""
    pods = team.runs(5)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}, "the coordinator, which has no GPU, as well"
    assert sorted(name for pod in pods for name in hooked(pod)) == ["pytorch"] * 4
    team.shows("gpu-training 4/8, total 4/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_jobset("first"))
    team.runs(5)
    refused = team.apply(a_jobset("second", nodes=5))
    assert "exceeded quota: JobSet second asks for 5 GPUs (5 x 1); tenant" in refused
    assert "has 4 of gpu-training left, enough for 4 of these pods, but they start only together." in refused
    assert len(team.pods()) == 5


def test_where_the_tenant_holds_it_waits_whole_with_its_coordinator_that_has_no_gpu(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "8"}, onExceed="Hold")
    assert team.apply(a_jobset("first")) == ""
    team.runs(5)
    assert "its pods are queued" in team.apply(a_jobset("second", nodes=6))
    team.eventually(lambda: len(team.pods()) == 12, "the second one's pods")
    waiting = [pod for pod in team.pods() if pod["spec"].get("schedulingGates")]
    assert len(waiting) == 7
    assert all(pod["metadata"]["name"].startswith("second-") for pod in waiting)
    team.delete("jobset/first")
    team.runs(7)
    team.shows("gpu-training 6/8")


def test_a_demoted_jobset_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this JobSet run as gpu-batch" in team.apply(a_jobset("train"))
    team.runs(5)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400)}
    team.shows("gpu-training 0/2, total 4/16")


def test_a_later_stage_gets_the_gpus_of_an_earlier_one(team: Team) -> None:
    staged = a_jobset("staged", nodes=8)
    train, _store = staged["spec"]["replicatedJobs"]
    after = {"dependsOn": [{"name": "prepare", "status": "Complete"}]}
    staged["spec"]["replicatedJobs"] = [train | {"name": "prepare"}, train | after]
    assert team.apply(staged) == ""
    for pod in team.runs(8):
        team.succeeds(pod)
    team.eventually(lambda: team.phases() == {"Succeeded": 8, "Running": 8}, "the second stage")
    team.shows("gpu-training 8/8, total 8/16")
    assert "has 0 of gpu-training left" in team.apply(a_jobset("other", nodes=2))


def test_a_suspended_jobset_holds_nothing(team: Team) -> None:
    team.apply(a_jobset("train"))
    team.runs(5)
    assert team.patch("jobset/train", {"spec": {"suspend": True}}) == ""
    team.runs(0)
    team.shows("gpu-training 0/8, total 0/16")
    assert team.patch("jobset/train", {"spec": {"suspend": False}}) == ""
    team.runs(5)
    team.shows("gpu-training 4/8, total 4/16")


def test_a_jobset_that_restarts_keeps_its_place(team: Team) -> None:
    team.apply(a_jobset("train", nodes=8))
    before = team.runs(9)
    team.fails(before[0])
    assert "has 0 of gpu-training left" in team.apply(a_jobset("other", nodes=2))
    team.eventually(lambda: not uids(before) & uids(team.pods()), "new pods in place of all")
    team.runs(9)
    team.shows("gpu-training 8/8, total 8/16")


def test_the_controller_is_away_for_a_while(team: Team, jobset: RunningOperator) -> None:
    jobset.kill()
    try:
        refused = team.apply(a_jobset("train"))
    finally:
        jobset.start()
    assert "failed calling webhook" in refused, "its own webhook, as in any cluster"
    assert team.apply(a_jobset("train")) == ""
    team.runs(5)
    team.shows("gpu-training 4/8, total 4/16")


def test_each_deadline_of_queued_jobs_takes_a_restart(full: Team) -> None:
    jobset = a_jobset("train", failurePolicy={"maxRestarts": 1})
    jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["activeDeadlineSeconds"] = 5
    assert "[queued-deadline] activeDeadlineSeconds 5 runs on while pods wait for quota" in full.apply(jobset)
    full.waits(5)
    failed = lambda: full.condition("jobset/train", "Failed")  # noqa: E731
    full.eventually(lambda: failed().get("reason") == "ReachedMaxRestarts", "its end")
    assert full.get("jobset/train")["status"]["restarts"] == 1
    full.waits(0)
