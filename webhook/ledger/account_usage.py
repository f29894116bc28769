"""What an account comes to on each row of a quota. Pods of one place, and pods that share a claim, count once.

Holders stand in one place where only one of them can be: a preempted pod and the heir that replaces it, and all that
bear one namespace and name. A place counts the largest of its holders. Gangs of one kind and name stand in one place
too. It counts what the largest of them declares, or what the pods of all hold where that is more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from webhook.ledger.account import Account, Drawn, Gang, GangKey, GangPlace, Holder
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


def namesakes(gangs: Iterable[Gang]) -> dict[GangPlace, list[Gang]]:
    """Gangs by their place: mostly one in each."""
    places = defaultdict[GangPlace, list[Gang]](list)
    for gang in gangs:
        places[gang.place].append(gang)
    return places


def drawn_by_gangs(account: Account, tenant: Tenant) -> dict[GangPlace, dict[QuotaRow, Decimal]]:
    """GPUs on each row that the pods of the gangs of each place hold or were promised."""
    _, inside = _apart(account, _standing(account, (*account.pods, *account.reservations)))
    places = namesakes(account.gangs).items()
    return {place: {row: _members_on(row, gangs, inside) for row in tenant.rows} for place, gangs in places}


def declared_on(row: QuotaRow, gangs: Iterable[Gang]) -> Decimal:
    """The GPUs that gangs of one place hold on a row, whatever their pods hold: as seen, or as may be stored yet."""
    declared = (charges for gang in gangs for charges in (gang.declared, *(each.charges for each in gang.promises)))
    return max((_sum_on(row, charges) for charges in declared), default=NOTHING)


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
    places = namesakes(account.gangs).values()
    claims = [each for each in (*account.claims, *_charges(account, holders, declared=declared)) if each.shared]

    def gangs_on(row: QuotaRow, gangs: Collection[Gang]) -> Decimal:
        members = _members_on(row, gangs, inside)
        return max(declared_on(row, gangs), members) if declared else members

    return {
        row: _sum_on(row, account.held)
        + _places_on(row, alone)
        + sum((gangs_on(row, gangs) for gangs in places), NOTHING)
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


def _members_on(row: QuotaRow, gangs: Iterable[Gang], inside: Mapping[GangKey, Places]) -> Decimal:
    return sum((_sum_on(row, gang.held) + _places_on(row, inside[gang.key]) for gang in gangs), NOTHING)


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
