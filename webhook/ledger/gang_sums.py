"""What gangs hold on each row while pods are booked into an account one after another."""

from decimal import Decimal

from webhook.ledger.account import Account, Gang, GangKey, Holder
from webhook.ledger.account_usage import NOTHING, declared_on, drawn_by_gangs, drawn_on
from webhook.policy.values.tenants import QuotaRow, Tenant


class GangSums:
    """The gangs of an account, and what their pods draw. Holders that share a place or a claim don't join."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._gangs: dict[GangKey, Gang] = {each.key: each for each in account.gangs}
        self._drawn = drawn_by_gangs(account, tenant)
        self._rows = tenant.rows

    def __contains__(self, key: GangKey) -> bool:
        return key in self._gangs

    def held_by(self, key: GangKey, row: QuotaRow) -> Decimal:
        """What a gang holds on a row: what it declares, or what its pods draw where that is more."""
        gang = self._gangs.get(key)
        return NOTHING if gang is None else max(declared_on(row, gang), self._drawn[key][row])

    def added_by(self, holder: Holder, row: QuotaRow) -> Decimal:
        """What a row counts more with this holder: of a gang only what its pods draw beyond its charge."""
        gang, drawn = self._gangs.get(holder.draws_on), drawn_on(row, holder)
        if gang is None:
            return drawn
        after = max(declared_on(row, gang), self._drawn[gang.key][row] + drawn)
        return after - self.held_by(gang.key, row)

    def added_as(self, gang: Gang, row: QuotaRow) -> Decimal:
        """What a row counts more with a gang as it would be now."""
        drawn = self._drawn.get(gang.key, {}).get(row, NOTHING)
        return max(declared_on(row, gang), drawn) - self.held_by(gang.key, row)

    def put(self, gang: Gang) -> None:
        """The gang is booked, as it is now."""
        self._gangs[gang.key] = gang
        self._drawn.setdefault(gang.key, dict.fromkeys(self._rows, NOTHING))

    def join(self, holder: Holder) -> None:
        """The holder is booked."""
        drawn = self._drawn.get(holder.draws_on, {})
        drawn.update({row: gpus + drawn_on(row, holder) for row, gpus in drawn.items()})
