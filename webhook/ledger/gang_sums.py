"""What gangs hold on each row while pods are booked into an account one after another."""

from collections.abc import Collection
from decimal import Decimal

from webhook.ledger.account import Account, Gang, GangKey, GangPlace, Holder
from webhook.ledger.account_usage import NOTHING, declared_on, drawn_by_gangs, drawn_on, namesakes
from webhook.policy.values.tenants import QuotaRow, Tenant


class GangSums:
    """The gangs of an account, and what their pods draw. Holders that share a place or a claim don't join."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._gangs: dict[GangKey, Gang] = {each.key: each for each in account.gangs}
        self._places = namesakes(account.gangs)
        self._drawn = drawn_by_gangs(account, tenant)
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
        """The gang is booked, as it is now."""
        self._places[gang.place] = self._with(gang)
        self._gangs[gang.key] = gang
        self._drawn.setdefault(gang.place, dict.fromkeys(self._rows, NOTHING))

    def join(self, holder: Holder) -> None:
        """The holder is booked."""
        gang = self._gangs.get(holder.draws_on)
        if gang is not None:
            drawn = self._drawn[gang.place]
            drawn.update({row: gpus + drawn_on(row, holder) for row, gpus in drawn.items()})

    def _with(self, gang: Gang) -> list[Gang]:
        others = self._places.get(gang.place, ())
        return [*(each for each in others if each.key != gang.key), gang]

    def _on(self, row: QuotaRow, place: GangPlace, gangs: Collection[Gang], more: Decimal = NOTHING) -> Decimal:
        return max(declared_on(row, gangs), self._drawn.get(place, {}).get(row, NOTHING) + more)
