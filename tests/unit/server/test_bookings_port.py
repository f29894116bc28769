"""A replica hands its bookings to the one that leads, over TLS; nobody else gets one booked there."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal

import httpx
import pytest
from msgspec import structs

from certs.source import Bundle
from tests.unit.server.serving import HOST, a_bundle, until
from webhook.ledger import accounts
from webhook.ledger.accounts import HandOver
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Booking, GangBooking
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.server import bookings_port
from webhook.server.bookings_port import PATH, SEAL, BookingsPort, encoded, seal
from webhook.server.endpoint import Limits
from webhook.server.listener import Drain, Listener
from webhook.server.metrics import Metrics
from webhook.server.tls import LiveCertificate

ALPHA = Tenant("alpha", rows=(QuotaRow(hard=Decimal(2)),))
OURS, ANOTHERS = a_bundle(), a_bundle()


def a_booking(holder: str = "bert-0", gpus: int = 1) -> Booking:
    return Booking(holder, "n", ALPHA, (Charge(Decimal(gpus), "gpu-training"),), name=holder)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no leader that stands still."""
    for seconds in ("TAKEN_SECONDS", "ANSWERED_SECONDS", "ALONE_SECONDS"):
        monkeypatch.setattr(accounts, seconds, 60.0)


@dataclass
class Leads:
    """The leader, as a replica has read it from the Lease."""

    leading: bool
    holder: str = ""
    holder_address: str = ""


@dataclass
class Replica:
    """One that takes bookings as `name`, into a ledger in memory."""

    name: str
    certificate: LiveCertificate
    port: BookingsPort
    metrics: Metrics
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    taken: list[Booking | GangBooking] = field(default_factory=list)

    async def take(self, booking: Booking | GangBooking) -> bool:
        self.taken.append(booking)
        self.ledger.store.set(ALPHA, self.ledger.store.newest("alpha").account)
        self.ledger.store.open(ALPHA, "n")
        return await self.ledger.take(booking)

    def to(self, leader: "Replica") -> HandOver:
        return self.port.to(Leads(leading=False, holder=leader.name, holder_address=leader.port.address))

    def counted(self, metric: str, outcome: str) -> float:
        return self.metrics.registry.get_sample_value(metric, {"outcome": outcome}) or 0.0

    def used(self) -> Decimal:
        return self.ledger.usage(ALPHA)[ALPHA.rows[0]]


@contextlib.asynccontextmanager
async def a_replica(name: str, bundle: Bundle = OURS) -> AsyncIterator[Replica]:
    certificate, metrics = LiveCertificate(bundle), Metrics()
    port = BookingsPort(HOST, 0, HOST, certificate, metrics)
    replica = Replica(name, certificate, port, metrics)
    [serving] = port.serving(name, replica.take)
    listener = Listener(serving.app, limits=Limits(), drain=Drain(0), metrics=metrics, tls=serving.tls)
    with serving.listening:
        task = asyncio.create_task(listener.serve(serving.listening))
        try:
            yield replica
        finally:
            await port.close()
            listener.stop()
            await task


@pytest.fixture
async def leader() -> AsyncIterator[Replica]:
    async with a_replica("leader") as made:
        yield made


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    async with a_replica("replica") as made:
        yield made


async def status(leader: Replica, sealed: str, body: bytes, *, path: str = PATH, method: str = "POST") -> int:
    """Return the status for a request of a stranger who knows what the leader serves and trusts it."""
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:  # noqa: S501 - not the client's test
        answer = await client.request(
            method, f"https://{leader.port.address}{path}", content=body, headers={SEAL: sealed}
        )
        return answer.status_code


def now() -> str:
    return str(int(time.time()))


async def test_the_leader_books_what_a_replica_hands_over(leader: Replica, replica: Replica) -> None:
    handing = replica.to(leader)
    assert await handing.book(a_booking("bert-0"))
    assert await handing.book(a_booking("bert-1"))
    assert not await handing.book(a_booking("bert-2")), "there is no room"
    assert leader.used() == 2
    assert (
        replica.counted("gpu_tiers_bookings_handed_over_total", "booked"),
        leader.counted("gpu_tiers_bookings_taken_total", "booked"),
    ) == (2, 2)
    assert (
        replica.counted("gpu_tiers_bookings_handed_over_total", "declined"),
        leader.counted("gpu_tiers_bookings_taken_total", "declined"),
    ) == (1, 1)


async def test_a_booking_arrives_as_it_was(leader: Replica, replica: Replica) -> None:
    """But for the quota, of which the leader knows what is active."""
    charge = Charge(Decimal("0.125"), "gpu-batch", "a100? h100?", {"n/claim": Decimal("0.1")})
    group = GangBooking(
        "g1", "PodGroup.example.com", "n", "ring", ALPHA, (charge, charge), 3, "gpu-batch", of_pods=True
    )
    pod = Booking("u1", "n", ALPHA, (charge,), "c1", "ring-0", Charge(Decimal(1), None), "g1", group)
    for booking in (pod, group):
        await replica.to(leader).book(booking)
    bare = structs.replace(ALPHA, rows=())
    assert encoded(leader.taken[0]) == encoded(pod)
    assert leader.taken[0].group.tenant == leader.taken[1].tenant == bare
    assert leader.taken[1].charges == (charge, charge)


async def test_the_head_of_the_answer_comes_before_the_booking_is_written(leader: Replica, replica: Replica) -> None:
    """The early head distinguishes a slow API server from a leader that stands still."""
    answers = asyncio.Event()

    async def slow(_: Booking) -> bool:
        await answers.wait()
        return True

    leader.ledger.take = slow
    handed = replica.port.to(Leads(False, leader.name, leader.port.address))._leader()
    async with asyncio.timeout(60), handed(a_booking()) as answer:
        answers.set()
        assert await answer


async def test_what_another_key_has_sealed_is_refused(leader: Replica) -> None:
    body, at = encoded(a_booking()), now()
    assert await status(leader, seal(ANOTHERS.key, "leader", at, body), body) == 401
    assert await status(leader, "", body) == 401
    assert await status(leader, f"{at}.", body) == 401
    assert leader.taken == []
    assert leader.counted("gpu_tiers_bookings_taken_total", "refused") == 3


async def test_another_body_under_a_seal_is_refused(leader: Replica) -> None:
    sealed = seal(OURS.key, "leader", now(), encoded(a_booking()))
    assert await status(leader, sealed, encoded(a_booking("another"))) == 401
    assert await status(leader, f"{int(time.time()) + 1}.{sealed.partition('.')[2]}", encoded(a_booking())) == 401
    assert leader.taken == []


async def test_a_seal_of_another_time_is_refused(leader: Replica) -> None:
    body = encoded(a_booking())
    for at in (time.time() - bookings_port.SECONDS - 2, time.time() + bookings_port.SECONDS + 2):
        assert await status(leader, seal(OURS.key, "leader", str(int(at)), body), body) == 401
    assert leader.taken == []


async def test_what_is_for_another_leader_is_refused(leader: Replica) -> None:
    """Also in a cluster whose replicas serve the same certificate."""
    body = encoded(a_booking())
    assert await status(leader, seal(OURS.key, "another", now(), body), body) == 401
    assert leader.taken == []


async def test_what_is_sent_twice_is_charged_once(leader: Replica) -> None:
    body = encoded(a_booking())
    sealed = seal(OURS.key, "leader", now(), body)
    assert await status(leader, sealed, body) == 200
    assert await status(leader, sealed, body) == 200
    assert (len(leader.taken), leader.used()) == (2, 1)


async def test_a_replica_of_another_cluster_tells_nothing_to_a_leader_of_ours(leader: Replica) -> None:
    """Nor the other way round: whoever got the leader's address sees no booking."""
    async with a_replica("stranger", ANOTHERS) as stranger:
        assert not await stranger.to(leader).book(a_booking())
        assert stranger.counted("gpu_tiers_bookings_handed_over_total", "failed") == 1
        assert leader.counted("gpu_tiers_bookings_taken_total", "refused") == 0, "the connection was not made"


async def test_what_is_no_booking_of_ours_is_refused(leader: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"type": "Another"}'
    assert await status(leader, seal(OURS.key, "leader", now(), body), body) == 400
    assert await status(leader, "", body, path="/mutate") == 404
    assert await status(leader, "", body, method="PUT") == 404
    assert await status(leader, "", b"x" * (bookings_port.MOST_BYTES + 1)) == 413
    monkeypatch.setattr(bookings_port, "MOST_AT_ONCE", 0)
    assert await status(leader, "", body) == 503
    assert leader.taken == []


async def test_a_booking_that_is_too_long_for_it_is_not_handed_over(leader: Replica, replica: Replica) -> None:
    claims = {f"n/claim-{number}": Decimal(1) for number in range(5000)}
    long = Booking("u1", "n", ALPHA, (Charge(Decimal(5000), None, None, claims),))
    assert not await replica.to(leader).book(long)
    assert (leader.taken, replica.counted("gpu_tiers_bookings_handed_over_total", "failed")) == ([], 0)


async def test_it_goes_on_under_a_new_certificate(leader: Replica, replica: Replica) -> None:
    """Between two replicas of which one serves it already, each books for itself."""
    assert await replica.to(leader).book(a_booking("bert-0"))
    new = a_bundle()
    leader.certificate.replace(new)
    assert not await replica.to(leader).book(a_booking("bert-1"))
    replica.certificate.replace(new)
    assert await replica.to(leader).book(a_booking("bert-1"))


async def test_nobody_hands_over_who_leads_or_knows_no_leader(leader: Replica, replica: Replica) -> None:
    for leads in (Leads(True, "replica", replica.port.address), Leads(False), Leads(False, "old version")):
        assert not await replica.port.to(leads).book(a_booking())
    assert leader.taken == []
    assert replica.counted("gpu_tiers_bookings_handed_over_total", "failed") == 0


async def test_a_leader_that_is_gone_costs_no_time(replica: Replica) -> None:
    async with a_replica("gone") as gone:
        pass
    handing = replica.to(gone)
    assert not await handing.book(a_booking())
    await until(lambda: replica.counted("gpu_tiers_bookings_handed_over_total", "failed") == 1)
    assert not await handing.book(a_booking()), "and the next one does not even ask"
    assert replica.counted("gpu_tiers_bookings_handed_over_total", "failed") == 1
