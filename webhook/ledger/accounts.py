"""The ledger: tenants' accounts in a store, each with its writer.

For any number of replicas that store is the statuses of the TenantQuotas. Why compare-and-swap, and what the rules are:
docs/decisions/compare-and-swap.md and docs/decisions/books.md.
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
from webhook.ledger.books import NOTHING, SlotSums, free_for_queue, usage_of, used_of
from webhook.ledger.draft import NotNow, open_tries
from webhook.ledger.protocol import PATIENCE_SECONDS, Booked, Booking, GangBooking, TryAgain, patience_of
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

log = logging.getLogger(__name__)

TAKEN_SECONDS, LONGEST_TAKEN = 0.1, 0.4
"""The leader says within this that it has a booking. Where nodes are so busy that it can't, we wait twice as long the
next time, up to the second, and less again as it answers: to write beside it would make them busier."""
ANSWERED_SECONDS = 2.0
"""It has booked within this, or we do: so long one request to the API server may take, and a review has 5 s in all."""
ALONE_SECONDS, LONGEST_ALONE = 0.25, 4.0
"""After one that failed we book all ourselves for so long, and then try with one; twice as long each time, for a leader
that is only busy is soon asked again, and one that stands still delays a booking now and then."""

Outcome = Literal["booked", "declined", "failed"]
BookGang = Callable[[WorkingCopy, GangBooking], Booked | Shortfall | NotNow]
Way = Callable[[Booking | GangBooking], AbstractAsyncContextManager[Awaitable[bool]]]
"""Hands a booking to one leader: entered once that has taken it. The result says whether it is booked.

Raises ApiError where the leader can't be reached, or does not take it.
"""


class HandOver:
    """Hands one replica's bookings to the one that leads, whose writer puts all that wait for a tenant into one write.

    `leader`: the way to whoever leads now; None where nobody does, or we do ourselves. It is a hint: whoever has a
    booking books it by the same rules (docs/decisions/hand-over.md). `is_led`: whether a leader is alive.
    """

    def __init__(
        self,
        leader: Callable[[], Way | None],
        told: Callable[[Outcome], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        is_led: Callable[[], bool] = lambda: True,
    ) -> None:
        self.is_led = is_led
        self._leader = leader
        self._told = told
        self._clock = clock
        self._alone_since, self._alone = 0.0, 0.0
        """When one failed that was not under way with others, and for how long we book by ourselves then: 0 for not."""
        self._patience = TAKEN_SECONDS

    async def booked(self, booking: Booking | GangBooking) -> bool:
        """Whether the leader has booked it. Where not, for whatever reason, it may do so yet, once."""
        began, way = self._clock(), self._leader()
        if way is None or began < self._alone_since + self._alone:
            return False
        if self._alone:
            self._alone_since = began  # this one tries, and the others don't wait for what comes of it
        try:
            async with asyncio.timeout(self._patience) as limit, way(booking) as answer:
                limit.reschedule(asyncio.get_running_loop().time() + ANSWERED_SECONDS)
                booked = await answer
        except (TimeoutError, ApiError) as problem:
            self._fail(began, str(problem) or "the leader is slow")
            return False
        self._alone, self._patience = 0.0, max(0.99 * self._patience, TAKEN_SECONDS)
        self._told("booked" if booked else "declined")
        return booked

    def _fail(self, began: float, reason: str) -> None:
        self._told("failed")
        if began >= self._alone_since:
            self._alone_since, self._alone = self._clock(), min(2 * self._alone or ALONE_SECONDS, LONGEST_ALONE)
            self._patience = min(2 * self._patience, LONGEST_TAKEN)
            log.info("bookings not handed over", {"reason": reason, "seconds": self._alone})


class Accounts:
    """One process's way to the accounts. Close it at the end.

    `patience`: seconds that a pod which a controller makes waits for news at most before it is refused. With
    `hand_over` the leader is asked first to book.
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
        """The writer of a tenant's account; one for all of this process."""
        if tenant not in self._writers:
            self._writers[tenant] = AccountWriter(tenant, self._store, self._clock)
        return self._writers[tenant]

    @contextmanager
    def booking_gangs(self, book: BookGang) -> Iterator[None]:
        """Book gangs by this function while we lead: it knows which of their pods have counted alone so far."""
        self._book_gang = book
        try:
            yield
        finally:
            self._book_gang = WorkingCopy.book

    async def close(self) -> None:
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))

    @property
    def is_current(self) -> bool:
        """Whether a leader counts pods that end."""
        return self._hand_over is None or self._hand_over.is_led()

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        """As the newest version says that this process knows; nothing where there is no account yet."""
        found = self._store.newest(tenant.name)
        if not found or not found.sealed:
            return {}
        books = SlotSums(found.account.entries, tenant)
        reserved = free_for_queue(books.usage, found.account.entries, tenant)
        return {row: gpus + reserved[row] for row, gpus in books.without(without).items()}

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """Without reservations."""
        found = self._store.newest(tenant.name)
        return used_of(found.account, tenant) if found and found.sealed else {}

    def reserved_for_queue(self, tenant: Tenant, rank: int = 0) -> dict[QuotaRow, Decimal]:
        """As the newest version says that this process knows."""
        found = self._store.newest(tenant.name)
        if not found or not found.sealed:
            return {}
        entries = found.account.entries
        if not any(each.state == "ForQueue" for each in entries):  # mostly, and then nothing is added up
            return dict.fromkeys(tenant.rows, NOTHING)
        return free_for_queue(usage_of(found.account, tenant), entries, tenant, rank)

    def unseen(self, tenant: Tenant, namespace: str, controller: str) -> tuple[str, ...]:
        """As the newest version says that this process knows."""
        found = self._store.newest(tenant.name)
        here = (each for each in (found.account.entries if found else ()) if each.namespace == namespace)
        return tuple(open_tries(each for each in here if controller in (each.maker, each.of) and each.is_pod).values())

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """As the newest version says if it was demoted, for it stays at that tier; else as it is stored now.

        Another replica may have demoted it a moment ago, for a change for which its next pods are made.
        """
        key = namespace, uid
        known = _tier_of(key, self._store.newest(tenant.name))
        return known or await self.writer(tenant.name).change(lambda copy: _tier_of(key, copy.version), dry=True)

    async def has_room(self, booking: Booking) -> bool:
        """Whether a booking would hold, slots that it may take included. Raises TryAgain."""
        writer, patience = self.writer(booking.tenant.name), min(patience_of(booking), self._patience)
        answer = await writer.change(lambda copy: copy.book(booking), patience=patience, dry=True)
        return isinstance(answer, Booked)

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book by compare-and-swap. Raises TryAgain where the account can't be read or written in time.

        A dry run does not wait: what can't be told is let in, for nothing rests on it.
        """
        writer, patience = self.writer(booking.tenant.name), min(patience_of(booking), self._patience)
        if dry_run:
            return await writer.change(lambda copy: _told(self._booked(copy, booking)), dry=True)
        if self._hand_over is not None and await self._hand_over.booked(booking):
            return Booked()
        return await writer.change(lambda copy: self._booked(copy, booking), patience=patience)

    async def take(self, booking: Booking | GangBooking) -> bool:
        """Book for another replica if there is room now. Only it says no, and waits for news if that is worth it."""
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


def _told(answer: Booked | Shortfall | NotNow) -> Booked | Shortfall:
    return Booked() if isinstance(answer, NotNow) else answer
