"""The ledger in memory of one process: exact, because booking never yields between the look and the write.

A ResourceClaim that pods share counts once on each row on which one of them draws, from its first pod to its last. So
does the place of a preempted pod, which its replacement takes while the preempted one still ends. The ledger is rebuilt
from the pods that exist, so it is right after a restart. Two processes would each have their own, which is why the
chart runs one replica. Charges are kept by namespace: whose they are is asked when they are summed, so that a tenant
made or changed later counts the pods that are there.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal

from webhook.ledger.entries import Entry, Move
from webhook.ledger.places import Places
from webhook.ledger.protocol import Booked, Booking, GangBooking, Holding
from webhook.ledger.sums import Bucket, Sums
from webhook.policy.quota.charges import Shortfall, shortfall, whole_shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

RESERVATION_SECONDS = 60.0
"""How long a booking holds without its pod being seen. A validating webhook's yes is no create: ResourceQuota runs
after it, other webhooks beside it, and a generateName collision asks again under another uid."""

PATIENCE_SECONDS = 1.0
"""How long a replacement waits for news before it is refused: controllers make it before our watch has shown that the
pod which it replaces was preempted or has ended. A refused controller would try again after 10 s to minutes."""


class MemoryLedger:
    """Charges by holder. `clock` gives seconds; `tenant_name` tells whose a namespace is now."""

    def __init__(
        self,
        clock: Callable[[], float],
        tenant_name: Callable[[str], str | None],
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._clock = clock
        self._tenant_name = tenant_name
        self._patience = patience
        self._entries: dict[str, Entry] = {}
        self._lapsing: dict[str, float] = {}
        self._sums = Sums()
        self._places = Places()
        self._listeners: list[Callable[[], None]] = []
        self._news = asyncio.Event()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change. It must be quick."""
        self._listeners.append(listener)

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows, reservations included, `without` those of some ResourceClaims."""
        self._drop_lapsed()
        return self._sums.on_rows(tenant, self._theirs(tenant), without)

    def usage_in(self, tenant: Tenant, namespaces: Collection[str]) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows if these namespaces were the tenant's."""
        self._drop_lapsed()
        return self._sums.on_rows(tenant, lambda bucket: bucket.namespace in namespaces)

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """GPUs on each row that pods hold which were seen to exist."""
        self._drop_lapsed()
        theirs = self._theirs(tenant)
        return self._sums.on_rows(tenant, lambda bucket: bucket.seen and theirs(bucket))

    async def gang_tier(self, tenant: Tenant, uid: str) -> str | None:  # noqa: ARG002
        """None: its pods are booked one by one."""
        return None

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none. A holder that is booked already keeps its booking. A dry run only looks.

        What may be the replacement of a pod waits for news of that pod before it is refused.
        """
        if isinstance(booking, GangBooking):
            return whole_shortfall(booking.charges, booking.tenant, self.usage(booking.tenant)) or Booked()
        if booking.moved_from is not None:
            return self.move(booking, dry_run=dry_run)
        answer = self._book(booking, dry_run=dry_run)
        if dry_run or isinstance(answer, Booked) or not self._places.may_replace(booking):
            return answer
        give_up = asyncio.get_running_loop().time() + self._patience
        while isinstance(answer, Shortfall) and await self._news_by(give_up):
            answer = self._book(booking, dry_run=False)
        return answer

    def move(self, booking: Booking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book a holder's new charge; see the protocol. A holder that is not known is charged when it is seen."""
        self._drop_lapsed()
        entry = self._entries.get(booking.holder)
        if entry is None:
            return Booked()
        before, until, moving = self.usage(booking.tenant), self._clock() + RESERVATION_SECONDS, entry
        for charge in booking.charges:
            moving = moving.moving(Move(charge, until))
        self._put(booking.holder, moving)
        short = self._overdrawn(booking, before)
        if short is not None or dry_run:
            self._put(booking.holder, entry)
            return short or Booked()
        self._changed()
        return Booked()

    def release(self, holder: str) -> None:
        """The holder is gone, or has succeeded or failed."""
        if self._take_out(holder):
            heir = self._places.release(holder)
            if heir is not None:
                self._put(heir, replace(self._entries[heir], place=self._places.of(heir)))
            self._changed()

    def observe(self, holder: str, holding: Holding) -> None:
        """A pod exists and holds GPUs; it is charged whether or not there was room."""
        self._places.observe(holder, holding)
        before, place = self._entries.get(holder), self._places.of(holder)
        moves = before.moves_but(holding.charge.flavor) if before else ()
        until = self._end_of(holding, before)
        self._put(holder, Entry(holding.namespace, (holding.charge,), until, seen=True, place=place, moves=moves))
        self._changed()

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        """These pods exist and no others. Bookings whose pods have not been seen yet stay until they lapse."""
        for holder in [each for each, entry in self._entries.items() if entry.seen and each not in holdings]:
            self.release(holder)
        for holder, holding in holdings.items():
            self.observe(holder, holding)

    def _end_of(self, holding: Holding, before: Entry | None) -> float | None:
        """By our own clock, from when its deletion was seen first."""
        if holding.ends_in is None:
            return None
        end = self._clock() + holding.ends_in
        return min(before.until, end) if before and before.seen and before.until is not None else end

    def _book(self, booking: Booking, *, dry_run: bool) -> Booked | Shortfall:
        self._drop_lapsed()
        if booking.holder in self._entries and not dry_run:
            return Booked()
        short = self._short(booking)
        victim = next((each for each in self._places.free_for(booking) if self._fits_at(each, booking)), "")
        if short is not None and not victim:
            return short
        if not dry_run:
            self._reserve(booking, victim)
        return Booked()

    def _short(self, booking: Booking) -> Shortfall | None:
        """What does not fit. A claim that it shares may be there already, and counts once."""
        shared = {claim for charge in booking.charges for claim in charge.shared}
        return shortfall(booking.charges, booking.tenant, self.usage(booking.tenant, shared))

    def _fits_at(self, place: str, booking: Booking) -> bool:
        """Whether it fits in that place: tried, because the place covers its own GPUs and not the claims it shares."""
        entry = Entry(booking.namespace, booking.charges, None, seen=False, place=place)
        before = self.usage(booking.tenant)
        self._add(booking.holder, entry, 1)
        short = self._overdrawn(booking, before)
        self._add(booking.holder, entry, -1)
        return short is None

    def _overdrawn(self, booking: Booking, before: Usage) -> Shortfall | None:
        """The first row that lies above its limit now, and did not lie so high before the booking."""
        after = self.usage(booking.tenant)
        for charge in booking.charges:
            for row in charge.rows(booking.tenant):
                if after[row] > max(row.hard, before[row]):
                    return Shortfall(charge, row, before)
        return None

    def _reserve(self, booking: Booking, victim: str) -> None:
        if victim:
            self._places.inherit(booking.holder, victim)
        until = self._clock() + RESERVATION_SECONDS
        self._put(booking.holder, Entry(booking.namespace, booking.charges, until, seen=False, place=victim))
        self._changed()

    def _put(self, holder: str, entry: Entry) -> None:
        self._take_out(holder)
        self._entries[holder] = entry
        self._add(holder, entry, 1)
        if entry.lapses is not None:
            self._lapsing[holder] = entry.lapses

    def _take_out(self, holder: str) -> bool:
        entry = self._entries.pop(holder, None)
        self._lapsing.pop(holder, None)
        if entry is not None:
            self._add(holder, entry, -1)
        return entry is not None

    def _add(self, holder: str, entry: Entry, times: int) -> None:
        place = entry.place or (holder if entry.moves else "")
        for charge in entry.charges:
            self._sums.add(charge, entry.namespace, seen=entry.seen, place=place, times=times)
        for move in entry.moves:
            self._sums.add(move.charge, entry.namespace, seen=False, place=place, times=times)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
        self._news.set()
        self._news = asyncio.Event()

    async def _news_by(self, give_up: float) -> bool:
        """Whether something changes until then."""
        if asyncio.get_running_loop().time() >= give_up:
            return False
        try:
            async with asyncio.timeout_at(give_up):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _theirs(self, tenant: Tenant) -> Callable[[Bucket], bool]:
        return lambda bucket: self._tenant_name(bucket.namespace) == tenant.name

    def _drop_lapsed(self) -> None:
        now = self._clock()
        for holder in [each for each, until in self._lapsing.items() if until <= now]:
            left = self._entries[holder].at(now)
            if left is None:
                self.release(holder)
            else:
                self._put(holder, left)
                self._changed()
