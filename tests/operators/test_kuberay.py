"""Real RayClusters and RayJobs: KubeRay's operator under our webhook."""

import pytest

from .samples import a_ray, a_raycluster, a_rayjob
from .team import Team, uids

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("kuberay")]

NO_TIER = ("", "", 0)
"""Of the pod that submits a RayJob: it asks for no GPU, and bears none of Ray's labels."""


def test_every_pod_has_its_clusters_verdict(team: Team) -> None:
    assert team.apply(a_raycluster("explore")) == ""
    team.runs(3)
    assert team.tiers() == {("gpu-interactive", "gpu-interactive", 200)}, "the head, which has no GPU, as well"
    team.shows("gpu-training 0/8, total 2/16")


def test_a_rayjobs_cluster_has_the_jobs_verdict(team: Team) -> None:
    assert team.apply(a_rayjob("embed")) == ""
    team.runs(4)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400), NO_TIER}
    team.shows("gpu-training 0/8, total 2/16")


def test_over_quota_it_is_refused_as_a_whole_and_has_no_pods(team: Team) -> None:
    team.apply(a_raycluster("first", workers=3, gpus=4))
    team.runs(4)
    refused = team.apply(a_raycluster("second", workers=2, gpus=4))
    assert "exceeded quota: RayCluster second asks for 8 GPUs (2 x 4); tenant" in refused
    assert len(team.pods()) == 4


def test_a_demoted_cluster_is_whole(team: Team) -> None:
    team.may_use({"tier": "gpu-batch", "gpus": "1"}, {"gpus": "16"}, onExceed="Demote", demoteTo=["gpu-interactive"])
    assert "all pods of this RayJob run as gpu-interactive" in team.apply(a_rayjob("embed"))
    team.runs(4)
    assert team.tiers() == {("gpu-interactive", "gpu-interactive", 200), NO_TIER}


def test_rays_autoscaler_gets_the_workers_that_fit(team: Team) -> None:
    team.may_use({"gpus": "5"})
    team.apply(a_raycluster("explore", enableInTreeAutoscaling=True))
    team.runs(3)
    four_more = a_ray(workers=6, gpus=1)["workerGroupSpecs"]
    answer = team.patch("raycluster/explore", {"spec": {"workerGroupSpecs": four_more}})
    assert answer.startswith("Warning: tenant")
    assert "the total allows 5 GPUs; this RayCluster asks for 6 in all" in answer
    team.runs(6)
    team.shows("total 5/5")
    team.shows_event("raycluster/explore", "total is at 5 of 5 GPUs; this pod asks for 1.")


def test_a_suspended_cluster_holds_nothing(team: Team) -> None:
    team.apply(a_raycluster("explore"))
    team.runs(3)
    assert team.patch("raycluster/explore", {"spec": {"suspend": True}}) == ""
    team.runs(0)
    team.shows("gpu-training 0/8, total 0/16")
    assert team.patch("raycluster/explore", {"spec": {"suspend": False}}) == ""
    team.runs(3)
    team.shows("gpu-training 0/8, total 2/16")


def test_a_worker_that_is_evicted_is_made_again_in_its_place(team: Team) -> None:
    team.may_use({"gpus": "4"})
    team.apply(a_raycluster("explore", workers=4, gpus=1))
    before = team.runs(5)
    [first, *_] = [pod for pod in before if "worker" in pod["metadata"]["name"]]
    team.delete(f"pod/{first['metadata']['name']}")
    assert "RayCluster other asks for 2 GPUs (2 x 1); tenant" in team.apply(a_raycluster("other", workers=2, gpus=1))
    team.eventually(lambda: uids([first]).isdisjoint(uids(team.pods())), "the worker to go")
    team.runs(5)
    team.shows("total 4/4")


def fails_at_its_deadline(team: Team, field: str, **spec: object) -> None:
    """The RayJob `embed` waits until then."""
    assert f"[queued-deadline] {field} 10 runs on while pods" in team.apply(a_rayjob("embed", **{field: 10}, **spec))
    team.waits(3)
    reason = lambda: team.get("rayjob/embed").get("status", {}).get("reason", "")  # noqa: E731
    team.eventually(lambda: "DeadlineExceeded" in reason(), "its end")


def test_the_pods_of_a_rayjob_that_failed_while_queued_get_no_gpus(full: Team) -> None:
    fails_at_its_deadline(full, "activeDeadlineSeconds")
    full.makes_room()
    full.shows("total 0/8")
    full.waits(3)
    full.delete("rayjob/embed")
    full.runs(0)


def test_they_go_where_its_cluster_goes_with_it(full: Team) -> None:
    fails_at_its_deadline(full, "preRunningDeadlineSeconds", shutdownAfterJobFinishes=True)
    full.runs(1)
