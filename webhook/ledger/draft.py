"""A working copy of an account: what a batch of reviews makes of it before one compare-and-swap writes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import Account, Drawn, Holder
from webhook.ledger.account_usage import drawn_on, usage_of
from webhook.ledger.protocol import Booked, Booking
from webhook.policy.quota.charges import Shortfall, shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

MOST_RESERVATIONS = 1000
"""Creates of one tenant under way. Each takes some 200 bytes of the 1.5 MiB that etcd stores of an object."""


@dataclass(frozen=True, slots=True)
class NotNow:
    """No answer now; the text says why. `soon`: because of something that passes by itself, so it may be waited for."""

    reason: str
    soon: bool = True


class Draft:
    """Books into a copy of an account, under the quota of its tenant."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._account = account
        self._tenant = tenant
        self._reservations = {each.key: each for each in account.reservations}
        self._usage = usage_of(account, tenant)
        self._names = {_name(each) for each in (*account.pods, *account.reservations)}

    @property
    def account(self) -> Account:
        """The account with what has been booked; the same object where nothing has."""
        if len(self._reservations) != len(self._account.reservations):
            self._account = replace(self._account, reservations=tuple(self._reservations.values()))
        return self._account

    def book(self, booking: Booking) -> Booked | Shortfall | NotNow:
        """Book all charges or none. A preempted pod of the same controller may hand on its place."""
        holder = _holder(booking)
        if self._account.namespaces.get(booking.namespace) != "open":
            return NotNow(f"namespace {booking.namespace} is not yet in the ledger of tenant {self._tenant.name}")
        if holder.key in self._reservations:
            return Booked()
        if len(self._reservations) >= MOST_RESERVATIONS:
            return NotNow(f"{MOST_RESERVATIONS} pods of tenant {self._tenant.name} are being created at once")
        for victim in self._free_places(booking):
            if self._reserve(replace(holder, heir_of=victim)) is None:
                return Booked()
        row = self._reserve(holder)
        return Booked() if row is None else self._shortfall(booking, row)

    def _free_places(self, booking: Booking) -> Iterator[str]:
        """Preempted pods of the same controller that have no heir, and are none."""
        taken = {each.heir_of for each in (*self._account.pods, *self._reservations.values())}
        for pod in self._account.pods if booking.controller and booking.moved_from is None else ():
            alike = (pod.namespace, pod.controller) == (booking.namespace, booking.controller)
            if alike and pod.preempted and not pod.heir_of and pod.uid not in taken:
                yield pod.uid

    def _reserve(self, holder: Holder) -> QuotaRow | None:
        """Add it; or leave all as it was, and say which row has no room for it."""
        after = self._usage_with(holder)
        for row, gpus in after.items():
            if gpus > max(row.hard, self._usage[row]):
                return row
        self._reservations[holder.key] = holder
        self._usage = after
        self._names.add(_name(holder))
        return None

    def _usage_with(self, holder: Holder) -> dict[QuotaRow, Decimal]:
        if not holder.heir_of and _name(holder) not in self._names and not any(each.shared for each in holder.charges):
            return {row: gpus + drawn_on(row, holder) for row, gpus in self._usage.items()}
        return usage_of(replace(self.account, reservations=(*self._reservations.values(), holder)), self._tenant)

    def _shortfall(self, booking: Booking, row: QuotaRow) -> Shortfall:
        """The narrowest row without room, as the charges together ask for it; else the row that was found."""
        shared = {claim for charge in booking.charges for claim in charge.shared}
        usage = usage_of(self.account, self._tenant, shared) if shared else self._usage
        short = shortfall(booking.charges, self._tenant, usage)
        return short or Shortfall(booking.charges[0], row, self._usage)


def _holder(booking: Booking) -> Holder:
    return Holder(
        uid=booking.holder,
        namespace=booking.namespace,
        name=booking.name,
        controller=booking.controller,
        charges=tuple(map(Drawn.of, booking.charges)),
        moved_from=None if booking.moved_from is None else Drawn.of(booking.moved_from),
    )


def _name(holder: Holder) -> tuple[str, str]:
    return holder.namespace, holder.name or holder.uid
