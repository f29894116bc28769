"""The events about a verdict go to the workload that a person applied, and to the TenantQuota without room."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from tests.builders import Built, a_deployment, a_job, a_pod, a_pytorchjob, a_replicaset, a_tenant, a_workload
from tests.builders.operators import a_jobset, a_lws
from tests.builders.world import FakeApi
from tests.unit.controllers.stored_events import StoredEvents, until
from webhook.cluster.views import Owner, links, owner_of
from webhook.controllers.event_writer import MOST_WAITING, EventWriter, Notice, VerdictEvents
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder

NO_ROOM = (
    "tenant alpha: the total allows 1 GPU; this pod asks for 2. Would fit: no tier. See TenantQuota/alpha. [too-large]"
)


class Story(FakeApi):
    """A cluster of these objects, and the events that its refusals come to."""

    def __init__(self, *objects: Built) -> None:
        super().__init__(*objects)
        self.api = StoredEvents()
        self._objects = {(each.tree["kind"], each.tree["metadata"]["name"]): each.json() for each in objects}
        writer = EventWriter(self.api, interval=0.01, pause=0.001)
        self.events_writer = VerdictEvents(writer, self.outermost, {"alpha": "uid-of-alpha"}.get)
        self.webhooks = replace(self.webhooks, record=Recorder(Metrics(), self.events_writer.tell))

    async def outermost(self, _: str, first: OwnerReference) -> OwnerReference | None:
        async def fetch(reference: OwnerReference, row: KindRow) -> Owner:
            if (reference.kind, reference.name) not in self._objects:
                raise Unreadable(f"owner {reference.kind}/{reference.name} does not exist")
            return owner_of(self._objects[reference.kind, reference.name], row)

        found = await links(first, BUILT_IN, fetch)
        return found[-1][0] if found else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Story"]:
        task = asyncio.create_task(self.events_writer.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settled(self) -> dict[str, list[tuple[str, int, str]]]:
        """The events by kind and name of their object, once nothing more comes."""
        quiet, asked = 0, 0
        while quiet < 20:
            await asyncio.sleep(0.005)
            quiet = quiet + 1 if asked == len(self.api.requests) else 0
            asked = len(self.api.requests)
        seen = [each["involvedObject"] for each in self.api.events.values()]
        return {f"{each['kind']}/{each['name']}": self.api.about(each["name"]) for each in seen}


def jobset_of_one_job() -> tuple[Built, Built]:
    jobset = a_jobset(1).having("metadata.name", "ranker")
    return jobset, a_job(name="ranker-node-0").owned_by(jobset)


async def test_a_pod_of_a_jobset_over_quota() -> None:
    jobset, job = jobset_of_one_job()
    async with Story(jobset, job, a_tenant().allowing("1")).running() as story:
        for _ in range(5):
            assert not (await story.create(a_pod().asking("2").owned_by(job))).allowed
        expected = {
            "JobSet/ranker": [("OverQuota", 5, NO_ROOM)],
            "TenantQuota/alpha": [("OverQuota", 5, f"JobSet/ranker in team-alpha: {NO_ROOM}")],
        }
        assert await story.settled() == expected


async def test_the_workers_of_a_leaderworkerset_stand_four_owners_deep() -> None:
    lws = a_lws().having("metadata.name", "llm")
    leaders = a_workload("apps/v1", "StatefulSet", "llm-leaders").owned_by(lws)
    leader = a_pod("llm-0").having("metadata.uid", "uid-of-llm-0").owned_by(leaders)
    workers = a_workload("apps/v1", "StatefulSet", "llm-0-workers").owned_by(leader)
    async with Story(lws, leaders, leader, workers, a_tenant().allowing("1")).running() as story:
        await story.create(a_pod().asking("2").owned_by(workers))
        assert set(await story.settled()) == {"LeaderWorkerSet/llm", "TenantQuota/alpha"}


async def test_a_pods_own_controller_says_it_itself() -> None:
    job = a_job(name="train")
    async with Story(job, a_tenant().allowing("1")).running() as story:
        await story.create(a_pod().asking("2").owned_by(job))
        assert await story.settled() == {
            "TenantQuota/alpha": [("OverQuota", 1, f"Job/train in team-alpha: {NO_ROOM}")],
        }


async def test_what_is_refused_as_it_is_applied_is_named_on_the_quota() -> None:
    async with Story(a_tenant().allowing("1")).running() as story:
        await story.create(a_pod("notebook").asking("2"))
        events = await story.settled()
        assert events == {"TenantQuota/alpha": [("OverQuota", 1, f"Pod/notebook in team-alpha: {NO_ROOM}")]}

        await story.create(a_job(a_pod().asking("1"), name="sweep", parallelism=4))
        ((_, _, message),) = (await story.settled())["TenantQuota/alpha"]
        assert message.startswith("Job/sweep in team-alpha: ")


async def test_a_mistake_is_no_matter_of_the_tenants_quota() -> None:
    jobset, job = jobset_of_one_job()
    async with Story(jobset, job, a_tenant().allowing("9")).running() as story:
        answer = await story.create(a_pod().asking().of_tier("gpu-gold").owned_by(job))
        assert await story.settled() == {"JobSet/ranker": [("Refused", 1, f"{answer.sentence} [unknown-tier]")]}


async def test_a_refused_update_of_a_job_that_a_controller_sends() -> None:
    pod = a_pod().asking("1")
    job, larger = a_job(pod, name="train", parallelism=1), a_job(pod, name="train", parallelism=4)
    jobset, inner = jobset_of_one_job()
    async with Story(job, jobset, a_tenant().allowing("2")).running() as story:
        by_kueue = {"userInfo": {"username": "system:serviceaccount:kueue-system:kueue-controller-manager"}}
        answer = await story.update(job, larger, **by_kueue)
        assert "this Job asks for 4 in all" in answer.sentence
        events = await story.settled()
        assert events["Job/train"] == [("UpdateRefused", 1, f"{answer.sentence} [too-large]")]
        assert events["TenantQuota/alpha"][0][2].startswith("Job/train in team-alpha: tenant alpha: the total allows 2")

        grown = inner.having("spec.parallelism", 4)
        await story.update(inner, grown)
        assert "JobSet/ranker" in await story.settled()


async def test_a_refused_update_of_a_pod_shows_on_its_job_or_on_itself() -> None:
    job, stranger = a_job(name="train"), a_workload("example.com/v1", "Thing", "stranger")
    gone = a_job(name="gone")
    async with Story(job).running() as story:
        for owner, name in ((job, "one"), (stranger, "two"), (gone, "three")):
            pod = a_pod(name).having("metadata.uid", f"uid-of-{name}").asking().of_class("gpu-batch").owned_by(owner)
            labelled = pod.of_tier("gpu-training").having("spec.priority", 400)
            assert not (await story.update(pod.of_tier("gpu-batch").json(), labelled.json())).allowed
        events = await story.settled()
        assert set(events) == {"Job/train", "Pod/two", "Pod/three"}
        reason, _, message = events["Job/train"][0]
        assert message.startswith("Pod/one: ")
        assert "a pod's tier is fixed when it is created" in message
        assert not events["Pod/two"][0][2].startswith("Pod/two: ")
        assert reason == "UpdateRefused", "the Job lacks no pod, and nobody tries again"


async def test_the_replicaset_that_a_deployment_may_not_make() -> None:
    deployment = a_workload("apps/v1", "Deployment", "serve")
    async with Story(deployment, a_tenant().allowing("1")).running() as story:
        await story.validate(a_replicaset(a_pod().asking("2")).owned_by(deployment))
        assert set(await story.settled()) == {"Deployment/serve", "TenantQuota/alpha"}


@pytest.mark.parametrize("mode", ["audit", "warn"])
async def test_what_is_not_refused_and_what_is_only_tried_makes_no_event(mode: str) -> None:
    jobset, job = jobset_of_one_job()
    pod = a_pod().asking("2").owned_by(job)
    async with Story(jobset, job, a_tenant().allowing("1")).running() as story:
        assert not (await story.create(pod, dryRun=True)).allowed
        story.policy = replace(story.policy, mode=type(story.policy.mode)[mode.capitalize()])
        assert (await story.validate(story.stored(pod))).allowed
        assert await story.settled() == {}


async def test_an_owner_that_is_gone_or_forged_gets_no_event() -> None:
    jobset, job = jobset_of_one_job()
    async with Story(jobset, a_tenant().allowing("1")).running() as story:
        assert not (await story.create(a_pod().asking("2").owned_by(job))).allowed
        assert await story.settled() == {}


async def test_an_owner_that_nobody_has_checked_is_not_named() -> None:
    async with Story(a_tenant().allowing("1")).running() as story:
        for name in ("stranger", "x" * 5000):
            owner = a_workload("example.com/v1", "Thing", name).having("metadata.uid", "1")
            await story.create(a_pod().asking("2").owned_by(owner))
        ((_, times, message),) = (await story.settled())["TenantQuota/alpha"]
        assert times == 2
        assert message.startswith("Pod/xxxx")
        assert message.endswith(f"… in team-alpha: {NO_ROOM}"), "it is cut"


async def test_an_object_that_can_not_be_read_gets_no_event() -> None:
    async with Story().running() as story:
        answer = await story.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": "mine"}})
        assert not answer.allowed
        assert await story.settled() == {}


async def test_a_fault_while_looking_up_ends_nothing(lines: list[dict[str, object]]) -> None:
    jobset, job = jobset_of_one_job()
    story = Story(jobset, job, a_tenant().allowing("1"))
    async with story.running():
        story.events_writer.tell(Notice("Refused", "Pod", "team-alpha", "one", "no", controller="no reference"))  # type: ignore[arg-type]
        await story.create(a_pod().asking("2").owned_by(job))
        assert set(await story.settled()) == {"JobSet/ranker", "TenantQuota/alpha"}
    assert "notice not told" in [line["event"] for line in lines]


async def test_a_flood_of_refusals_is_not_stored() -> None:
    story = Story(a_tenant().allowing("1"))
    for _ in range(MOST_WAITING + 500):
        story.events_writer.tell(Notice("OverQuota", "Pod", "team-alpha", "one", "no room", over_quota_of="alpha"))
    async with story.running():
        await until(lambda: bool(story.api.events))
        assert await story.settled() == {
            "TenantQuota/alpha": [("OverQuota", MOST_WAITING, "Pod/one in team-alpha: no room")],
        }


async def test_a_demoted_pod_is_reported_on_its_controller_which_reads_no_warning() -> None:
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).having(
        "spec.quotas", [{"tier": "gpu-batch", "gpus": "1"}, {"gpus": "9"}]
    )
    job = a_job(name="train").of_tier("gpu-batch")
    async with Story(job, tenant).running() as story:
        for _ in range(2):
            assert (await story.create(a_pod().asking("2").owned_by(job))).allowed
        by = "which gpu-training, gpu-serving, gpu-batch may evict"
        sentence = f"tenant alpha has no room for it in gpu-batch: it runs as gpu-interactive, {by}"
        assert await story.settled() == {"Job/train": [("Demoted", 2, sentence)]}


async def test_a_demoted_gang_is_reported_on_itself_as_its_pods_are() -> None:
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).having(
        "spec.quotas", [{"tier": "gpu-batch", "gpus": "1"}, {"gpus": "9"}]
    )
    gang = a_pytorchjob(a_pod().asking("1"), workers=2, name="llm").of_tier("gpu-batch")
    async with Story(gang, tenant).running() as story:
        assert (await story.validate(gang)).allowed
        assert (await story.validate(gang, dryRun=True)).allowed
        by = "which gpu-training, gpu-serving, gpu-batch may evict"
        sentence = f"tenant alpha has no room for it in gpu-batch: it runs as gpu-interactive, {by}"
        assert await story.settled() == {"PyTorchJob/llm": [("Demoted", 1, sentence)]}


async def test_a_guess_that_was_not_used_is_reported_on_the_workload() -> None:
    deployment = a_deployment(a_pod().asking("1"), name="chat-server")
    async with Story(deployment).running() as story:
        answer = await story.validate(deployment)
        assert answer.warnings
        (message,) = (await story.settled())["Deployment/chat-server"]
        assert message == ("GuessTooWeak", 1, answer.warnings[0])
