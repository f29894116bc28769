"""The port on which the leader takes bookings from other replicas, and the client of that port.

Replicas trust one another by the shared serving certificate, and by a key derived from its key. The seal of a booking
covers its leader, a time, and every byte.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from hmac import compare_digest, digest

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from webhook.kube.connection import Peers
from webhook.kube.leader_election import LeaderElection
from webhook.ledger.accounts import HandOver, LeaderCall
from webhook.ledger.protocol import Booking, GangBooking
from webhook.policy.values.tenants import Tenant
from webhook.server.listener import listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.run import AppPort
from webhook.server.tls import LiveCertificate

PATH = "/v1/bookings"
FORMAT = 1
"""The version of the body's format. A leader with another version refuses, and the replica writes its bookings itself.
"""
SEAL = "gpu-tiers-seal"
"""The header with the seal: Unix seconds, a dot, and the HMAC-SHA256 in hexadecimal."""
SECONDS = 30.0
"""The most seconds from the time in a seal to this clock. If clocks differ by more, each replica books for itself."""
MOST_BYTES = 64 * 1024
MOST_AT_ONCE = 500
BODY_SECONDS = 1.0
BOOKED, NOT_BOOKED = b"1", b"0"

Take = Callable[[Booking | GangBooking], Awaitable[bool]]
"""Books for another replica. Returns whether there was room without waiting."""


def seal(serving_key: bytes, leader: str, at: str, body: bytes) -> str:
    """Return the seal of a booking for one leader. Only a process with the serving key can make it."""
    return f"{at}.{digest(_key(serving_key), f'{leader} {at} '.encode() + body, 'sha256').hex()}"


def is_sealed(found: str, serving_key: bytes, leader: str, body: bytes, now: float) -> bool:
    at = found.partition(".")[0]
    right = compare_digest(found.encode(), seal(serving_key, leader, at, body).encode())
    return right and abs(now - float(at)) <= SECONDS


@lru_cache(maxsize=2)
def _key(serving_key: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=f"gpu-tiers hand-over {FORMAT}".encode()).derive(serving_key)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Booking | GangBooking).decode


def encoded(booking: Booking | GangBooking) -> bytes:
    """Return a booking as JSON, with only the name of its tenant, because the leader uses the quota that it knows."""
    tenant = Tenant(booking.tenant.name)
    if isinstance(booking, Booking) and booking.group is not None:
        booking = structs.replace(booking, group=structs.replace(booking.group, tenant=tenant))
    return _encode(structs.replace(booking, tenant=tenant))


class BookingsPort:
    """The port on which this replica takes bookings, and the connections on which it hands over its own.

    Without a port it does neither. `close` closes the connections; the caller of `serving` closes the served sockets.
    """

    def __init__(
        self, host: str, port: int | None, reached_at: str, certificate: LiveCertificate, metrics: Metrics
    ) -> None:
        """Listen on `host`; others reach it at the IP address `reached_at`. Raises OSError if the port is in use."""
        self._certificate = certificate
        self._metrics = metrics
        self._listening = listen(host, port) if port is not None else None
        self._taken = 0
        self._peers = Peers(lambda: certificate.bundle.certificate)
        named = f"[{reached_at}]" if ":" in reached_at else reached_at
        self.address = f"{named}:{port_of(self._listening)}" if self._listening is not None else ""

    async def close(self) -> None:
        await self._peers.close()

    def to(self, election: LeaderElection) -> HandOver:
        """Return the hand-over to the leader of that election.

        This replica books itself if it leads, has no port, or knows no address of a leader.
        """

        def leader() -> LeaderCall | None:
            if self._listening is None or election.leading or not election.holder_address:
                return None
            return partial(self._handed, election.holder, election.holder_address)

        report = partial(self._metrics.count, "gpu_tiers_bookings_handed_over_total")
        return HandOver(leader, report, is_led=lambda: election.is_renewed)

    def serving(self, identity: str, take: Take) -> Iterator[AppPort]:
        """Yield the port that books with `take` the bookings sealed for this identity; nothing without a port."""
        if self._listening is not None:
            yield AppPort(partial(self._answer, identity, take), self._listening, self._certificate.pages)

    @asynccontextmanager
    async def _handed(
        self, leader: str, address: str, booking: Booking | GangBooking
    ) -> AsyncIterator[Awaitable[bool]]:
        async def answered(answer: Awaitable[bytes] | None) -> bool:
            return answer is not None and await answer == BOOKED

        body = encoded(booking)
        if len(body) > MOST_BYTES:
            yield answered(None)
            return
        sealed = seal(self._certificate.bundle.key, leader, str(int(time.time())), body)
        async with self._peers.post(address, PATH, {SEAL: sealed}, body) as answer:
            yield answered(answer)

    async def _answer(self, identity: str, take: Take, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. The head is sent before the booking is written, so that the caller knows that we live.

        The outcome is counted as booked, declined or refused.
        """
        try:
            booking = await self._read(identity, scope, receive)
        except HTTPException as refused:
            self._metrics.count("gpu_tiers_bookings_taken_total", "refused")
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        self._taken += 1
        try:
            booked = await take(booking)
        finally:
            self._taken -= 1
        self._metrics.count("gpu_tiers_bookings_taken_total", "booked" if booked else "declined")
        await send({"type": "http.response.body", "body": BOOKED if booked else NOT_BOOKED})

    async def _read(self, identity: str, scope: Scope, receive: Receive) -> Booking | GangBooking:
        """Return the booking of a request. Raises HTTPException: 400, 401, 404, 408, 413, or 503 if too many wait."""
        if (scope["method"], scope["path"]) != ("POST", PATH):
            raise HTTPException(404)
        if self._taken >= MOST_AT_ONCE:
            raise HTTPException(503)
        body, more = b"", True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more and len(body) <= MOST_BYTES:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise HTTPException(408) from None
        if len(body) > MOST_BYTES:
            raise HTTPException(413)
        found = dict(scope["headers"]).get(SEAL.encode(), b"").decode("latin-1")
        if not is_sealed(found, self._certificate.bundle.key, identity, body, time.time()):
            raise HTTPException(401)
        try:
            booking: Booking | GangBooking = _decode(body)
        except msgspec.DecodeError:
            raise HTTPException(400) from None
        return booking
