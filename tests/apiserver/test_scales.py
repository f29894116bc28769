"""Scales on a real API server: a gang that is scaled up gets all of it or nothing, and down gives it back."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .gangs import Gangs, pytorchjob
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


class Scaled(Gangs):
    """A tenant of 8 GPUs of training, whose users and autoscalers scale."""

    def scale(self, what: str, replicas: int, *arguments: str) -> str:
        """`kubectl scale`: what it prints to stderr."""
        command = ("scale", what, f"--replicas={replicas}", "-n", self.namespace, *arguments)
        return self.installed.cluster.kubectl(*command, check=False).stderr

    def autoscale(self, job: str, replicas: object) -> str:
        """Read the Scale and write it with another number, as a HorizontalPodAutoscaler does."""
        place = f"/apis/kubeflow.org/v1/namespaces/{self.namespace}/pytorchjobs/{job}/scale"
        scale = self.installed.cluster.kubectl("get", "--raw", place).json()
        scale["spec"]["replicas"] = replicas
        command = ("replace", "--raw", place, "-f", "-")
        return self.installed.cluster.kubectl(*command, input=json.dumps(scale), check=False).stderr

    def workers(self, job: str) -> int:
        """Return how many workers the operator is to make now."""
        found = self.installed.get(f"pytorchjob/{job}", self.namespace)
        return int(found["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"])

    def events_on(self, name: str) -> set[str]:
        """The events about an object."""
        events = self.installed.get("events", self.namespace)["items"]
        return {f"{each['reason']}: {each['message']}" for each in events if each["involvedObject"]["name"] == name}


@pytest.fixture
def gangs(installed: Installed, namespace: str) -> Iterator[Scaled]:
    installed.tenant("gang", namespace, quotas=[{"tier": "gpu-training", "gpus": "8"}])
    yield Scaled(installed, namespace)
    installed.api.delete("tenantquota/gang")


def test_a_gang_that_is_scaled_up_books_the_difference_and_down_gives_it_back(gangs: Scaled) -> None:
    assert gangs.apply(pytorchjob("first", 3)) == ""
    gangs.shows("gpu-training 0/8 (+4 reserved)")
    assert gangs.scale("pytorchjob/first", 7) == ""
    gangs.shows("gpu-training 0/8 (+8 reserved)")
    for number in range(8):
        assert gangs.pod(f"first-{number}", "first") == "", "the pods of what was admitted are never refused"
    gangs.shows("gpu-training 8/8")
    gangs.delete("pods", seconds=0)
    asked = gangs.installed.metric("gpu_tiers_reviews_total", operation="UPDATE")
    assert gangs.scale("pytorchjob/first", 1) == ""
    assert gangs.installed.metric("gpu_tiers_reviews_total", operation="UPDATE") == asked, "nobody asks on the way down"
    gangs.shows("gpu-training 0/8 (+2 reserved)")
    assert gangs.autoscale("first", 5) == ""
    gangs.shows("gpu-training 0/8 (+6 reserved)")
    assert gangs.autoscale("first", 0) == ""
    gangs.shows("gpu-training 0/8")


def test_the_refusal_names_the_whole_and_stands_in_an_event(gangs: Scaled) -> None:
    gangs.apply(pytorchjob("first", 3))
    gangs.apply(pytorchjob("second", 1))
    sentence = "exceeded quota: PyTorchJob first asks for 7 GPUs (7 x 1); tenant gang has 6 of gpu-training left."
    assert sentence in gangs.scale("pytorchjob/first", 6)
    assert sentence in gangs.autoscale("first", 6), "whoever asks"
    assert gangs.workers("first") == 3
    gangs.shows("gpu-training 0/8 (+6 reserved)")
    gangs.installed.eventually(
        lambda: any(each.startswith(f"UpdateRefused: {sentence}") for each in gangs.events_on("first")),
        "an event on it",
    )
    gangs.delete("pytorchjob/second")
    gangs.shows("gpu-training 0/8 (+4 reserved)")
    assert gangs.scale("pytorchjob/first", 6) == ""
    gangs.shows("gpu-training 0/8 (+7 reserved)")


def autoscaler(job: str, least: int) -> Tree:
    """Return an autoscaler that brings a workload to its minimum without any metrics."""
    target = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "its-autoscaler"},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": 9},
    }


def test_a_horizontalpodautoscaler_reads_the_refusal_and_tries_again(gangs: Scaled) -> None:
    gangs.apply(pytorchjob("first", 3))
    gangs.apply(pytorchjob("second", 1))
    gangs.apply(autoscaler("first", 6))
    sentence = "exceeded quota: PyTorchJob first asks for 7 GPUs (7 x 1); tenant gang has 6 of gpu-training left."
    gangs.installed.eventually(
        lambda: any("FailedRescale" in each and sentence in each for each in gangs.events_on("its-autoscaler")),
        "its event",
    )
    gangs.delete("pytorchjob/second")
    gangs.installed.eventually(lambda: gangs.workers("first") == 6, "another try")
    gangs.shows("gpu-training 0/8 (+7 reserved)")


def test_numbers_that_are_none(gangs: Scaled) -> None:
    gangs.apply(pytorchjob("first", 3))
    assert "gpu-training allows 8 GPUs; this PyTorchJob asks for 1000001 in all." in gangs.autoscale("first", 1_000_000)
    assert '"1000000000" is not a count of pods; write a whole number from 0 to 1000000' in gangs.autoscale(
        "first", 10**9
    )
    for wrong in (-1, "3", 2.5):
        assert gangs.autoscale("first", wrong), "the API server itself says no"
    assert gangs.workers("first") == 3
    gangs.shows("gpu-training 0/8 (+4 reserved)")


def test_of_two_scales_for_one_place_one_gets_it(gangs: Scaled) -> None:
    names = ("first", "second")
    for name in names:
        assert gangs.apply(pytorchjob(name, 1)) == ""
    with ThreadPoolExecutor() as people:
        for _ in range(5):
            replies = list(people.map(lambda name: gangs.scale(f"pytorchjob/{name}", 4), names))
            assert sorted(each == "" for each in replies) == [False, True], replies
            assert sorted(map(gangs.workers, names)) == [1, 4]
            gangs.shows("gpu-training 0/8 (+7 reserved)")
            for name in names:
                assert gangs.scale(f"pytorchjob/{name}", 1) == ""
            gangs.shows("gpu-training 0/8 (+4 reserved)")


def leaderworkerset(name: str, groups: int) -> Tree:
    """Groups of a leader and a worker, as a user writes it."""
    template: dict[str, Any] = gpu_pod("")
    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}}, "spec": template["spec"]}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": groups,
            "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template},
        },
    }


def test_groups_beyond_the_first_are_admitted_as_far_as_they_fit(gangs: Scaled) -> None:
    gangs.apply(pytorchjob("first", 4))
    assert gangs.apply(leaderworkerset("llm", 0)) == ""
    assert gangs.scale("leaderworkerset/llm", 1) == ""
    gangs.shows("gpu-training 0/8 (+7 reserved)")
    warning = "gpu-training is at 7 of 8 GPUs; this LeaderWorkerSet asks for 2 more, so not all of its pods can"
    assert warning in gangs.scale("leaderworkerset/llm", 2)
    assert gangs.installed.get("leaderworkerset/llm", gangs.namespace)["spec"]["replicas"] == 2
    gangs.shows("gpu-training 0/8 (+7 reserved)")


def test_a_scale_goes_through_while_the_webhook_is_away(gangs: Scaled) -> None:
    """Then its pods are booked one by one, and the gang once they hold all of it."""
    gangs.apply(pytorchjob("first", 1))
    gangs.shows("gpu-training 0/8 (+2 reserved)")
    gangs.installed.kill()
    try:
        assert gangs.scale("pytorchjob/first", 3) == ""
    finally:
        gangs.installed.restart()
    gangs.installed.eventually(lambda: gangs.pod("first-0", "first") == "", "it answers again")
    assert [gangs.pod(f"first-{number}", "first") for number in (1, 2, 3)] == [""] * 3
    gangs.shows("gpu-training 4/8")
    gangs.delete("pod/first-3", seconds=0)
    gangs.shows("gpu-training 3/8 (+1 reserved)")
