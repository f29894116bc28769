"""Replicas hand bookings to the one that leads, on a port of their own: the port, and the way to another one's.

They know one another by what they share, the serving certificate and a key that is made of its key. A booking on its
way is bound to the leader that it is for, to a time, and to each of its bytes.
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
from webhook.server.metric_table import BOOKINGS_HANDED_OVER, BOOKINGS_TAKEN
from webhook.server.metrics import Metrics
from webhook.server.run import AppPort
from webhook.server.tls import LiveCertificate

PATH = "/v1/bookings"
FORMAT = 1
"""Of the body. A replica with another one refuses, and every booking is written by the replica that was asked."""
SEAL = "gpu-tiers-seal"
"""The header: Unix seconds, a dot, and the code over what it binds, in hexadecimal."""
SECONDS = 30.0
"""A seal is good for so long, before and after. Where the clocks of two nodes differ by more each books for itself."""
MOST_BYTES = 64 * 1024
MOST_AT_ONCE = 500
BODY_SECONDS = 1.0
BOOKED, NOT_BOOKED = b"1", b"0"

Take = Callable[[Booking | GangBooking], Awaitable[bool]]
"""Books for another replica: whether that could be done at once."""


def seal(serving_key: bytes, leader: str, at: str, body: bytes) -> str:
    """What only a replica of this installation can write, for one leader."""
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
    """As it goes over the wire. Of the tenant the leader takes the quota that it knows, as with each of its own."""
    tenant = Tenant(booking.tenant.name)
    if isinstance(booking, Booking) and booking.group is not None:
        booking = structs.replace(booking, group=structs.replace(booking.group, tenant=tenant))
    return _encode(structs.replace(booking, tenant=tenant))


class BookingsPort:
    """Where this replica takes bookings from others, and how it hands over its own.

    Without a port it does neither. Close it at the end; what it serves is closed by whoever serves it.
    """

    def __init__(
        self, host: str, port: int | None, reached_at: str, certificate: LiveCertificate, metrics: Metrics
    ) -> None:
        """Listen on `host`; others reach it at `reached_at`, an IP address. Raises OSError where the port is taken."""
        self._certificate = certificate
        self._metrics = metrics
        self._listening = listen(host, port) if port is not None else None
        self._peers = Peers(lambda: certificate.bundle.certificate)
        named = f"[{reached_at}]" if ":" in reached_at else reached_at
        self.address = f"{named}:{port_of(self._listening)}" if self._listening is not None else ""

    async def close(self) -> None:
        await self._peers.close()

    def to(self, election: LeaderElection) -> HandOver:
        """The hand-over to whoever that election has made the leader."""

        def leader() -> LeaderCall | None:
            if self._listening is None or election.leading or not election.holder_address:
                return None
            return partial(self._handed, election.holder, election.holder_address)

        told = partial(self._metrics.count, BOOKINGS_HANDED_OVER)
        return HandOver(leader, told, is_led=lambda: election.is_renewed)

    def serving(self, identity: str, take: Take) -> Iterator[AppPort]:
        if self._listening is not None:
            app = BookingsApp(
                identity,
                lambda: self._certificate.bundle.key,
                take,
                lambda outcome: self._metrics.count(BOOKINGS_TAKEN, outcome),
            )
            yield AppPort(app, self._listening, self._certificate.pages)

    @asynccontextmanager
    async def _handed(
        self, leader: str, address: str, booking: Booking | GangBooking
    ) -> AsyncIterator[Awaitable[bool]]:
        body = encoded(booking)
        if len(body) > MOST_BYTES:
            yield _answered(NOT_BOOKED)
            return
        sealed = seal(self._certificate.bundle.key, leader, str(int(time.time())), body)
        async with self._peers.post(address, PATH, {SEAL: sealed}, body) as answer:
            yield _answered(answer)


async def _answered(answer: Awaitable[bytes] | bytes) -> bool:
    return (answer if isinstance(answer, bytes) else await answer) == BOOKED


class BookingsApp:
    """What the port serves. `told` is told how each request ended: booked, declined, refused."""

    def __init__(self, identity: str, key: Callable[[], bytes], take: Take, told: Callable[[str], None]) -> None:
        self._identity = identity
        self._key = key
        self._take = take
        self._told = told
        self._taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The head of the answer goes out before the booking is written: so the other replica knows that we live."""
        try:
            booking = await self._read(scope, receive)
        except HTTPException as refused:
            self._told("refused")
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        self._taken += 1
        try:
            booked = await self._take(booking)
        finally:
            self._taken -= 1
        self._told("booked" if booked else "declined")
        await send({"type": "http.response.body", "body": BOOKED if booked else NOT_BOOKED})

    async def _read(self, scope: Scope, receive: Receive) -> Booking | GangBooking:
        """The booking of a request. Raises HTTPException."""
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
        if not is_sealed(found, self._key(), self._identity, body, time.time()):
            raise HTTPException(401)
        try:
            booking: Booking | GangBooking = _decode(body)
        except msgspec.DecodeError:
            raise HTTPException(400) from None
        return booking
