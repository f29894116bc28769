"""A server that listens on a real socket with a live TLS context, and a client that insists on names and CAs."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from certs.source import Bundle, apply
from tests.connections import end_of_connections


@dataclass(frozen=True)
class Server:
    """Serves whatever bundle was applied last, to new connections."""

    context: ssl.SSLContext
    port: int

    def serve(self, bundle: Bundle) -> None:
        apply(self.context, bundle)

    async def certificate_for(self, name: str, *, trusting: bytes) -> bytes:
        """Connect as `name`, as strictly as Python 3.13 and Go do; the certificate (DER) that was served."""
        client = ssl.create_default_context(cadata=trusting.decode())
        client.verify_flags |= ssl.VERIFY_X509_STRICT
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=client, server_hostname=name)
        served: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()
        return served


async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    writer.close()
    await writer.wait_closed()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=context)
    async with listening:
        yield Server(context, listening.sockets[0].getsockname()[1])
        await end_of_connections()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - the files are polled too
                await asyncio.sleep(0.01)

    return wait
