"""The ledger in memory of one process: exact, because booking never yields between the look and the write.

A ResourceClaim that pods share counts once on each row on which one of them draws, from its first pod to its last.
It is rebuilt from the pods that exist, so it is right after a restart. Two processes would each have their own, which
is why the chart runs one replica. Charges are kept by namespace: whose they are is asked when they are summed, so that
a tenant made or changed later counts the pods that are there.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge, Shortfall, shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

RESERVATION_SECONDS = 60.0
"""How long a booking holds without its pod being seen. A validating webhook's yes is no create: ResourceQuota runs
after it, other webhooks beside it, and a generateName collision asks again under another uid."""

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a holder has booked. `until`: the clock's time at which a reservation or a deletion lapses."""

    namespace: str
    charges: tuple[Charge, ...]
    until: float | None
    seen: bool


@dataclass(frozen=True, slots=True)
class Bucket:
    """What charges are summed by."""

    namespace: str
    tier: str | None
    flavor: str | None
    seen: bool


class MemoryLedger:
    """Charges by holder. `clock` gives seconds; `tenant_name` tells whose a namespace is now."""

    def __init__(self, clock: Callable[[], float], tenant_name: Callable[[str], str | None]) -> None:
        self._clock = clock
        self._tenant_name = tenant_name
        self._entries: dict[str, Entry] = {}
        self._lapsing: dict[str, float] = {}
        self._sums: defaultdict[Bucket, Decimal] = defaultdict(lambda: NOTHING)
        self._shared: defaultdict[str, Counter[tuple[Bucket, Decimal]]] = defaultdict(Counter)
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change. It must be quick."""
        self._listeners.append(listener)

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows, reservations included, `without` those of some ResourceClaims."""
        return self._sum(tenant, self._theirs(tenant), without)

    def usage_in(self, tenant: Tenant, namespaces: Collection[str]) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows if these namespaces were the tenant's."""
        return self._sum(tenant, lambda bucket: bucket.namespace in namespaces)

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """GPUs on each row that pods hold which were seen to exist."""
        theirs = self._theirs(tenant)
        return self._sum(tenant, lambda bucket: bucket.seen and theirs(bucket))

    async def book(self, booking: Booking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none. A holder that is booked already keeps its booking. A dry run only looks."""
        self._drop_lapsed()
        if booking.holder in self._entries and not dry_run:
            return Booked()
        shared = {claim for charge in booking.charges for claim in charge.shared}
        short = shortfall(booking.charges, booking.tenant, self.usage(booking.tenant, shared))
        if short is not None:
            return short
        if not dry_run:
            until = self._clock() + RESERVATION_SECONDS
            self._put(booking.holder, Entry(booking.namespace, booking.charges, until, seen=False))
        return Booked()

    def release(self, holder: str) -> None:
        """The holder is gone, or has succeeded or failed."""
        entry = self._entries.pop(holder, None)
        self._lapsing.pop(holder, None)
        if entry is not None:
            self._add(entry, -1)
            self._changed()

    def observe(self, holder: str, holding: Holding) -> None:
        """A pod exists and holds GPUs; it is charged whether or not there was room."""
        self.release(holder)
        self._put(holder, Entry(holding.namespace, (holding.charge,), holding.until, seen=True))

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        """These pods exist and no others. Bookings whose pods have not been seen yet stay until they lapse."""
        for holder in [each for each, entry in self._entries.items() if entry.seen and each not in holdings]:
            self.release(holder)
        for holder, holding in holdings.items():
            self.observe(holder, holding)

    def _put(self, holder: str, entry: Entry) -> None:
        self._entries[holder] = entry
        self._add(entry, 1)
        if entry.until is not None:
            self._lapsing[holder] = entry.until
        self._changed()

    def _add(self, entry: Entry, times: int) -> None:
        for charge in entry.charges:
            bucket = Bucket(entry.namespace, charge.tier, charge.flavor, entry.seen)
            self._sums[bucket] += times * (charge.gpus - sum(charge.shared.values(), NOTHING))
            if not self._sums[bucket]:
                del self._sums[bucket]
            for claim, gpus in charge.shared.items():
                self._share(claim, (bucket, gpus), times)

    def _share(self, claim: str, holding: tuple[Bucket, Decimal], times: int) -> None:
        holdings = self._shared[claim]
        holdings[holding] += times
        if not holdings[holding]:
            del holdings[holding]
        if not holdings:
            del self._shared[claim]

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()

    def _theirs(self, tenant: Tenant) -> Callable[[Bucket], bool]:
        return lambda bucket: self._tenant_name(bucket.namespace) == tenant.name

    def _sum(
        self, tenant: Tenant, counts: Callable[[Bucket], bool], without: Collection[str] = ()
    ) -> dict[QuotaRow, Decimal]:
        self._drop_lapsed()
        sums = dict.fromkeys(tenant.rows, NOTHING)
        for bucket, gpus in self._sums.items():
            for row in tenant.rows if counts(bucket) else ():
                sums[row] += gpus if row.counts(bucket.tier, bucket.flavor) else NOTHING
        for claim in self._shared.keys() - without:
            held = [(bucket, gpus) for bucket, gpus in self._shared[claim] if counts(bucket)]
            for row in tenant.rows if held else ():
                sums[row] += max((gpus for by, gpus in held if row.counts(by.tier, by.flavor)), default=NOTHING)
        return sums

    def _drop_lapsed(self) -> None:
        now = self._clock()
        for holder in [each for each, until in self._lapsing.items() if until <= now]:
            self.release(holder)
