"""What an account comes to on each row of a quota. Pods of one place, and pods that share a claim, count once.

Holders stand in one place where only one of them can be: a preempted pod and the heir that replaces it, and all that
bear one namespace and name. A place counts the largest of its holders. Gangs of one kind and name stand in one place
too. It counts what the largest of them declares, or what the pods of all hold where that is more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from webhook.ledger.account import Account, Gang, GangKey, GangPlace, Holder
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant

NOTHING = Decimal(0)

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


def declared_on(row: QuotaRow, gangs: Iterable[Gang]) -> Decimal:
    """The GPUs that gangs of one place hold on a row, whatever their pods hold: as seen, or as may be stored yet."""
    declared = (charges for gang in gangs for charges in (gang.declared, *(each.charges for each in gang.promises)))
    return max((own_on(row, charges) for charges in declared), default=NOTHING)


def places_of(account: Account) -> Callable[[Holder], str]:
    """The place in which a holder of this account stands.

    A preempted pod shares its place with its heir if it has one, else with the pods of its own name.
    """
    exist = {pod.uid for pod in account.pods}
    victim_of = {each.uid: each.heir_of for each in (*account.pods, *account.reservations) if each.heir_of in exist}
    inherited = set(victim_of.values())

    def place(holder: Holder) -> str:
        if holder.uid in victim_of:  # a move of the heir too
            return victim_of[holder.uid]
        if holder.uid in inherited or holder.moved_from is not None or not holder.name:
            return holder.uid
        return f"{holder.namespace}/{holder.name}"

    return place


def drawn_on(row: QuotaRow, holder: Holder) -> Decimal:
    """The GPUs that one holder draws on a row by itself, without what it shares."""
    if holder.moved_from is not None and _counts(row, holder.moved_from):
        return NOTHING
    return own_on(row, holder.charges)


def _on_rows(
    account: Account, holders: Collection[Holder], tenant: Tenant, without: Collection[str], *, declared: bool
) -> dict[QuotaRow, Decimal]:
    alone, inside = _by_gang(account, _standing(account, holders))
    places = namesakes(account.gangs).values()
    claims = [each for each in (*account.claims, *_charges(account, holders, declared=declared)) if each.shared]

    def gangs_on(row: QuotaRow, gangs: Collection[Gang]) -> Decimal:
        members = _members_on(row, gangs, inside)
        return max(declared_on(row, gangs), members) if declared else members

    return {
        row: own_on(row, account.held)
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


def _by_gang(account: Account, places: Places) -> tuple[Places, Mapping[GangKey, Places]]:
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
    return sum((own_on(row, gang.held) + _places_on(row, inside[gang.key]) for gang in gangs), NOTHING)


def _places_on(row: QuotaRow, places: Places) -> Decimal:
    return sum((max(drawn_on(row, each) for each in standing) for standing in places), NOTHING)


def _charges(account: Account, holders: Iterable[Holder], *, declared: bool) -> Iterator[Charge]:
    yield from (each for holder in holders for each in holder.charges)
    for gang in account.gangs if declared else ():
        yield from gang.declared
        yield from (each for promise in gang.promises for each in promise.charges)


def _shared_on(row: QuotaRow, charges: Iterable[Charge], without: Collection[str]) -> Decimal:
    """Each claim once, with the largest that a holder on this row has of it."""
    largest: dict[str, Decimal] = {}
    for charge in charges:
        for claim, gpus in charge.shared.items() if _counts(row, charge) else ():
            largest[claim] = max(gpus, largest.get(claim, gpus))
    return sum((gpus for claim, gpus in largest.items() if claim not in without), NOTHING)


def own_on(row: QuotaRow, charges: Iterable[Charge]) -> Decimal:
    """The GPUs of these charges on a row, without what they share."""
    return sum((each.own for each in charges if _counts(row, each)), NOTHING)


def _counts(row: QuotaRow, charge: Charge) -> bool:
    return row.counts(charge.tier, charge.flavor)


class GangSums:
    """The gangs of an account, and what their pods draw. Holders that share a place or a claim don't join."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._gangs: dict[GangKey, Gang] = {each.key: each for each in account.gangs}
        self._places = namesakes(account.gangs)
        # GPUs on each row that the pods of the gangs of a place hold or were promised.
        _, inside = _by_gang(account, _standing(account, (*account.pods, *account.reservations)))
        self._drawn = {
            place: {row: _members_on(row, gangs, inside) for row in tenant.rows}
            for place, gangs in self._places.items()
        }
        self._rows = tenant.rows

    def __contains__(self, key: GangKey) -> bool:
        return key in self._gangs

    def has_pods(self, place: GangPlace) -> bool:
        """Whether pods of a gang of that place exist, or were promised."""
        return any(self._drawn.get(place, {}).values())

    def held_at(self, place: GangPlace, row: QuotaRow) -> Decimal:
        """What the gangs of a place hold on a row: what the largest declares, or what their pods draw if more."""
        return self._on(row, place, self._places.get(place, ()))

    def added_by(self, holder: Holder, row: QuotaRow) -> Decimal:
        """What a row counts more with this holder: of a gang only what its pods draw beyond its charge."""
        gang, drawn = self._gangs.get(holder.draws_on), drawn_on(row, holder)
        if gang is None:
            return drawn
        after = self._on(row, gang.place, self._places[gang.place], drawn)
        return after - self.held_at(gang.place, row)

    def added_as(self, gang: Gang, row: QuotaRow) -> Decimal:
        """What a row counts more with a gang as it would be now."""
        return self._on(row, gang.place, self._with(gang)) - self.held_at(gang.place, row)

    def put(self, gang: Gang) -> None:
        self._places[gang.place] = self._with(gang)
        self._gangs[gang.key] = gang
        self._drawn.setdefault(gang.place, dict.fromkeys(self._rows, NOTHING))

    def join(self, holder: Holder) -> None:
        gang = self._gangs.get(holder.draws_on)
        if gang is not None:
            drawn = self._drawn[gang.place]
            drawn.update({row: gpus + drawn_on(row, holder) for row, gpus in drawn.items()})

    def _with(self, gang: Gang) -> list[Gang]:
        others = self._places.get(gang.place, ())
        return [*(each for each in others if each.key != gang.key), gang]

    def _on(self, row: QuotaRow, place: GangPlace, gangs: Collection[Gang], more: Decimal = NOTHING) -> Decimal:
        return max(declared_on(row, gangs), self._drawn.get(place, {}).get(row, NOTHING) + more)
