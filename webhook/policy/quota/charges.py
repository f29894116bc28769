"""Charges: GPUs booked against a tenant's rows, whether they fit, and the gangs that are charged as a whole."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import structs

from webhook.objects.phrase import AdmissionWarning, Aside, Phrase
from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Refusal, first_of
from webhook.policy.quota.claimed import not_made
from webhook.policy.quota.demand import demand_held, shared_by
from webhook.policy.quota.flavors import flavor_of
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier, Tiers
from webhook.policy.workloads.workload import Devices


class Charge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A demand to book: GPUs of a tier (None: a kept class below every tier). An account stores it as it is.

    `flavor` is the one on which they are, where that is known; of a pod that may land on several, their names with "?".

    `shared` is the part of them that other pods may hold too: by ResourceClaim, which counts once on a row.
    """

    gpus: Decimal
    tier: str | None = None
    flavor: str | None = None
    shared: Mapping[str, Decimal] = msgspec.field(default_factory=dict)

    @property
    def own(self) -> Decimal:
        """The GPUs that nobody else holds too."""
        return self.gpus - sum(self.shared.values(), Decimal(0))

    def rows(self, tenant: Tenant) -> list[QuotaRow]:
        """The tenant's rows it draws on, the narrowest first: that one tells most in a refusal."""
        drawn = (row for row in tenant.rows if row.counts(self.tier, self.flavor))
        return sorted(drawn, key=lambda row: (row.tier is None, row.flavor is None))


class Shortfall(msgspec.Struct, frozen=True):
    """The first row without room, all that would be drawn on it, and the usage that shows it.

    `reserved` is the part of the usage that is reserved for the queue.
    """

    charge: Charge
    row: QuotaRow
    usage: Usage
    reserved: Usage = msgspec.field(default_factory=dict)


class Fit(msgspec.Struct, frozen=True):
    """How something fits a quota: the refusal where it may not be, and warnings."""

    refusal: Refusal | None = None
    warnings: tuple[AdmissionWarning, ...] = ()
    refused: Decimal = Decimal(0)
    """GPUs that the refusal speaks of."""


def reserved_for_queue(gpus: Decimal) -> Aside:
    """What a sentence says after a row's usage of the part that is reserved for the queue."""
    return Aside("reserved-for-queue", gpus=gpus) if gpus else Aside("nothing-reserved")


def shortfall(charges: Iterable[Charge], tenant: Tenant, usage: Usage) -> Shortfall | None:
    """The first of the tenant's rows that the charges together would overdraw.

    `usage` leaves out the ResourceClaims that they share: a claim that is held already draws nothing more.
    """
    drawn: dict[QuotaRow, list[Charge]] = {}
    for charge in charges:
        for row in charge.rows(tenant) if charge.gpus > 0 else ():
            drawing = drawn.setdefault(row, [])
            drawing.append(charge)
            asked = together(drawing)
            if usage.get(row, Decimal(0)) + asked > row.hard:
                return Shortfall(structs.replace(charge, gpus=asked), row, usage)
    return None


def whole_shortfall(charges: Sequence[Charge], tenant: Tenant, usage: Usage) -> Shortfall | None:
    """The narrowest row that all charges together would overdraw, and all that they would draw on it."""
    for row in dict.fromkeys(row for charge in charges for row in charge.rows(tenant)):
        drawing = [each for each in charges if row.counts(each.tier, each.flavor)]
        asked = together(drawing)
        if usage.get(row, Decimal(0)) + asked > row.hard:
            return Shortfall(structs.replace(drawing[0], gpus=asked), row, usage)
    return None


def together(charges: Iterable[Charge]) -> Decimal:
    """The GPUs of all charges; a claim that several of them share counts once."""
    own, shared = Decimal(0), dict[str, Decimal]()
    for charge in charges:
        own += charge.gpus - sum(charge.shared.values(), Decimal(0))
        shared |= {claim: max(gpus, shared.get(claim, gpus)) for claim, gpus in charge.shared.items()}
    return own + sum(shared.values(), Decimal(0))


def own_gpus(charges: Iterable[Charge]) -> Decimal:
    """The GPUs of all charges that nobody else holds too."""
    return sum((each.own for each in charges), Decimal(0))


def never_fits(charge: Charge, tenant: Tenant) -> QuotaRow | None:
    """The row that could not hold the charge even if nothing else drew on it."""
    return next((row for row in charge.rows(tenant) if charge.gpus > row.hard), None)


def is_held(pod: Pod, tenant: Tenant | None, charge: Charge | None) -> bool:
    """Whether a pod that is made now has to wait for its turn behind our gate.

    One that names its node can't: the API server takes no gate with it.
    """
    if tenant is None or charge is None or pod.spec.node_name:
        return False
    return tenant.charges(charge.gpus) and tenant.holds_on(charge.tier, charge.flavor)


def alternatives(
    charge: Charge, tenant: Tenant, usage: Usage, tiers: Iterable[Tier], bounds: Mapping[str, Decimal] | None = None
) -> Iterator[tuple[Tier, Decimal | None]]:
    """Tiers in which the charge would fit, with what is left there, None for no limit; `bounds` are others, by tier."""
    for tier in tiers:
        if tier.name == charge.tier:
            continue
        lefts = (_free(tier.name, charge.flavor, tenant, usage), (bounds or {}).get(tier.name))
        left = min((each for each in lefts if each is not None), default=None)
        if left is None or left >= charge.gpus:
            yield tier, left


def _free(tier: str | None, flavor: str | None, tenant: Tenant, usage: Usage) -> Decimal | None:
    """GPUs left for a tier and flavor; None where no row bounds them."""
    rows = Charge(Decimal(0), tier, flavor).rows(tenant)
    return min((max(row.hard - usage.get(row, Decimal(0)), Decimal(0)) for row in rows), default=None)


def charge_of(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Charge | None:
    """The charge of a pod that exists; None where it holds no GPU. Its class says the tier: labels are mutable.

    A pod in deletion holds its GPUs until it has ended, but may be charged no more (`quotaReleaseStrategy`).
    """
    if pod.metadata.deletion_timestamp and policy.quota_release_strategy == "Terminating":
        return None
    own, more = not_made(pod, devices, policy)
    gpus = demand_held(pod, devices, policy) + own + sum(more.values(), Decimal(0))
    if not gpus:
        return None
    tier = tier_counted(pod.spec.priority_class_name, pod.spec.priority, policy.tiers)
    shared = {**shared_by(devices, policy)}
    for claim, kept in more.items():
        shared[claim] = shared.get(claim, Decimal(0)) + kept
    return Charge(gpus, tier, flavor_of(pod, policy), shared)


def tier_counted(class_name: str, priority: int | None, tiers: Tiers) -> str | None:
    """The tier in whose rows a pod counts: its class's, else the highest that its priority comes up to."""
    tier = tiers.of_class(class_name) or tiers.reached_by(priority or 0)
    return tier.name if tier else None


MOST_NAMED = 5
"""Gangs that a message names before it counts the others."""


class GangPart(msgspec.Struct, frozen=True):
    """So many like pods of a gang, the GPUs of each, and what they are charged together."""

    count: int
    gpus: Decimal
    charge: Charge


class GangDemand(msgspec.Struct, frozen=True):
    """The pods that a gang can't do without, template by template. It is charged as a whole until it has finished."""

    parts: tuple[GangPart, ...]

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


class StrandedGang(msgspec.Struct, frozen=True):
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


def stranded(gangs: Sequence[StrandedGang]) -> Phrase:
    """What is said of stranded gangs, some of them by name."""
    if len(gangs) == 1:
        return Phrase("stranded-gang", gang=str(gangs[0]))
    return Phrase("stranded-gangs", gangs=first_of([*map(str, gangs)], MOST_NAMED))


def gang_of(parts: Sequence[GangPart]) -> GangDemand | None:
    """The gang of these pods; None for a pod that is alone, which is charged by itself."""
    return GangDemand(tuple(parts)) if sum(each.count for each in parts) > 1 else None
