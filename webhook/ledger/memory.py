"""The ledger in memory of one process: exact, because booking never yields between the look and the write.

It is rebuilt from the pods that exist, so it is right after a restart; two processes would each have their own,
which is why the chart runs one replica. Charges are kept by namespace: whose they are is asked when they are summed,
so that a tenant made or changed later counts the pods that are there.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from webhook.ledger.entry import Entry
from webhook.policy.quota.charges import Charge, Shortfall, shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

RESERVATION_SECONDS = 60.0
"""How long a booking holds without its pod being seen. A validating webhook's yes is no create: ResourceQuota runs
after it, other webhooks beside it, and a generateName collision asks again under another uid."""

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Bucket:
    """What charges are summed by."""

    namespace: str
    tier: str | None
    flavor: str | None
    seen: bool


class MemoryLedger:
    """Charges by pod uid. `clock` gives seconds; `tenant_name` tells whose a namespace is now."""

    def __init__(self, clock: Callable[[], float], tenant_name: Callable[[str], str | None]) -> None:
        self._clock = clock
        self._tenant_name = tenant_name
        self._entries: dict[str, Entry] = {}
        self._lapsing: dict[str, float] = {}
        self._sums: defaultdict[Bucket, Decimal] = defaultdict(lambda: NOTHING)
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change. It must be quick."""
        self._listeners.append(listener)

    def usage(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows, reservations included."""
        return self._sum(tenant, seen_only=False)

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """GPUs on each row that pods hold which were seen to exist."""
        return self._sum(tenant, seen_only=True)

    async def book(self, tenant: Tenant, uid: str, namespace: str, charge: Charge) -> Shortfall | None:
        """Book a pod's charge, or say which row has no room. A uid that is booked already keeps its booking."""
        self._drop_lapsed()
        if uid in self._entries:
            return None
        short = shortfall(charge, tenant, self.usage(tenant))
        if short is None:
            self._put(uid, Entry(namespace, charge, self._clock() + RESERVATION_SECONDS))
        return short

    def saw(self, uid: str, entry: Entry) -> None:
        """A pod exists and holds GPUs; it is charged whether or not there was room."""
        self.ended(uid)
        self._put(uid, entry)

    def ended(self, uid: str) -> None:
        """A pod is gone, or has succeeded or failed."""
        entry = self._entries.pop(uid, None)
        self._lapsing.pop(uid, None)
        if entry is not None:
            self._take_off(_bucket(entry), entry.charge.gpus)
            self._changed()

    def replace(self, seen: Mapping[str, Entry]) -> None:
        """These pods exist and no others; reservations that have not lapsed stay."""
        for uid in [uid for uid, entry in self._entries.items() if entry.seen and uid not in seen]:
            self.ended(uid)
        for uid, entry in seen.items():
            self.saw(uid, entry)

    def _put(self, uid: str, entry: Entry) -> None:
        self._entries[uid] = entry
        self._sums[_bucket(entry)] += entry.charge.gpus
        if entry.until is not None:
            self._lapsing[uid] = entry.until
        self._changed()

    def _take_off(self, bucket: Bucket, gpus: Decimal) -> None:
        self._sums[bucket] -= gpus
        if not self._sums[bucket]:
            del self._sums[bucket]

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()

    def _sum(self, tenant: Tenant, *, seen_only: bool) -> dict[QuotaRow, Decimal]:
        self._drop_lapsed()
        sums = dict.fromkeys(tenant.rows, NOTHING)
        for bucket, gpus in self._sums.items():
            if gpus and (bucket.seen or not seen_only) and self._tenant_name(bucket.namespace) == tenant.name:
                for row in tenant.rows:
                    sums[row] += gpus if row.counts(bucket.tier, bucket.flavor) else NOTHING
        return sums

    def _drop_lapsed(self) -> None:
        now = self._clock()
        for uid in [uid for uid, until in self._lapsing.items() if until <= now]:
            self.ended(uid)


def _bucket(entry: Entry) -> Bucket:
    return Bucket(entry.namespace, entry.charge.tier, entry.charge.flavor, entry.seen)
