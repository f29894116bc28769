"""Charges: GPUs booked against a tenant's rows, their flavor, whether they fit, and the lower tiers for demotion.

A gang is charged as a whole.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain

import msgspec
from msgspec import structs

from webhook.objects.pods import NodeRequirement, Pod, line_holds
from webhook.objects.quantities import written
from webhook.objects.refusal import AdmissionWarning, Aside, Phrase, Refusal, first_of
from webhook.policy.quota.demand import not_made, shared_by, used_gpus
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage, maybe, row_name
from webhook.policy.values.tier_policy import Flavor, TierPolicy
from webhook.policy.values.tiers import Tier, Tiers
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Devices


def flavor_of(pod: Pod, policy: TierPolicy) -> str | None:
    """Return the flavor that a pod names, or with `flavorUnnamed: Worst` all flavors on whose nodes it may run.

    With `Worst`, flavors that the policy lists before the named one count as well if their nodes may take the pod.
    A pod behind somebody else's scheduling gate runs nowhere, and the gate's removal is reviewed. A pod behind ours
    alone counts as it will later, because the leader has to book all that it may take once the gate is open. None
    if no flavor is known.
    """
    if policy.flavor_unnamed == "WhenBound" or pod.waits_for_others:
        return named_flavor(pod, policy.flavors)
    open_to: list[str] = []
    for flavor in policy.flavors:
        if _names(pod, flavor):
            return maybe((*open_to, flavor.name)) if open_to else flavor.name  # the first of several in the list counts
        if not any(_shuts_out(pod, key, value) for key, value in flavor.node_labels.items()):
            open_to.append(flavor.name)
    return maybe(open_to) if open_to else None


def named_flavor(pod: Pod, flavors: Iterable[Flavor]) -> str | None:
    """Return the flavor that a pod is bound to by its node selector or by every term of its required node affinity."""
    return next((flavor.name for flavor in flavors if _names(pod, flavor)), None)


def flavor_on(labels: Mapping[str, str], flavors: Iterable[Flavor]) -> str | None:
    return next((flavor.name for flavor in flavors if flavor.node_labels.items() <= labels.items()), None)


def _names(pod: Pod, flavor: Flavor) -> bool:
    """Tell whether the node selector, or each term of the required affinity, names all of a flavor's labels."""
    selector, terms = pod.spec.node_selector, pod.spec.node_terms
    for key, value in flavor.node_labels.items():
        if selector.get(key) == value:
            continue
        line = NodeRequirement(key=key, operator="In", values=(value,))
        if not terms or any(line not in each.match_expressions for each in terms):
            return False
    return True


def _shuts_out(pod: Pod, key: str, value: str) -> bool:
    """Tell whether no node with this label may take the pod, whatever other labels it has."""
    if pod.spec.node_selector.get(key, value) != value:
        return True
    terms = pod.spec.node_terms
    return bool(terms) and all(any(_denies(each, key, value) for each in term.match_expressions) for term in terms)


def _denies(line: NodeRequirement, key: str, value: str) -> bool:
    # A label with any value exists, and numbers are not compared.
    known = ("In", "NotIn", "DoesNotExist")
    return line.key == key and line.operator in known and not line_holds(key, line.operator, line.values, {key: value})


def lent_tiers(chosen: Tier, workload_type: WorkloadType | None, tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """Return the lower tiers to which a tenant's workloads of a type may be demoted, in the order of choice.

    1. The tiers of `demoteTo`: the tenant's, or else the policy's.
    2. If neither names any, all lower tiers, the highest first, except those that `workloadTypes` gives only to other
       types. Training then does not take the GPUs of notebooks. The tiers of batch are for all, because nobody waits
       for what runs there.
    """
    below = [tier for tier in policy.tiers if tier.value < chosen.value and tenant.may_use(tier, policy.tiers)]
    listed = tenant.demote_to or policy.demote_to
    if listed:
        return sorted((tier for tier in below if tier.name in listed), key=lambda tier: listed.index(tier.name))
    own = {name for each, name in policy.tier_of_type.items() if each in (WorkloadType.BATCH, workload_type)}
    others = set(policy.tier_of_type.values()) - own
    return [tier for tier in below if tier.name not in others]


def lent_from(chosen: Tier, tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """Return the tiers to which workloads of a tier may be demoted, whatever their type, in the order of choice."""
    types = [*(each for each, name in policy.tier_of_type.items() if name == chosen.name), None]
    return list(dict.fromkeys(tier for each in types for tier in lent_tiers(chosen, each, tenant, policy)))


class Charge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A demand to book: GPUs of a tier, None for a class below every tier. An account stores it as it is.

    `flavor` is the flavor of the GPUs, if known. For a pod that may run on several, it has their names with "?".

    `shared` is the part that other pods may use too, by ResourceClaim. A claim counts once on a row.
    """

    gpus: Decimal
    tier: str | None = None
    flavor: str | None = None
    shared: Mapping[str, Decimal] = msgspec.field(default_factory=dict)

    @property
    def own(self) -> Decimal:
        """Return the GPUs that are not shared with other pods."""
        return self.gpus - sum(self.shared.values(), Decimal(0))

    def rows(self, tenant: Tenant) -> list[QuotaRow]:
        """Return the tenant's rows that it uses, the most useful in a refusal first.

        First come used up budgets: those that refuse, and among equals the last to have new hours. Then come the rows
        of GPUs, the narrowest first.
        """
        drawn = [row for row in tenant.bounds if row.counts(self.tier, self.flavor)]
        spent = sorted((row for row in drawn if row.spent), key=lambda row: row.on_exceed != "Deny")
        of_gpus = (row for row in drawn if not row.spent)
        return [*spent, *sorted(of_gpus, key=lambda row: (row.tier is None, row.flavor is None))]


class Shortfall(msgspec.Struct, frozen=True):
    """The first row without room, the whole charge on it, and the usage of all rows by all other pods.

    `reserved` is the part of the usage that is reserved for the queue. The reservation counts only against some tiers,
    so `in_tier` is the usage that counts for a charge in each tier; empty if nothing is reserved.
    """

    charge: Charge
    row: QuotaRow
    usage: Usage
    reserved: Usage = msgspec.field(default_factory=dict)
    in_tier: Mapping[str, Usage] = msgspec.field(default_factory=dict)

    def alternatives(
        self, tenant: Tenant, tiers: Iterable[Tier], bounds: Mapping[str, Decimal] | None = None
    ) -> dict[Tier, Decimal | None]:
        """Return the tiers in which the charge would fit, with the GPUs left, as the function `alternatives` does."""
        usages = ((tier, self.in_tier.get(tier.name, self.usage)) for tier in tiers)
        found = (alternatives(self.charge, tenant, usage, [tier], bounds) for tier, usage in usages)
        return dict(chain.from_iterable(found))


class QuotaVerdict(msgspec.Struct, frozen=True):
    """The fit of something in a quota: the refusal if it is refused, and warnings.

    `refused` are the GPUs that the refusal is about. `queued`: some of its pods wait for room in the tenant's queue.
    """

    refusal: Refusal | None = None
    warnings: tuple[AdmissionWarning, ...] = ()
    refused: Decimal = Decimal(0)
    queued: bool = False


def reserved_for_queue(gpus: Decimal) -> Aside:
    """Return the words for the GPUs of a row that are reserved for the queue, to follow a usage without them."""
    return Aside("reserved-for-queue", gpus=gpus) if gpus else Aside("nothing-reserved")


def what_renews(when: str, per: str) -> Phrase | str:
    """Return the words for `when` a budget's period ends; "" without an end.

    A budget with `per`, such as Day, has new hours then. A budget without it ends.
    """
    if not when:
        return ""
    return Phrase("new-hours", when=when) if per else Phrase("budget-ends", when=when)


def row_usage(row: QuotaRow, usage: Usage, reserved: Usage) -> Phrase:
    """Return the words for the usage of a row, in parts that add up, or for the hours of a used up budget.

    `reserved` is the part of the usage that is reserved for the queue.
    """
    if row.spent:
        of = row_name(row.tier, row.flavor)
        renews = what_renews(row.spent.renews, row.spent.per)
        of, used, hours = f" of {of}" if of else "", row.spent.used, row.spent.gpu_hours
        return Phrase("hours-used-up", used=used, hours=hours, of=of, renews=renews)
    for_queue = reserved.get(row, Decimal(0))
    used, words = usage.get(row, Decimal(0)) - for_queue, reserved_for_queue(for_queue)
    return Phrase("row-usage", row=row.subject, used=used, hard=row.hard, reserved=words)


def lacking(tenant: Tenant, tier: str, flavor: str | None, row: QuotaRow | None = None) -> Phrase:
    """Return what a tenant lacks in a tier from which a workload is demoted: room, or GPU-hours.

    Without the full `row`, the workload was demoted earlier. A used up budget is then the likely reason. If a budget
    that demotes has hours again, the reason is unknown.
    """
    demoting = (each for each in tenant.spent if each.on_exceed == "Demote" and each.counts(tier, flavor))
    row = row or next(demoting, None)
    if row is not None and row.spent:
        return Phrase("lacks-hours", tenant=tenant.name, hours=row_usage(row, {}, {}))
    budgets = (each for each in tenant.budgets if each.on_exhausted == "Demote" and each.row.counts(tier, flavor))
    if row is None and any(budgets):
        return Phrase("lacked-either", tenant=tenant.name, tier=tier)
    return Phrase("lacks-room", tenant=tenant.name, tier=tier)


def shortfall(charges: Sequence[Charge], tenant: Tenant, usage: Usage) -> Shortfall | None:
    """Return the shortfall on the first of the tenant's rows that the sum of all charges would overdraw.

    `Charge.rows` gives the order. None if every row has room. `usage` leaves out the ResourceClaims that the charges
    share, because a claim that is in use already adds nothing.
    """
    for row in dict.fromkeys(row for charge in charges for row in charge.rows(tenant)):
        drawing = [each for each in charges if row.counts(each.tier, each.flavor)]
        asked = together(drawing)
        if asked > 0 and usage.get(row, Decimal(0)) + asked > row.hard:
            return Shortfall(structs.replace(drawing[0], gpus=asked), row, usage)
    return None


def together(charges: Iterable[Charge]) -> Decimal:
    """Return the GPUs of all charges; a claim that several of them share counts once."""
    own, shared = Decimal(0), dict[str, Decimal]()
    for charge in charges:
        own += charge.own
        shared |= {claim: max(gpus, shared.get(claim, gpus)) for claim, gpus in charge.shared.items()}
    return own + sum(shared.values(), Decimal(0))


def by_tier_and_flavor(charges: Iterable[Charge]) -> dict[tuple[str | None, str | None], Decimal]:
    """Return the GPUs of charges by tier and flavor."""
    sums: dict[tuple[str | None, str | None], Decimal] = {}
    for each in charges:
        sums[each.tier, each.flavor] = sums.get((each.tier, each.flavor), Decimal(0)) + each.gpus
    return sums


def own_gpus(charges: Iterable[Charge]) -> Decimal:
    """Return the GPUs of all charges that are not shared with other pods."""
    return sum((each.own for each in charges), Decimal(0))


def never_fits(charge: Charge, tenant: Tenant) -> QuotaRow | None:
    """Return a row that could not hold the charge even if it were empty; None without one. Budgets are left out."""
    return next((row for row in charge.rows(tenant) if charge.gpus > row.hard and not row.spent), None)


def alternatives(
    charge: Charge, tenant: Tenant, usage: Usage, tiers: Iterable[Tier], bounds: Mapping[str, Decimal] | None = None
) -> Iterator[tuple[Tier, Decimal | None]]:
    """Yield other tiers in which a charge would fit, with the GPUs left before it, None for no limit.

    `bounds` are further limits of the GPUs left, by tier.
    """
    for tier in tiers:
        rows = Charge(Decimal(0), tier.name, charge.flavor).rows(tenant)
        lefts = [max(row.hard - usage.get(row, Decimal(0)), Decimal(0)) for row in rows]
        lefts += [bounds[tier.name]] if bounds and tier.name in bounds else []
        left = min(lefts, default=None)
        if tier.name != charge.tier and (left is None or left >= charge.gpus):
            yield tier, left


def charge_of(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Charge | None:
    """Return the charge of an existing pod; None if it holds no GPU. Its class gives the tier: labels are mutable.

    A terminating pod holds its GPUs until it has ended, but may no longer be charged (`quotaReleaseStrategy`).
    """
    if pod.metadata.deletion_timestamp and policy.quota_release_strategy == "Terminating":
        return None
    own, more = not_made(pod, devices, policy)
    gpus = used_gpus(pod, devices, policy) + own + sum(more.values(), Decimal(0))
    if not gpus:
        return None
    tier = tier_counted(pod.spec.priority_class_name, pod.spec.priority, policy.tiers)
    shared = {**shared_by(devices, policy)}
    for claim, added in more.items():
        shared[claim] = shared.get(claim, Decimal(0)) + added
    return Charge(gpus, tier, flavor_of(pod, policy), shared)


def tier_counted(class_name: str, priority: int | None, tiers: Tiers) -> str | None:
    """Return the tier in whose rows a pod counts: its class's, or else the highest that its priority reaches."""
    tier = tiers.of_class(class_name) or tiers.reached_by(priority or 0)
    return tier.name if tier else None


MOST_NAMED = 5
"""Gangs that a message names before it counts the rest."""


class GangPart(msgspec.Struct, frozen=True):
    """A number of like pods of a gang, the GPUs of each, and what they are charged together."""

    count: int
    gpus: Decimal
    charge: Charge


class GangDemand(msgspec.Struct, frozen=True):
    """The pods that a gang needs, template by template. It is charged as a whole until it has finished."""

    parts: tuple[GangPart, ...]

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Return the charges that are booked for it: one per tier and flavor, and one per part with a shared claim."""
        sums = by_tier_and_flavor(each.charge for each in self.parts if not each.charge.shared)
        summed = (Charge(gpus, tier, flavor) for (tier, flavor), gpus in sums.items())
        return (*summed, *(each.charge for each in self.parts if each.charge.shared))

    def fewer(self, free: Decimal) -> Phrase | str:
        """Return the words for how many of its pods fit in `free` GPUs; "" if all or none do, or if they differ."""
        each = self.parts[0]
        fit = int(free // each.gpus) if len(self.parts) == 1 and each.gpus else 0
        return Phrase("fewer-fit", count=fit) if 0 < fit < each.count else ""

    @property
    def shape(self) -> tuple[Phrase, ...]:
        """Return pods times GPUs, as a person counts them: 2 x 8."""
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
    """Return the words for stranded gangs, some of them by name."""
    if len(gangs) == 1:
        return Phrase("stranded-gang", gang=str(gangs[0]))
    return Phrase("stranded-gangs", gangs=first_of([*map(str, gangs)], MOST_NAMED))


def gang_of(parts: Sequence[GangPart]) -> GangDemand | None:
    """Return the gang of these pods; None for a single pod, which is charged by itself."""
    return GangDemand(tuple(parts)) if sum(each.count for each in parts) > 1 else None
