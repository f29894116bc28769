"""Real LeaderWorkerSets: LWS's controller and webhooks beside ours."""

import pytest

from .samples import a_disaggregated_set, an_lws
from .team import Team, uids

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("lws")]


def test_every_pod_has_its_sets_verdict(team: Team) -> None:
    assert team.apply(an_lws("vllm")) == ""
    team.runs(4)
    assert team.tiers() == {("gpu-serving", "gpu-serving", 800)}
    team.shows("gpu-training 0/8, total 8/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(an_lws("first", replicas=1, size=3, gpus=4))
    team.runs(3)
    refused = team.apply(an_lws("second", replicas=1, size=2, gpus=4))
    assert "exceeded quota: LeaderWorkerSet second asks for 8 GPUs (2 x 4); tenant" in refused
    assert len(team.pods()) == 3


def test_a_demoted_set_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-serving", "gpus": "2"}, {"gpus": "16"}, onExceed="Demote")
    assert "all pods of this LeaderWorkerSet run as gpu-batch" in team.apply(an_lws("vllm", replicas=1))
    team.runs(2)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400)}


def test_groups_beyond_the_first_come_as_far_as_they_fit_each_as_a_whole(team: Team) -> None:
    team.apply(an_lws("vllm", replicas=1, gpus=3))
    team.runs(2)
    team.scales("lws/vllm", 3)
    team.runs(4)
    team.shows("gpu-training 0/8, total 12/16")
    team.shows_event("lws/vllm", "total is at 12 of 16 GPUs; group vllm-")
    team.scales("lws/vllm", 1)
    team.runs(2)
    team.shows("gpu-training 0/8, total 6/16")


def test_leaders_of_all_groups_come_first_and_the_first_group_runs(team: Team) -> None:
    team.may_use({"gpus": "4"})
    team.apply(an_lws("vllm", replicas=3, size=3, gpus=1))
    team.runs(3)
    assert {each["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] for each in team.pods()} == {"0"}
    team.shows("total 3/4")


def test_groups_are_queued_one_by_one(full: Team) -> None:
    full.may_use({"gpus": "12"}, onExceed="Hold")
    full.apply(an_lws("vllm", replicas=3, size=2, gpus=2))
    full.waits(4)
    full.makes_room()
    full.runs(6)


def test_a_group_that_restarts_keeps_its_place(team: Team) -> None:
    team.apply(an_lws("vllm", replicas=1, size=4, gpus=4))
    before = team.runs(4)
    team.delete(f"pod/{before[1]['metadata']['name']}")
    assert "LeaderWorkerSet other asks for" in team.apply(an_lws("other", replicas=1, gpus=1))
    team.eventually(lambda: not uids(before) & uids(team.pods()), "a new group")
    team.runs(4)
    team.shows("gpu-training 0/8, total 16/16")


def test_each_role_of_a_disaggregated_set_is_admitted_whole_or_not_at_all(team: Team) -> None:
    assert team.apply(a_disaggregated_set("llama", prefill=1, decode=2)) == ""
    team.runs(6)
    assert team.tiers() == {("gpu-serving", "gpu-serving", 800)}
    answer = team.apply(a_disaggregated_set("other", prefill=1, decode=1))
    assert "the total is at 12 of 16 GPUs; this DisaggregatedSet asks for 8 in all" in answer
    team.runs(8)
    team.shows("gpu-training 0/8, total 16/16")


def test_a_rollout_with_surge_waits_beside_its_old_group_and_goes_on_when_there_is_room(full: Team) -> None:
    full.may_use({"gpus": "12"}, onExceed="Hold")
    vllm = an_lws("vllm", replicas=1)
    surge = {"maxSurge": 1, "maxUnavailable": 0}
    vllm["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": surge}
    assert "[queued-surge]" in full.apply(vllm)
    before = uids(full.runs(3))
    vllm["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.9.0"
    full.apply(vllm)
    full.waits(2)
    assert before < uids(full.pods())
    full.makes_room()
    full.eventually(lambda: not before & uids(full.pods()), "the old group's end")
    full.runs(2)
