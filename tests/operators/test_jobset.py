"""Real JobSets: JobSet's controller and webhooks beside ours."""

import pytest

from localcluster.operators import RunningOperator

from .team import Team, Tree, hooked

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("jobset")]


def a_jobset(name: str, nodes: int = 4, gpus: int = 1, **spec: object) -> Tree:
    """As JobSet's own pytorch.yaml has it, with GPUs: one Job of as many nodes, and a coordinator without a GPU."""
    train = {
        "name": "pytorch",
        "image": "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime",
        "command": ["torchrun", f"--nnodes={nodes}", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    coordinator = {"name": "store", "image": "python:3.13", "command": ["python", "-m", "rendezvous"]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [a_job("workers", nodes, train), a_job("store", 1, coordinator)],
            **spec,
        },
    }


def a_job(name: str, pods: int, container: Tree) -> Tree:
    """A replicated Job of one replica."""
    job = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {"name": name, "replicas": 1, "template": {"spec": job}}


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
    assert "JobSet second asks for 5 GPUs (5 x 1); tenant" in refused
    assert "has 4 of gpu-training free." in refused
    assert len(team.pods()) == 5


def test_a_demoted_jobset_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this JobSet run as gpu-serving" in team.apply(a_jobset("train"))
    team.runs(5)
    assert team.tiers() == {("gpu-serving", "gpu-serving", 800)}
    team.shows("gpu-training 0/2, total 4/16")


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
    assert "has 0 of gpu-training free" in team.apply(a_jobset("other", nodes=2))
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


def uids(pods: list[Tree]) -> set[str]:
    """The uids of pods."""
    return {each["metadata"]["uid"] for each in pods}
