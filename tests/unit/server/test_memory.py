"""Unfinished bodies on many connections: the memory that they take is bounded, whoever sends them."""

import asyncio
import contextlib
import ssl
from pathlib import Path

from tests.builders import a_pod
from tests.builders.world import FakeApi
from tests.unit.server.serving import HOST, a_post, a_process
from webhook.server.endpoint import MIB

CONNECTIONS, PATHS = 80, ("/validate", "/elsewhere")
CHUNK = b" " * 64 * 1024
POD = FakeApi().body(a_pod().asking())
ANYBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANYBODY.check_hostname, ANYBODY.verify_mode = False, ssl.CERT_NONE
MOST_MIB = 400
"""Seen are 170 to 355, by how the chunks of all fall together. A replica may have 512 MiB, and takes 98 beside 50,000
pods, or 172 if it leads."""


def rss(pid: int, of: str) -> float:
    """A process's memory in MiB, now (VmRSS) or at most so far (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{of}:")[2].split()[0]) / 1024


async def send_almost_all(port: int, path: str) -> None:
    """8 MiB but for the last bytes, until the server ends it. The certificate is of no interest here."""
    reader, writer = await asyncio.open_connection(HOST, port, ssl=ANYBODY)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        writer.write(a_post(path, body=POD, length=8 * MIB))
        for _ in range(8 * MIB // len(CHUNK) - 2):
            writer.write(CHUNK)
            await writer.drain()
        while await reader.read(65536):
            pass
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


async def test_unfinished_bodies_fit_the_memory_of_a_replica() -> None:
    """80 on a path that takes reviews, and 80 on one that there isn't."""
    async with a_process() as (child, _, port):
        before = rss(child.pid, "VmRSS")
        await asyncio.gather(*(send_almost_all(port, path) for path in PATHS for _ in range(CONNECTIONS)))
        assert rss(child.pid, "VmHWM") - before < MOST_MIB
