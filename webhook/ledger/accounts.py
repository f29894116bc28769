"""The ledger: tenants' accounts in a store, each with its writer.

Replicas share a store: the statuses of the TenantQuotas. docs/decisions/compare-and-swap.md gives the reasons, and
docs/decisions/books.md the rules.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from decimal import Decimal
from typing import Literal

from webhook.kube.errors import ApiError
from webhook.ledger.account import GangKey
from webhook.ledger.account_writer import AccountStore, AccountWriter
from webhook.ledger.draft import NotNow, open_tries
from webhook.ledger.protocol import PATIENCE_SECONDS, Booked, Booking, GangBooking, TryAgain, patience_of
from webhook.ledger.slot_sums import NOTHING, SlotSums, booked_of, free_for_queue, used_of
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

log = logging.getLogger(__name__)

TAKEN_SECONDS, LONGEST_TAKEN = 0.1, 0.4
"""Seconds in which the leader confirms that it has a booking. If nodes are too busy for that, the next wait is twice
as long, up to the second number, and shorter again when it answers. A write of our own would make them busier."""
ANSWERED_SECONDS = 2.0
"""Seconds after which we book ourselves: as long as one request to the API server may take; a review has 5 s."""
ALONE_SECONDS, LONGEST_ALONE = 0.25, 4.0
"""Seconds for which we book all ourselves after a failure; then one booking tries the leader again. The time doubles
with each failure, so that a leader that is only busy is soon asked again, and one that hangs delays few bookings."""

Outcome = Literal["booked", "declined", "failed"]
BookGang = Callable[[WorkingCopy, GangBooking], Booked | Shortfall | NotNow]
LeaderCall = Callable[[Booking | GangBooking], AbstractAsyncContextManager[Awaitable[bool]]]
"""Hands a booking to the leader. The context is entered when the leader has taken it; the result is whether it booked.

Raises ApiError if the leader can't be reached or does not take it.
"""


class HandOver:
    """Hands bookings of this replica to the leader, which writes all that wait for a tenant at once.

    `leader` returns the call to the current leader; None if there is none, or if it is this replica. It is a hint,
    because any replica books by the same rules (docs/decisions/hand-over.md). `is_led`: whether a leader is alive.
    """

    def __init__(
        self,
        leader: Callable[[], LeaderCall | None],
        report: Callable[[Outcome], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        is_led: Callable[[], bool] = lambda: True,
    ) -> None:
        self.is_led = is_led
        self._leader = leader
        self._report = report
        self._clock = clock
        self._alone_since, self._alone = 0.0, 0.0
        """When a hand-over failed, and for how many seconds we book by ourselves since then; 0 for none."""
        self._patience = TAKEN_SECONDS

    async def book(self, booking: Booking | GangBooking) -> bool:
        """Hand a booking to the leader. Return whether the leader booked it; if not, it may still do so later, once."""
        began, way = self._clock(), self._leader()
        if way is None or began < self._alone_since + self._alone:
            return False
        if self._alone:
            self._alone_since = began  # this one tries, and the others don't wait for its result
        try:
            async with asyncio.timeout(self._patience) as limit, way(booking) as answer:
                limit.reschedule(asyncio.get_running_loop().time() + ANSWERED_SECONDS)
                booked = await answer
        except (TimeoutError, ApiError) as problem:
            self._report("failed")
            if began >= self._alone_since:
                self._alone_since, self._alone = self._clock(), min(2 * self._alone or ALONE_SECONDS, LONGEST_ALONE)
                self._patience = min(2 * self._patience, LONGEST_TAKEN)
                reason = str(problem) or "the leader is slow"
                log.info("bookings not handed over", {"reason": reason, "seconds": self._alone})
            return False
        self._alone, self._patience = 0.0, max(0.99 * self._patience, TAKEN_SECONDS)
        self._report("booked" if booked else "declined")
        return booked


class Accounts:
    """The accounts as one process reads and books them: protocol.py's Ledger. Close it at the end.

    `patience`: the longest, in seconds, that a pod of a controller waits for room before it is refused. With
    `hand_over` the leader is asked first.
    """

    def __init__(
        self,
        store: AccountStore,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
        hand_over: HandOver | None = None,
    ) -> None:
        self._store = store
        self._hand_over = hand_over
        self._clock = clock
        self._patience = patience
        self._writers: dict[str, AccountWriter] = {}
        self._book_gang: BookGang = WorkingCopy.book
        store.subscribe(self._changed)

    def writer(self, tenant: str) -> AccountWriter:
        """Return the writer of a tenant's account, the same one for all of this process."""
        if tenant not in self._writers:
            self._writers[tenant] = AccountWriter(tenant, self._store, self._clock)
        return self._writers[tenant]

    @contextmanager
    def booking_gangs(self, book: BookGang) -> Iterator[None]:
        """Book gangs by this function while we lead, because it knows which of their pods count alone so far."""
        self._book_gang = book
        try:
            yield
        finally:
            self._book_gang = WorkingCopy.book

    async def close(self) -> None:
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))

    @property
    def is_current(self) -> bool:
        return self._hand_over is None or self._hand_over.is_led()

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        found = self._store.newest(tenant.name)
        if not found or not found.sealed:
            return {}
        books = SlotSums(found.account.entries, tenant)
        reserved = free_for_queue(books.booked, found.account.entries, tenant)
        return {row: gpus + reserved[row] for row, gpus in books.without(without).items()}

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        found = self._store.newest(tenant.name)
        return used_of(found.account, tenant) if found and found.sealed else {}

    def reserved_for_queue(self, tenant: Tenant, rank: int = 0, own: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        found = self._store.newest(tenant.name)
        if not found or not found.sealed:
            return {}
        entries = found.account.entries
        if not any(each.state == "ForQueue" for each in entries):  # the usual case needs no sums
            return dict.fromkeys(tenant.bounds, NOTHING)
        others = (each for each in entries if each.uid not in own)
        return free_for_queue(booked_of(found.account, tenant), others, tenant, rank)

    def unseen(self, tenant: Tenant, namespace: str, controller: str) -> tuple[str, ...]:
        found = self._store.newest(tenant.name)
        here = (each for each in (found.account.entries if found else ()) if each.namespace == namespace)
        return tuple(open_tries(each for each in here if controller in (each.maker, each.of) and each.is_pod).values())

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """Return the tier of a demoted gang from the newest known version, because the gang stays at that tier.

        Otherwise read the stored version, because another replica may have demoted the gang a moment ago.
        """
        key = namespace, uid
        known = _tier_of(key, self._store.newest(tenant.name))
        return known or await self.writer(tenant.name).change(lambda copy: _tier_of(key, copy.version), dry=True)

    async def has_room(self, booking: Booking) -> bool:
        writer, patience = self.writer(booking.tenant.name), min(patience_of(booking), self._patience)
        answer = await writer.change(lambda copy: copy.book(booking), patience=patience, dry=True)
        return isinstance(answer, Booked)

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book by compare-and-swap. Raises TryAgain if the account can't be read or written in time.

        A dry run does not wait. Without an answer it is admitted, because nothing is created.
        """
        writer, patience = self.writer(booking.tenant.name), min(patience_of(booking), self._patience)
        if dry_run:
            return await writer.change(lambda copy: _assumed_booked(self._booked(copy, booking)), dry=True)
        if self._hand_over is not None and await self._hand_over.book(booking):
            return Booked()
        return await writer.change(lambda copy: self._booked(copy, booking), patience=patience)

    async def take(self, booking: Booking | GangBooking) -> bool:
        """Book for another replica if there is room now. If not, that replica decides whether to wait or to refuse."""
        try:
            writer = self.writer(booking.tenant.name)
            return await writer.change(lambda copy: isinstance(self._booked(copy, booking), Booked))
        except TryAgain:
            return False

    def _booked(self, copy: WorkingCopy, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        return self._book_gang(copy, booking) if isinstance(booking, GangBooking) else copy.book(booking)

    def _changed(self, tenant: str) -> None:
        if tenant in self._writers:
            self._writers[tenant].wake()


def _tier_of(key: GangKey, version: Version | None) -> str | None:
    entries = version.account.gangs.get(key) if version else None
    return entries[0].tier if entries else None


def _assumed_booked(answer: Booked | Shortfall | NotNow) -> Booked | Shortfall:
    return Booked() if isinstance(answer, NotNow) else answer
