"""GPUs held, summed as quota rows ask for them. What several pods share counts once on each row."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal

from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Bucket:
    """What charges are summed by."""

    namespace: str
    tier: str | None
    flavor: str | None
    seen: bool


class Sums:
    """Charges by bucket. Those that share something, a ResourceClaim or a place, are kept apart by its name."""

    def __init__(self) -> None:
        self._alone: defaultdict[Bucket, Decimal] = defaultdict(lambda: NOTHING)
        self._shared: defaultdict[str, Counter[tuple[Bucket, Decimal]]] = defaultdict(Counter)

    def add(self, charge: Charge, namespace: str, *, seen: bool, place: str, times: int) -> None:
        """Add a charge once, or take it away with `times` -1. Charges of one `place` hold the largest of them."""
        bucket = Bucket(namespace, charge.tier, charge.flavor, seen)
        own = charge.gpus - sum(charge.shared.values(), NOTHING)
        if place:
            self._share(place, (bucket, own), times)
        else:
            self._sum(bucket, own, times)
        for claim, gpus in charge.shared.items():
            self._share(claim, (bucket, gpus), times)

    def on_rows(
        self, tenant: Tenant, counts: Callable[[Bucket], bool], without: Collection[str] = ()
    ) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows in the buckets that count, `without` some claims and places."""
        sums = dict.fromkeys(tenant.rows, NOTHING)
        for bucket, gpus in self._alone.items():
            for row in tenant.rows if counts(bucket) else ():
                sums[row] += gpus if row.counts(bucket.tier, bucket.flavor) else NOTHING
        for name in self._shared.keys() - without:
            held = [(bucket, gpus) for bucket, gpus in self._shared[name] if counts(bucket)]
            for row in tenant.rows if held else ():
                sums[row] += max((gpus for by, gpus in held if row.counts(by.tier, by.flavor)), default=NOTHING)
        return sums

    def _sum(self, bucket: Bucket, gpus: Decimal, times: int) -> None:
        self._alone[bucket] += times * gpus
        if not self._alone[bucket]:
            del self._alone[bucket]

    def _share(self, name: str, holding: tuple[Bucket, Decimal], times: int) -> None:
        holdings = self._shared[name]
        holdings[holding] += times
        if not holdings[holding]:
            del holdings[holding]
        if not holdings:
            del self._shared[name]
