"""Several processes behind one address, as a caller sees them: the dead and the silent leave the rotation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from localcluster import balancer
from localcluster.balancer import HOST, Backend, Balancer, Health
from tests.connections import end_of_connections


class Pod:
    """A process as the balancer sees it: a port that says its name once asked, and a /readyz."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "200 OK"
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def start(self) -> Backend:
        self._servers = [await asyncio.start_server(each, HOST, 0) for each in (self._serve, self._readyz)]
        return Backend(self.name, *(each.sockets[0].getsockname()[1] for each in self._servers))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await self.goes_on.wait()
            writer.write(f"{self.name}\n".encode())
        writer.close()

    async def _readyz(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await self.goes_on.wait()
        writer.write(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
        writer.close()

    async def die(self) -> None:
        for server in self._servers:
            server.close()


class Caller:
    """A client with a connection that stays open, as the API server has them."""

    async def call(self, port: int) -> "Caller":
        self._reader, self._writer = await asyncio.open_connection(HOST, port)
        return self

    async def ask(self) -> str:
        """Return who answers, and "" where the connection is cut."""
        self._writer.write(b"who?\n")
        with contextlib.suppress(ConnectionError):
            return (await self._reader.readline()).decode().strip()
        return ""

    def hang_up(self) -> None:
        self._writer.close()


class Service:
    """Three pods behind one address."""

    def __init__(self, pods: list[Pod], backends: list[Backend], port: int) -> None:
        self.pods = pods
        self._backends = backends
        self._port = port
        self._callers: list[Caller] = []

    async def probed(self) -> None:
        await asyncio.gather(*(each.probe() for each in self._backends))

    async def caller(self) -> Caller:
        self._callers.append(await Caller().call(self._port))
        return self._callers[-1]

    async def answers(self, calls: int) -> list[str]:
        return [await (await self.caller()).ask() for _ in range(calls)]

    def end(self) -> None:
        for caller in self._callers:
            caller.hang_up()


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(balancer, "TIMEOUT_SECONDS", 0.5)
    pods = [Pod("a"), Pod("b"), Pod("c")]
    backends = [await pod.start() for pod in pods]
    server = await asyncio.start_server(Balancer([*backends]).serve, HOST, 0)
    made = Service(pods, backends, server.sockets[0].getsockname()[1])
    await made.probed()
    yield made
    made.end()
    server.close()
    for pod in pods:
        pod.goes_on.set()
        await pod.die()
    await end_of_connections()


async def test_each_connection_goes_to_the_next_one(service: Service) -> None:
    assert await service.answers(6) == ["a", "b", "c", "a", "b", "c"]


async def test_a_connection_stays_where_it_is(service: Service) -> None:
    caller = await service.caller()
    assert [await caller.ask() for _ in range(3)] == ["a", "a", "a"]


async def test_one_that_is_not_ready_gets_no_new_connections_and_keeps_its_own(service: Service) -> None:
    caller = await service.caller()
    service.pods[0].status = "503 Service Unavailable"
    await service.probed()
    assert await service.answers(4) == ["b", "c", "b", "c"]
    assert await caller.ask() == "a"


async def test_a_paused_one_loses_its_connections(service: Service) -> None:
    caller = await service.caller()
    service.pods[0].goes_on.clear()
    question = asyncio.create_task(caller.ask())
    await service.probed()
    assert await asyncio.wait_for(question, 5) == ""
    assert await service.answers(2) == ["b", "c"]


async def test_one_that_goes_on_is_back_in_the_rotation(service: Service) -> None:
    service.pods[1].goes_on.clear()
    await service.probed()
    service.pods[1].goes_on.set()
    await service.probed()
    assert sorted(await service.answers(3)) == ["a", "b", "c"]


async def test_a_caller_is_cut_off_where_none_is_ready(service: Service) -> None:
    for pod in service.pods:
        pod.status = "503 Service Unavailable"
    await service.probed()
    assert await service.answers(1) == [""]


async def test_a_dead_one_is_silent(service: Service) -> None:
    await service.pods[2].die()
    await service.probed()
    assert [each.health for each in service._backends] == [Health.READY, Health.READY, Health.SILENT]
    assert await service.answers(2) == ["a", "b"]
