"""The simulated API server answers as the real one does, and shows each process what the test lets it see."""

import asyncio
from contextlib import suppress

import msgspec
import pytest

from tests.ledger.simulated_api import NAMESPACES, PODS, TENANT_QUOTAS, SimulatedApi
from tests.ledger.simulated_client import Fate, SimulatedClient
from tests.ledger.virtual_time import in_virtual_time, loop, pass_time, settle
from webhook.kube.client import Event
from webhook.kube.errors import Conflict, Gone, NotFound, Unreachable
from webhook.objects.view import Tree

ALPHA = f"{TENANT_QUOTAS}/alpha"
STATUS = f"{ALPHA}/status"
POD = "/api/v1/namespaces/n/pods/p"
QUOTA = {"metadata": {"name": "alpha"}, "spec": {"quotas": [{"gpus": 4}]}}
A_POD = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {}, "status": {"phase": "Pending"}}


def a_quota() -> tuple[SimulatedApi, SimulatedClient]:
    api = SimulatedApi()
    api.make(TENANT_QUOTAS, QUOTA)
    return api, SimulatedClient(api)


class Watch:
    """Keeps what a watch has brought, in the words `ADDED p`."""

    def __init__(self, client: SimulatedClient, path: str, since: str, **params: str) -> None:
        self.seen: list[str] = []
        self.ended: Exception | None = None
        self.last: Tree = {}
        self._task = asyncio.create_task(self._run(client, path, since, params))

    async def _run(self, client: SimulatedClient, path: str, since: str, params: dict[str, str]) -> None:
        with suppress(asyncio.CancelledError):
            try:
                async with client.watch(path, since, params) as events:
                    async for event in events:
                        self._take(event)
            except (Gone, Unreachable) as error:
                self.ended = error

    def _take(self, event: Event) -> None:
        self.last = msgspec.json.decode(event.object)
        self.seen.append(f"{event.type} {self.last['metadata'].get('name', '')}".strip())

    async def stop(self) -> None:
        self._task.cancel()
        await self._task


async def watching(client: SimulatedClient, path: str = PODS, **params: str) -> Watch:
    pages = [page async for page in client.list_pages(path, params)]
    watch = Watch(client, path, pages[-1].metadata.resource_version, **params)
    await settle()
    return watch


@in_virtual_time
async def test_a_put_with_an_old_version_is_a_conflict() -> None:
    _, client = a_quota()
    mine, theirs = await client.get(ALPHA), await client.get(ALPHA)
    await client.replace(STATUS, {**theirs, "status": {"by": "them"}})
    with pytest.raises(Conflict):
        await client.replace(STATUS, {**mine, "status": {"by": "me"}})
    assert (await client.get(ALPHA))["status"] == {"by": "them"}


@in_virtual_time
async def test_a_put_with_another_uid_is_a_conflict() -> None:
    """A TenantQuota that was deleted and made again is another one."""
    api, client = a_quota()
    before = await client.get(ALPHA)
    api.remove(TENANT_QUOTAS, ("", "alpha"))
    with pytest.raises(NotFound):
        await client.get(ALPHA)
    api.make(TENANT_QUOTAS, QUOTA)
    now = await client.get(ALPHA)
    before["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await client.replace(STATUS, {**before, "status": {}})


@in_virtual_time
async def test_status_and_spec_are_written_apart() -> None:
    _, client = a_quota()
    found = await client.get(ALPHA)
    spec = {"quotas": [{"gpus": 9}]}
    counted = await client.replace(STATUS, {**found, "spec": spec, "status": {"used": "1"}})
    assert (counted["spec"], counted["metadata"]["generation"]) == (QUOTA["spec"], 1)
    raised = await client.replace(ALPHA, {**counted, "spec": spec, "status": {}})
    assert (raised["spec"], raised["status"], raised["metadata"]["generation"]) == (spec, {"used": "1"}, 2)


@in_virtual_time
async def test_a_write_that_changes_nothing_makes_no_version() -> None:
    _, client = a_quota()
    once = await client.replace(STATUS, {**await client.get(ALPHA), "status": {"used": "1"}})
    assert await client.replace(STATUS, once) == once


@in_virtual_time
async def test_versions_of_two_kinds_have_nothing_in_common() -> None:
    api, client = a_quota()
    api.make(PODS, A_POD)
    pod, quota = await client.get(POD), await client.get(ALPHA)
    assert int(pod["metadata"]["resourceVersion"]) > int(quota["metadata"]["resourceVersion"]) + 1000
    with pytest.raises(Conflict):
        api.make(PODS, A_POD)


@in_virtual_time
async def test_a_watch_lags_as_far_as_the_test_wants() -> None:
    api, client = a_quota()
    watch = await watching(client)
    client.view(PODS).hold()
    api.make(PODS, A_POD)
    api.change(PODS, ("n", "p"), status={"phase": "Running"})
    await settle()
    assert watch.seen == []
    client.view(PODS).step()
    await settle()
    assert (watch.seen, client.view(PODS).behind) == (["ADDED p"], 1)
    client.view(PODS).flow()
    await settle()
    assert watch.seen == ["ADDED p", "MODIFIED p"]
    await watch.stop()


@in_virtual_time
async def test_a_list_is_the_newest_state_and_a_cache_what_the_watch_has_shown() -> None:
    api, client = a_quota()
    watch = await watching(client)
    client.view(PODS).hold()
    api.make(PODS, A_POD)
    newest = [page async for page in client.list_pages(PODS)]
    cached = [page async for page in client.list_pages(PODS, {"resourceVersion": "0"})]
    assert (len(newest[0].items or ()), len(cached[0].items or ())) == (1, 0)
    await watch.stop()


@in_virtual_time
async def test_a_pod_that_succeeds_leaves_the_selection() -> None:
    api, client = a_quota()
    running = "status.phase!=Succeeded,status.phase!=Failed"
    watch = await watching(client, fieldSelector=running)
    api.make(PODS, A_POD)
    api.change(PODS, ("n", "p"), status={"phase": "Succeeded"})
    api.remove(PODS, ("n", "p"))
    await settle()
    assert watch.seen == ["ADDED p", "DELETED p"]
    await watch.stop()


@in_virtual_time
async def test_what_is_deleted_is_shown_as_it_was_last() -> None:
    api, client = a_quota()
    watch = await watching(client, TENANT_QUOTAS)
    await client.replace(STATUS, {**await client.get(ALPHA), "status": {"used": "1"}})
    api.remove(TENANT_QUOTAS, ("", "alpha"))
    await settle()
    assert watch.seen == ["MODIFIED alpha", "DELETED alpha"]
    assert watch.last["status"] == {"used": "1"}
    await watch.stop()


@in_virtual_time
async def test_a_watch_breaks_and_goes_on_where_it_was() -> None:
    api, client = a_quota()
    watch = await watching(client)
    api.make(PODS, A_POD)
    await settle()
    client.view(PODS).break_off()
    await settle()
    assert isinstance(watch.ended, Unreachable)
    api.remove(PODS, ("n", "p"))
    again = Watch(client, PODS, watch.last["metadata"]["resourceVersion"])
    await settle()
    assert again.seen == ["DELETED p"]
    client.view(PODS).bookmark()
    await settle()
    assert again.seen[-1] == "BOOKMARK"
    await again.stop()


@in_virtual_time
async def test_a_watch_that_is_too_old_is_gone() -> None:
    api, client = a_quota()
    watch = await watching(client)
    client.view(PODS).hold()
    api.make(PODS, A_POD)
    client.view(PODS).expire()
    await settle()
    assert isinstance(watch.ended, Gone)


@in_virtual_time
async def test_an_answer_is_lost_after_the_write_was_stored() -> None:
    _, client = a_quota()
    found = await client.get(ALPHA)
    client.fates = lambda request: Fate.LOST if request.method == "PUT" else Fate.ANSWERED
    began = loop().time()
    with pytest.raises(Unreachable):
        await client.replace(STATUS, {**found, "status": {"used": "1"}}, seconds=2)
    assert (await client.get(ALPHA))["status"] == {"used": "1"}
    assert loop().time() - began == 2


@in_virtual_time
async def test_a_write_is_stored_after_everybody_has_given_it_up() -> None:
    _, client = a_quota()
    found = await client.get(ALPHA)
    client.fates = lambda request: Fate.LATE if request.method == "PUT" else Fate.ANSWERED
    with pytest.raises(Unreachable):
        await client.replace(STATUS, {**found, "status": {"used": "1"}})
    assert "status" not in await client.get(ALPHA)
    client.commit_late()
    assert (await client.get(ALPHA))["status"] == {"used": "1"}


@in_virtual_time
async def test_a_conflict_and_an_api_server_that_is_away_store_nothing() -> None:
    api, client = a_quota()
    found = await client.get(ALPHA)
    client.fates = lambda request: Fate.CONFLICT if request.method == "PUT" else Fate.ANSWERED
    with pytest.raises(Conflict):
        await client.replace(STATUS, {**found, "status": {"used": "1"}})
    api.away = True
    with pytest.raises(Unreachable):
        await client.get(ALPHA)
    api.away = False
    assert "status" not in await client.get(ALPHA)


@in_virtual_time
async def test_a_process_stops_between_its_read_and_its_write() -> None:
    _, client = a_quota()
    client.hold("PUT")
    other = SimulatedClient(client.api)

    async def write() -> None:
        await client.replace(STATUS, {**await client.get(ALPHA), "status": {"by": "the sleeper"}})

    asleep = asyncio.create_task(write())
    await settle()
    assert [str(each) for each in client.waiting] == [f"PUT {STATUS}"]
    await pass_time(60)
    await other.replace(STATUS, {**await other.get(ALPHA), "status": {"by": "another"}})
    await client.let("PUT")
    assert isinstance(asleep.exception(), Conflict)


@in_virtual_time
async def test_namespaces_are_objects_and_places() -> None:
    api, client = a_quota()
    api.make(NAMESPACES, {"metadata": {"name": "n"}})
    api.make(PODS, A_POD)
    assert (await client.get(f"{NAMESPACES}/n"))["metadata"]["name"] == "n"
    elsewhere = [page async for page in client.list_pages("/api/v1/namespaces/other/pods")]
    assert elsewhere[0].items == []


def test_time_passes_only_where_the_test_or_nothing_else_moves_it() -> None:
    rang: list[float] = []

    async def alarm() -> None:
        for _ in range(3):
            await asyncio.sleep(10)
            rang.append(loop().time() - 1000)

    @in_virtual_time
    async def story() -> None:
        ringing = asyncio.create_task(alarm())
        await pass_time(19)
        assert rang == [10]
        await pass_time(1)
        assert rang == [10, 20]
        await ringing
        assert rang == [10, 20, 30]
        with pytest.raises(AssertionError, match="never happen"):
            loop().idle(None)

    story()
