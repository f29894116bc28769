"""Real PyTorchJobs: Kubeflow's training operator beside our webhook."""

from datetime import UTC, datetime, timedelta

import pytest

from .samples import a_jaxjob, a_pytorchjob
from .team import Team, hooked

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("training_operator")]


def test_every_pod_has_its_jobs_verdict(team: Team) -> None:
    assert team.apply(a_pytorchjob("bert")) == ""
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["pytorch"]] * 4
    team.shows("gpu-training 4/8, total 4/16")


def test_so_has_every_pod_of_a_jaxjob_and_it_is_refused_as_a_whole(team: Team) -> None:
    assert team.apply(a_jaxjob("gemma")) == ""
    pods = team.runs(4)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    assert [hooked(pod) for pod in pods] == [["jax"]] * 4
    team.shows("gpu-training 4/8, total 4/16")
    assert "exceeded quota: JAXJob second asks for 6 GPUs (6 x 1); tenant" in team.apply(a_jaxjob("second", workers=6))


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_pytorchjob("first"))
    team.runs(4)
    refused = team.apply(a_pytorchjob("second", workers=1, gpus=3))
    assert "exceeded quota: PyTorchJob second asks for 6 GPUs (2 x 3); tenant" in refused
    assert "has 4 of gpu-training left. " in refused
    assert len(team.pods()) == 4


def test_a_demoted_job_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this PyTorchJob run as gpu-batch" in team.apply(a_pytorchjob("bert"))
    team.runs(4)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400)}


def test_a_suspended_job_holds_nothing(team: Team) -> None:
    team.apply(a_pytorchjob("bert"))
    team.runs(4)
    assert team.patch("pytorchjob/bert", {"spec": {"runPolicy": {"suspend": True}}}) == ""
    team.runs(0)
    team.shows("gpu-training 0/8, total 0/16")
    assert team.patch("pytorchjob/bert", {"spec": {"runPolicy": {"suspend": False}}}) == ""
    team.runs(4)
    team.shows("gpu-training 4/8, total 4/16")


def test_it_grows_by_what_is_free_and_shrinks(team: Team) -> None:
    team.apply(a_pytorchjob("bert", workers=1))
    team.runs(2)
    worker = "/spec/pytorchReplicaSpecs/Worker/replicas"
    assert team.patch("pytorchjob/bert", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 7}}}}) == "", worker
    team.runs(8)
    team.shows("gpu-training 8/8, total 8/16")
    assert team.patch("pytorchjob/bert", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}}) == ""
    team.runs(3)
    team.shows("gpu-training 3/8, total 3/16")


def test_pods_that_are_made_again_keep_their_place(team: Team) -> None:
    team.apply(a_pytorchjob("bert", workers=7))
    before = team.runs(8)
    for pod in before[:4]:
        team.delete(f"pod/{pod['metadata']['name']}")
    assert "has 0 of gpu-training left" in team.apply(a_pytorchjob("other", workers=1))
    team.runs(8)
    team.shows("gpu-training 8/8, total 8/16")


def test_a_queued_job_past_its_deadline_fails_when_it_is_admitted(full: Team) -> None:
    assert "[queued-deadline] activeDeadlineSeconds 5 runs on" in full.apply(
        a_pytorchjob("bert", activeDeadlineSeconds=5)
    )
    full.waits(4)
    began = datetime.fromisoformat(full.get("pytorchjob/bert")["status"]["startTime"])
    full.eventually(lambda: datetime.now(UTC) > began + timedelta(seconds=8), "its deadline")
    full.waits(4)
    full.makes_room()
    failed = lambda: full.condition("pytorchjob/bert", "Failed").get("message", "")  # noqa: E731
    full.eventually(lambda: "it was active longer than specified deadline" in failed(), "its end")
    full.runs(0)
