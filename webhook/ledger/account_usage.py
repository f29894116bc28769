"""What an account comes to on each row of a quota. Pods of one place, and pods that share a claim, count once.

Holders stand in one place where only one of them can be: a preempted pod and the heir that replaces it, and all that
bear one namespace and name. A place counts the largest of its holders.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal

from webhook.ledger.account import Account, Drawn, Holder
from webhook.policy.values.tenants import QuotaRow, Tenant

NOTHING = Decimal(0)

PlaceOf = Callable[[Holder], str]


def used_of(account: Account, tenant: Tenant) -> dict[QuotaRow, Decimal]:
    """GPUs on each row that pods hold which exist."""
    return _on_rows(account, account.pods, tenant, ())


def usage_of(account: Account, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
    """GPUs on each row, reservations included, `without` those of some ResourceClaims."""
    return _on_rows(account, (*account.pods, *account.reservations), tenant, without)


def places_of(account: Account) -> PlaceOf:
    """The place in which a holder of this account stands.

    A preempted pod covers one thing: its heir, or what bears its own name.
    """
    exist = {pod.uid for pod in account.pods}
    inherited = {each.heir_of for each in (*account.pods, *account.reservations) if each.heir_of in exist}

    def place(holder: Holder) -> str:
        if holder.heir_of in inherited:
            return holder.heir_of
        if holder.uid in inherited or holder.moved_from is not None or not holder.name:
            return holder.uid
        return f"{holder.namespace}/{holder.name}"

    return place


def drawn_on(row: QuotaRow, holder: Holder) -> Decimal:
    """The GPUs that one holder draws on a row by itself, without what it shares."""
    if holder.moved_from is not None and _counts(row, holder.moved_from):
        return NOTHING
    return sum((_own(each) for each in holder.charges if _counts(row, each)), NOTHING)


def _on_rows(
    account: Account, holders: Collection[Holder], tenant: Tenant, without: Collection[str]
) -> dict[QuotaRow, Decimal]:
    place = places_of(account)
    places = defaultdict[str, list[Holder]](list)
    for holder in holders:
        places[place(holder)].append(holder)
    claims = [each for each in (*account.claims, *_charges(holders)) if each.shared]
    return {
        row: sum((_own(each) for each in account.held if _counts(row, each)), NOTHING)
        + sum((max(drawn_on(row, each) for each in standing) for standing in places.values()), NOTHING)
        + _shared_on(row, claims, without)
        for row in tenant.rows
    }


def _charges(holders: Iterable[Holder]) -> Iterator[Drawn]:
    return (each for holder in holders for each in holder.charges)


def _shared_on(row: QuotaRow, charges: Iterable[Drawn], without: Collection[str]) -> Decimal:
    """Each claim once, with the largest that a holder on this row has of it."""
    largest: dict[str, Decimal] = {}
    for charge in charges:
        for claim, gpus in charge.shared.items() if _counts(row, charge) else ():
            largest[claim] = max(gpus, largest.get(claim, gpus))
    return sum((gpus for claim, gpus in largest.items() if claim not in without), NOTHING)


def _own(charge: Drawn) -> Decimal:
    return charge.gpus - sum(charge.shared.values(), NOTHING)


def _counts(row: QuotaRow, charge: Drawn) -> bool:
    return row.counts(charge.tier, charge.flavor)
