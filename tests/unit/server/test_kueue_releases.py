"""By which updates Kueue lets run what it admitted."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.builders import a_job, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.built import Built
from tests.builders.world import World
from webhook.admission import review
from webhook.controller.kueue_evictions import Release
from webhook.kube.errors import NotFound
from webhook.kube.wire import Page
from webhook.server.kueue_releases import KueueReleases, releases
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder

H100 = {"nvidia.com/gpu.product": "H100"}
GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/later"}]


@pytest.mark.parametrize(
    ("before", "after", "is_one"),
    [
        (a_job().having("spec.suspend", True), a_job().having("spec.suspend", False), True),
        (a_pytorchjob().having("spec.runPolicy.suspend", True), a_pytorchjob(), True),
        (a_job(), a_job().having("spec.suspend", True), False),
        (a_job(), a_job().having("spec.parallelism", 9), False),
        (a_pod().having("spec.schedulingGates", GATES), a_pod().having("spec.schedulingGates", GATES[1:]), True),
        (a_pod().having("spec.schedulingGates", GATES[1:]), a_pod(), False),
    ],
    ids=["Job", "PyTorchJob", "suspended", "scaled", "gate lifted", "another's gate lifted"],
)
def test_a_release(before: Built, after: Built, *, is_one: bool) -> None:
    world = World()
    body = world.body(after, operation="UPDATE", oldObject=world.sent(before))
    assert releases(review.decode(body)) is is_one


def test_a_create_is_none() -> None:
    assert not releases(review.decode(World().body(a_job())))


class Story(World):
    """A tenant with 2 GPUs that a pod holds, and a job of Kueue's that is released."""

    def __init__(self, *flavors: object) -> None:
        tenant = a_tenant().allowing("2")
        row = a_tenant().allowing("9").allowing("1", flavor="h100") if flavors else tenant
        policy = a_policy(kueue={"workloadPriorityClasses": True}, resourceFlavors=flavors)
        super().__init__(row, policy=policy)
        self.refused: list[Release] = []
        self.stored_job: Any = None
        self.pods: list[Any] = []
        self.judged = 0
        told = KueueReleases(self, self.cluster, self, lambda: self.policy, self.refused.append)  # type: ignore[arg-type]
        self.webhooks = replace(self.webhooks, record=Recorder(Metrics(), None, None, told.refused))

    def usage(self, *arguments: Any) -> Any:
        """What the ledger says."""
        return self.ledger.usage(*arguments)

    async def book(self, *arguments: Any, **said: Any) -> Any:
        """What the ledger says; each is a judgement."""
        self.judged += 1
        return await self.ledger.book(*arguments, **said)

    async def get(self, place: str) -> Any:
        """The job or the pod as it is stored."""
        if place.startswith("/api/v1/namespaces/team-alpha/pods/"):
            return next(each for each in self.pods if place.endswith(f"/{each['metadata']['name']}"))
        assert place == "/apis/batch/v1/namespaces/team-alpha/jobs/work"
        if self.stored_job is None:
            raise NotFound("no such Job", 404)
        return self.stored_job

    async def list_pages(self, place: str, params: dict[str, str]) -> AsyncIterator[Page]:
        """The pods of the group."""
        assert (place, params) == (
            "/api/v1/namespaces/team-alpha/pods",
            {"labelSelector": "kueue.x-k8s.io/pod-group-name=sweep"},
        )
        yield Page(items=[msgspec.Raw(json.dumps(each).encode()) for each in self.pods])

    async def release(self, **changes: object) -> str:
        """Kueue lifts suspend."""
        labels = {"kueue.x-k8s.io/queue-name": "research"}
        job = a_job(a_pod().running("torchrun", "train.py").asking()).labelled(labels)
        self.stored_job = self.stored(job.having("spec.parallelism", 2).having("spec.suspend", True))
        released = {**self.stored_job, "spec": {**self.stored_job["spec"], "suspend": False}}
        return (await self.update(self.stored_job, released, **changes)).sentence


async def a_full_story() -> tuple[Story, str]:
    story = Story()
    holder = (await story.create(a_pod().running("torchrun").asking())).sent
    return story, holder["metadata"]["uid"]


async def test_a_refused_release_is_told_with_its_sentence_and_asked_about_again() -> None:
    story, holder = await a_full_story()
    sentence = await story.release()
    [release] = story.refused
    assert release.sentence == sentence
    assert (release.namespace, release.uid) == ("team-alpha", story.stored_job["metadata"]["uid"])
    assert [await release.fits() for _ in range(3)] == [False, False, False]
    assert story.judged == 1, "nothing has changed"
    story.ledger.release(holder)
    assert await release.fits()
    assert (await story.create(a_pod().running("torchrun").asking(2))).allowed, "it only looked"


async def test_now_and_then_it_is_judged_unasked() -> None:
    story, _ = await a_full_story()
    await story.release()
    assert not any([await story.refused[0].fits() for _ in range(25)])
    assert story.judged == 2


async def test_it_is_told_whether_the_job_still_waits() -> None:
    story, _ = await a_full_story()
    await story.release()
    [release] = story.refused
    assert await release.waits()
    story.stored_job["spec"]["suspend"] = False
    assert not await release.waits()
    story.stored_job = None
    assert not await release.waits()


async def test_a_group_of_pods_of_which_one_runs_is_not_evicted() -> None:
    """Kueue would delete it, and nobody makes plain pods again."""
    story = Story({"name": "h100", "nodeLabels": H100})
    labels = {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/pod-group-name": "sweep"}
    pod = a_pod().asking().labelled(labels).having("spec.schedulingGates", GATES[:1])
    pod = pod.annotated({"kueue.x-k8s.io/pod-group-total-count": "2"})
    story.pods = [(await story.create(pod.named(f"sweep-{each}"))).sent for each in range(2)]
    lifted = {**story.pods[0]["spec"], "schedulingGates": None, "nodeSelector": H100}
    assert not (await story.update(story.pods[0], {**story.pods[0], "spec": lifted})).allowed
    [release] = story.refused
    assert await release.waits()
    story.pods[1] = {**story.pods[1], "spec": lifted}
    assert not await release.waits()
    story.pods[1]["status"] = {"phase": "Failed"}
    assert await release.waits()


async def test_dry_runs_and_clusters_without_kueue_are_not_told_of() -> None:
    story, _ = await a_full_story()
    assert await story.release(dryRun=True)
    story.policy = a_policy()
    assert await story.release()
    assert story.refused == []
