"""What an account comes to on each row of a quota. Pods of one place, and pods that share a claim, count once.

Holders stand in one place where only one of them can be: a preempted pod and the heir that replaces it, and all that
bear one namespace and name. A place counts the largest of its holders. A gang counts what it declares, or what its
pods hold where that is more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from webhook.ledger.account import Account, Drawn, Gang, GangKey, Holder
from webhook.policy.values.tenants import QuotaRow, Tenant

NOTHING = Decimal(0)

PlaceOf = Callable[[Holder], str]
Places = Sequence[Sequence[Holder]]
"""The holders of an account, those of one place together."""


def used_of(account: Account, tenant: Tenant) -> dict[QuotaRow, Decimal]:
    """GPUs on each row that pods hold which exist."""
    return _on_rows(account, account.pods, tenant, (), declared=False)


def usage_of(account: Account, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
    """GPUs on each row, reservations and whole gangs included, `without` those of some ResourceClaims."""
    return _on_rows(account, (*account.pods, *account.reservations), tenant, without, declared=True)


def drawn_by_gangs(account: Account, tenant: Tenant) -> dict[GangKey, dict[QuotaRow, Decimal]]:
    """GPUs on each row that the pods of each gang hold or were promised."""
    _, inside = _apart(account, _standing(account, (*account.pods, *account.reservations)))
    return {gang.key: {row: _members_on(row, gang, inside) for row in tenant.rows} for gang in account.gangs}


def declared_on(row: QuotaRow, gang: Gang) -> Decimal:
    """The GPUs that a gang holds on a row whatever its pods hold: as it was seen, or as it may be stored yet."""
    return max(_sum_on(row, charges) for charges in (gang.declared, *(each.charges for each in gang.promises)))


def places_of(account: Account) -> PlaceOf:
    """The place in which a holder of this account stands.

    A preempted pod covers one thing: its heir, or what bears its own name.
    """
    exist = {pod.uid for pod in account.pods}
    victims = {each.uid: each.heir_of for each in (*account.pods, *account.reservations) if each.heir_of in exist}
    inherited = set(victims.values())

    def place(holder: Holder) -> str:
        if holder.uid in victims:  # a move of the heir too
            return victims[holder.uid]
        if holder.uid in inherited or holder.moved_from is not None or not holder.name:
            return holder.uid
        return f"{holder.namespace}/{holder.name}"

    return place


def drawn_on(row: QuotaRow, holder: Holder) -> Decimal:
    """The GPUs that one holder draws on a row by itself, without what it shares."""
    if holder.moved_from is not None and _counts(row, holder.moved_from):
        return NOTHING
    return _sum_on(row, holder.charges)


def _on_rows(
    account: Account, holders: Collection[Holder], tenant: Tenant, without: Collection[str], *, declared: bool
) -> dict[QuotaRow, Decimal]:
    alone, inside = _apart(account, _standing(account, holders))
    claims = [each for each in (*account.claims, *_charges(account, holders, declared=declared)) if each.shared]

    def gang_on(row: QuotaRow, gang: Gang) -> Decimal:
        members = _members_on(row, gang, inside)
        return max(declared_on(row, gang), members) if declared else members

    return {
        row: _sum_on(row, account.held)
        + _places_on(row, alone)
        + sum((gang_on(row, gang) for gang in account.gangs), NOTHING)
        + _shared_on(row, claims, without)
        for row in tenant.rows
    }


def _standing(account: Account, holders: Iterable[Holder]) -> Places:
    place, places = places_of(account), defaultdict[str, list[Holder]](list)
    for holder in holders:
        places[place(holder)].append(holder)
    return list(places.values())


def _apart(account: Account, places: Places) -> tuple[Places, Mapping[GangKey, Places]]:
    """The places that count by themselves, and those of each gang; a place must be of one gang alone."""
    alone: list[Sequence[Holder]] = []
    inside: dict[GangKey, list[Sequence[Holder]]] = {gang.key: [] for gang in account.gangs}
    if not inside:
        return places, inside
    for standing in places:
        [of, *others] = {holder.draws_on for holder in standing}
        inside.get(of if not others else ("", ""), alone).append(standing)
    return alone, inside


def _members_on(row: QuotaRow, gang: Gang, inside: Mapping[GangKey, Places]) -> Decimal:
    return _sum_on(row, gang.held) + _places_on(row, inside[gang.key])


def _places_on(row: QuotaRow, places: Places) -> Decimal:
    return sum((max(drawn_on(row, each) for each in standing) for standing in places), NOTHING)


def _charges(account: Account, holders: Iterable[Holder], *, declared: bool) -> Iterator[Drawn]:
    yield from (each for holder in holders for each in holder.charges)
    for gang in account.gangs if declared else ():
        yield from gang.declared
        yield from (each for promise in gang.promises for each in promise.charges)


def _shared_on(row: QuotaRow, charges: Iterable[Drawn], without: Collection[str]) -> Decimal:
    """Each claim once, with the largest that a holder on this row has of it."""
    largest: dict[str, Decimal] = {}
    for charge in charges:
        for claim, gpus in charge.shared.items() if _counts(row, charge) else ():
            largest[claim] = max(gpus, largest.get(claim, gpus))
    return sum((gpus for claim, gpus in largest.items() if claim not in without), NOTHING)


def _sum_on(row: QuotaRow, charges: Iterable[Drawn]) -> Decimal:
    """The GPUs of these charges on a row, without what they share."""
    return sum((each.own for each in charges if _counts(row, each)), NOTHING)


def _counts(row: QuotaRow, charge: Drawn) -> bool:
    return row.counts(charge.tier, charge.flavor)
