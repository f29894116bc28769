"""The GPUs of pods that exist, by tier and flavor: a sum for each namespace, and for each gang.

What pods share by a ResourceClaim is not in there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal

from webhook.ledger.account import Drawn, GangKey
from webhook.ledger.protocol import Holding

Bucket = tuple[str | None, str | None]
Sums = defaultdict[Bucket, Decimal]


class HoldingSums:
    """Kept as pods come and go, so that nobody has to go through all of them."""

    def __init__(self) -> None:
        self._by_namespace: defaultdict[str, Sums] = defaultdict(lambda: defaultdict(Decimal))
        self._by_gang: defaultdict[GangKey, Sums] = defaultdict(lambda: defaultdict(Decimal))

    def namespaces(self) -> Collection[str]:
        """Where pods are or were."""
        return self._by_namespace.keys()

    def add(self, holding: Holding) -> None:
        """A pod holds this."""
        self._count(holding, 1)

    def take_out(self, holding: Holding) -> None:
        """It holds it no longer."""
        self._count(holding, -1)

    def of_namespaces(
        self, namespaces: Iterable[str], but: Iterable[Holding], apart: Collection[GangKey]
    ) -> tuple[Drawn, ...]:
        """What the pods of these namespaces hold, `but` some and those of gangs that stand `apart`."""
        sums: Sums = defaultdict(Decimal)
        for namespace in namespaces:
            _add(sums, self._by_namespace.get(namespace, {}))
        for gang in apart:
            _add(sums, self._by_gang.get(gang, {}), -1)
        return _drawn(sums, (each for each in but if each.draws_on not in apart))

    def of_gang(self, gang: GangKey, but: Iterable[Holding]) -> tuple[Drawn, ...]:
        """What a gang's pods hold, `but` some."""
        sums: Sums = defaultdict(Decimal, self._by_gang.get(gang, {}))
        return _drawn(sums, (each for each in but if each.draws_on == gang))

    def _count(self, holding: Holding, times: int) -> None:
        bucket, own = _bucket(holding), times * _own(holding)
        self._by_namespace[holding.namespace][bucket] += own
        mates = self._by_gang[holding.draws_on]
        mates[bucket] += own
        if not any(mates.values()):
            del self._by_gang[holding.draws_on]


def _add(sums: Sums, others: Mapping[Bucket, Decimal], times: int = 1) -> None:
    for bucket, gpus in others.items():
        sums[bucket] += times * gpus


def _drawn(sums: Sums, without: Iterable[Holding]) -> tuple[Drawn, ...]:
    for each in without:
        sums[_bucket(each)] -= _own(each)
    ordered = sorted(sums.items(), key=str)
    return tuple(Drawn(gpus=gpus, tier=tier, flavor=flavor) for (tier, flavor), gpus in ordered if gpus)


def _bucket(holding: Holding) -> Bucket:
    return holding.charge.tier, holding.charge.flavor


def _own(holding: Holding) -> Decimal:
    return holding.charge.gpus - sum(holding.charge.shared.values(), Decimal(0))
