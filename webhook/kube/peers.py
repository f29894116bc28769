"""HTTPS from one replica to another. All that is trusted is the certificate that both serve."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from http import HTTPStatus

import aiohttp

from webhook.kube.errors import Failed, Unreachable

IDLE_SECONDS = 90.0
"""A connection that nobody uses is kept for so long; the server keeps it longer."""


END = b"-----END CERTIFICATE-----"


class Peers:
    """Connections to other replicas that stay open. Close it at the end. Make it in the loop that uses it.

    `certificate`: the PEM of what they serve now, the leaf first.
    """

    def __init__(self, certificate: Callable[[], bytes]) -> None:
        self._certificate = certificate
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS), timeout=aiohttp.ClientTimeout()
        )

    async def close(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def post(
        self, address: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[Awaitable[bytes]]:
        """Entered once the answer's head is there: the rest is to be awaited. Raises Unreachable or Failed."""
        asked = self._session.post(
            f"https://{address}{path}", headers=headers, data=body, ssl=_trusting(self._certificate())
        )
        try:
            async with asked as response:
                if response.status != HTTPStatus.OK:
                    raise Failed(f"https://{address}{path}: HTTP {response.status}", response.status)
                yield response.read()
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Unreachable(f"https://{address}{path}: {error}") from error


@lru_cache(maxsize=2)
def _trusting(certificate: bytes) -> ssl.SSLContext:
    """Trusts no authority but that one certificate, so it need not bear the address: who shows it has its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    leaf = certificate.partition(END)
    context.load_verify_locations(cadata=b"".join(leaf[:2]).decode())
    return context
