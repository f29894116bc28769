"""One loopback address for several processes, as a Service is one for several pods.

A connection goes to the next backend whose /readyz says yes. A backend that says no, as one that drains, gets no new
connections and keeps its old ones. A backend that doesn't answer, as a paused one, loses them, as if its node had died.

Run by its path, with a file {"port": …, "backends": [{"name", "port", "metrics_port"}]}. Standard library only.
"""

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

HOST = "127.0.0.1"
PERIOD_SECONDS = 0.5
TIMEOUT_SECONDS = 1.0
PIECE = 1 << 16


class Health(Enum):
    """The last answer of /readyz."""

    READY = "ready"
    NOT_READY = "not ready"
    SILENT = "silent"


@dataclass
class Backend:
    """One process: where it serves, where its /readyz is, and the connections that it has."""

    name: str
    port: int
    metrics_port: int
    health: Health = Health.SILENT
    open: set[asyncio.Task[None]] = field(default_factory=set)

    async def probe(self) -> None:
        """Ask for /readyz and print a change; cut all connections if no answer comes within TIMEOUT_SECONDS."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                health = await asked(self.metrics_port)
        except (OSError, EOFError):  # TimeoutError is an OSError
            health = Health.SILENT
        if health is not self.health:
            print(f"{self.name} is {health.value}", flush=True)
        self.health = health
        if health is Health.SILENT:
            for connection in self.open:
                connection.cancel()

    async def probe_for_ever(self) -> None:
        """Probe, and again PERIOD_SECONDS after the end of each probe."""
        while True:
            await self.probe()
            await asyncio.sleep(PERIOD_SECONDS)


async def asked(metrics_port: int) -> Health:
    """Return the answer of /readyz: any but 200 is a no."""
    reader, writer = await asyncio.open_connection(HOST, metrics_port)
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status = await reader.readuntil(b"\r\n")
    finally:
        writer.transport.abort()
    return Health.READY if status.split()[1:2] == [b"200"] else Health.NOT_READY


class Balancer:
    """Hands each connection to the next ready backend."""

    def __init__(self, backends: list[Backend]) -> None:
        self._turns = backends

    def next(self) -> Backend | None:
        """Return the ready backend that was chosen longest ago."""
        found = next((each for each in self._turns if each.health is Health.READY), None)
        if found:
            self._turns.remove(found)
            self._turns.append(found)
        return found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side ends it or the backend is silent; cut it if no backend is ready."""
        backend = self.next()
        if backend is None:
            writer.transport.abort()
            return
        connection = asyncio.create_task(between(reader, writer, backend.port))
        backend.open.add(connection)
        await asyncio.wait([connection])
        backend.open.discard(connection)
        writer.close()  # one that was cut before it began has not done so


async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Copy both ways until one side ends, and send what was received by then. A cancellation cuts both at once."""
    writers = [writer]
    try:
        from_backend, to_backend = await asyncio.open_connection(HOST, port)
        writers.append(to_backend)
        ways = {asyncio.create_task(copy(reader, to_backend)), asyncio.create_task(copy(from_backend, writer))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
    except OSError:
        return
    except asyncio.CancelledError:
        for each in writers:
            each.transport.abort()
        raise
    finally:
        for each in writers:
            each.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy from one side to the other until either ends."""
    with suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()


async def run(port: int, backends: list[Backend]) -> None:
    """Balance until the process is ended."""
    async with asyncio.TaskGroup() as tasks:
        for backend in backends:
            tasks.create_task(backend.probe_for_ever())
        server = await asyncio.start_server(Balancer([*backends]).serve, HOST, port, backlog=1024)
        await server.serve_forever()


if __name__ == "__main__":
    asked_for = json.loads(Path(sys.argv[1]).read_text())
    asyncio.run(run(asked_for["port"], [Backend(**each) for each in asked_for["backends"]]))
