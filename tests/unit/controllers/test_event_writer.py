"""Events about what happens again and again: one each, counted, never too many, and lost rather than waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.unit.controllers.stored_events import StoredEvents, until
from webhook.controllers.event_writer import MOST_SERIES, EventWriter, Regarding
from webhook.kube.errors import Forbidden, Unreachable

RANKER = Regarding("jobset.x-k8s.io/v1alpha2", "JobSet", "ranker", "uid-of-ranker", "research")
ALPHA = Regarding("gpu-tiers.dev/v1alpha1", "TenantQuota", "alpha", "uid-of-alpha")


@asynccontextmanager
async def writing(api: StoredEvents, interval: float = 0.02) -> AsyncIterator[EventWriter]:
    writer = EventWriter(api, interval=interval, pause=0.001)
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def say(writer: EventWriter, count: int, message: str = "no room") -> None:
    for _ in range(count):
        writer.add(RANKER, "OverQuota", message)


async def test_an_event_as_kubectl_reads_it() -> None:
    api = StoredEvents()
    async with writing(api) as writer:
        say(writer, 1, "tenant alpha: the total is at 4 of 4 GPUs")
        await until(lambda: bool(api.events))
    ((place, event),) = api.events.items()
    assert place.startswith("/api/v1/namespaces/research/events/ranker.")
    assert event["involvedObject"] == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "ranker",
        "uid": "uid-of-ranker",
        "namespace": "research",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "OverQuota", 1)
    assert event["reportingComponent"] == event["source"]["component"] == "gpu-tiers.dev/webhook"


async def test_an_object_of_the_whole_cluster_has_its_events_in_default() -> None:
    api = StoredEvents()
    async with writing(api) as writer:
        writer.add(ALPHA, "OverQuota", "no room")
        await until(lambda: bool(api.events))
    ((place, event),) = api.events.items()
    assert place.startswith("/api/v1/namespaces/default/events/alpha.")
    assert "namespace" not in event["involvedObject"]


async def test_many_refusals_are_one_event_with_a_count_and_the_latest_sentence() -> None:
    api = StoredEvents()
    async with writing(api) as writer:
        say(writer, 1, "at 4 of 6")
        await until(lambda: bool(api.events))
        say(writer, 498, "at 5 of 6")
        say(writer, 1, "at 6 of 6")
        await until(lambda: api.about("ranker") == [("OverQuota", 500, "at 6 of 6")])
    assert [request.split()[0] for request in api.requests] == ["POST", "PATCH"]


async def test_another_reason_is_another_event() -> None:
    api = StoredEvents()
    async with writing(api) as writer:
        say(writer, 2)
        writer.add(RANKER, "Refused", "is no tier")
        await until(lambda: len(api.events) == 2)
    assert sorted(api.about("ranker")) == [("OverQuota", 2, "no room"), ("Refused", 1, "is no tier")]


async def test_between_two_writes_of_one_event_lies_the_interval() -> None:
    api = StoredEvents()
    async with writing(api, interval=60) as writer:
        say(writer, 1)
        await until(lambda: bool(api.events))
        say(writer, 100)
        await asyncio.sleep(0.05)
        writer.add(ALPHA, "OverQuota", "no room")
        await until(lambda: len(api.events) == 2)
    assert len(api.requests) == 2


async def test_events_of_one_object_are_written_in_their_order() -> None:
    """A budget of minutes is nearly used a second time and used up within the interval of the first event."""
    api = StoredEvents()
    async with writing(api, interval=0.2) as writer:
        for said in ("80 %", "95 %"):
            writer.add(ALPHA, "BudgetNearlyUsed", said)
            await until(lambda: bool(api.events))
        writer.add(ALPHA, "BudgetUsedUp", "100 %")
        await until(lambda: len(api.events) == 2)
    assert [event["message"] for event in api.events.values()] == ["95 %", "100 %"]


async def test_replicas_and_restarts_count_in_one_event() -> None:
    api = StoredEvents()
    async with writing(api) as one, writing(api) as other:
        for writer in (one, other, one, other):
            say(writer, 3)
            await asyncio.sleep(0.03)
        await until(lambda: api.about("ranker") == [("OverQuota", 12, "no room")])


async def test_an_event_that_has_expired_is_written_again() -> None:
    api = StoredEvents()
    async with writing(api) as writer:
        say(writer, 7)
        await until(lambda: bool(api.events))
        api.events.clear()
        say(writer, 2)
        await until(lambda: api.about("ranker") == [("OverQuota", 2, "no room")])


async def test_while_the_api_server_is_away_refusals_are_counted_and_one_line_is_logged(
    lines: list[dict[str, object]],
) -> None:
    api = StoredEvents()
    api.fault = Unreachable("POST /api/v1/namespaces/research/events: no answer in time")
    async with writing(api, interval=0.01) as writer:
        say(writer, 3)
        await until(lambda: len(api.requests) >= 3)
        say(writer, 2)
        api.fault = None
        await until(lambda: api.about("ranker") == [("OverQuota", 5, "no room")])
    assert [(line["event"], line["regarding"]) for line in lines] == [("event not written", "ranker")]


async def test_what_the_api_server_refuses_is_not_tried_again(lines: list[dict[str, object]]) -> None:
    api = StoredEvents()
    api.fault = Forbidden("POST /api/v1/namespaces/research/events: HTTP 403", 403)
    async with writing(api, interval=0.005) as writer:
        say(writer, 3)
        await until(lambda: bool(api.requests))
        await asyncio.sleep(0.05)
        assert len(api.requests) == 1
        say(writer, 1)
        await until(lambda: len(api.requests) == 2)
    assert len(lines) == 1


async def test_no_more_than_so_many_events_are_counted_at_a_time() -> None:
    api = StoredEvents()
    writer = EventWriter(api, pause=0)
    for number in range(MOST_SERIES + 10):
        writer.add(Regarding("batch/v1", "CronJob", f"job-{number}", f"uid-{number}", "research"), "OverQuota", "no")
    task = asyncio.create_task(writer.run())
    await until(lambda: len(api.events) == MOST_SERIES)
    await asyncio.sleep(0.02)
    task.cancel()
    assert len(api.events) == MOST_SERIES
    assert not api.about("job-0")


async def test_who_waits_for_a_word_hears_when_it_is_stored() -> None:
    api = StoredEvents()
    async with writing(api, interval=0.2) as writer:
        say(writer, 1)
        await writer.written(RANKER, "OverQuota")
        assert [each["count"] for each in api.events.values()] == [1]
        say(writer, 2)
        await writer.written(RANKER, "OverQuota")
        assert [each["count"] for each in api.events.values()] == [3]
