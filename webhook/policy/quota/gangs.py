"""A gang: a workload whose pods are of use only together. It is charged as a whole, for as long as it is unfinished."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from webhook.objects.phrase import Phrase
from webhook.objects.quantities import written
from webhook.objects.refusal import first_of
from webhook.policy.quota.charges import Charge

MOST_NAMED = 5
"""Gangs that a message names before it counts the others."""


@dataclass(frozen=True, slots=True)
class Like:
    """So many like pods of a gang, the GPUs of each, and what they are charged together."""

    count: int
    gpus: Decimal
    charge: Charge


@dataclass(frozen=True, slots=True)
class GangDemand:
    """The pods that a gang can't do without, template by template."""

    parts: tuple[Like, ...]

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges that are booked for it: one for each tier and flavor, and each that shares a claim by itself."""
        alone = [each.charge for each in self.parts if not each.charge.shared]
        sums: dict[tuple[str | None, str | None], Decimal] = {}
        for each in alone:
            sums[each.tier, each.flavor] = sums.get((each.tier, each.flavor), Decimal(0)) + each.gpus
        summed = (Charge(gpus, tier, flavor) for (tier, flavor), gpus in sums.items())
        return (*summed, *(each.charge for each in self.parts if each.charge.shared))

    def fewer(self, free: Decimal) -> Phrase | str:
        """How many of its pods would have room, where they are all alike and some would."""
        each = self.parts[0]
        fit = int(free // each.gpus) if len(self.parts) == 1 and each.gpus else 0
        return Phrase("fewer-fit", count=fit) if 0 < fit < each.count else ""

    @property
    def shape(self) -> tuple[Phrase, ...]:
        """Pods times GPUs, as a person counts them: 2 x 8."""
        counted = Counter[Decimal]()
        for each in self.parts:
            counted[each.gpus] += each.count
        return tuple(Phrase("pods-of-gang", count=count, gpus=gpus) for gpus, count in counted.items())


@dataclass(frozen=True, slots=True)
class StrandedGang:
    """A gang whose pods hold some of the GPUs that it needs, and whose tenant has no room for the rest.

    `kind` is qualified: PyTorchJob.kubeflow.org.
    """

    uid: str
    kind: str
    namespace: str
    name: str
    holds: Decimal
    needs: Decimal

    def __str__(self) -> str:
        kind = self.kind.partition(".")[0]
        return f"{kind}/{self.name} in {self.namespace} holds {written(self.holds)} of {written(self.needs)} GPUs"


def stranded_sentence(gangs: Sequence[StrandedGang]) -> str:
    """The sentence about stranded gangs, some of them by name."""
    listed = first_of([*map(str, gangs)], MOST_NAMED)
    ends = (
        "it can't run. Raise the quota, or delete it."
        if len(gangs) == 1
        else "none can run. Raise the quota, or delete one."
    )
    return f"{listed}: the quota has no room for the rest, so {ends}"


def gang_of(parts: Sequence[Like]) -> GangDemand | None:
    """The gang of these pods; None for a pod that is alone, which is charged by itself."""
    return GangDemand(tuple(parts)) if sum(each.count for each in parts) > 1 else None
