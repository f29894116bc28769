"""Books a batch of reviews into a draft of an account, one after another, under the quota of its tenant."""

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Gang, Holder, Promise, at_tier
from webhook.ledger.account_usage import GangSums, usage_of
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.policy.quota.charges import Shortfall, shortfall, whole_shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

MOST_RESERVATIONS = 1000
"""Creates of one tenant under way. Each takes some 200 bytes of the 1.5 MiB that etcd stores of an object. A namespace
may have as many as its tenant has left, so that no number of namespaces takes the last from the others."""
MOST_OF_ONE_NAME = 20
"""Pods of one name that are being created, of which one at most will be stored. A controller whose creates fail asks
for fewer: it waits longer each time."""
MOST_PROMISES = 8
"""Changes of one workload under way."""


class NotNow(msgspec.Struct, frozen=True):
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
        self._names = Counter(_name(each) for each in (*account.pods, *account.reservations))
        self._in_namespace = Counter(each.namespace for each in account.reservations)

    @property
    def account(self) -> Account:
        """The account with what has been booked; the same object where nothing has."""
        if len(self._reservations) != len(self._account.reservations):
            self._account = replace(self._account, reservations=tuple(self._reservations.values()))
        return self._account

    @property
    def usage(self) -> Usage:
        """GPUs on each row, with what has been booked."""
        return self._usage

    def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        if self._account.namespaces.get(booking.namespace) != "open":
            return NotNow(f"namespace {booking.namespace} is not yet in the ledger of tenant {self._tenant.name}")
        return self._book_gang(booking) if isinstance(booking, GangBooking) else self._book_pod(booking)

    def _book_pod(self, booking: Booking) -> Booked | Shortfall | NotNow:
        """A preempted pod of the same controller may hand on its place."""
        holder = _holder(booking)
        if holder.key in self._reservations:
            return Booked()
        if booking.group is not None and holder.draws_on not in self._sums:
            whole = self._book_gang(booking.group)
            if not isinstance(whole, Booked):
                return whole
        crowd = self._crowd(holder)
        if crowd:
            return NotNow(crowd)
        for victim in self._free_places(booking):
            if self._reserve(replace(holder, heir_of=victim)) is None:
                return Booked()
        row = self._reserve(holder)
        return Booked() if row is None else self._shortfall(booking, row)

    def _crowd(self, holder: Holder) -> str:
        """Who else is being created, if that is too many to take one more."""
        under_way, here = len(self._reservations), self._in_namespace[holder.namespace]
        if here >= MOST_RESERVATIONS - under_way:
            of = f"{here} of them in namespace {holder.namespace}"
            return f"{under_way} pods of tenant {self._tenant.name} are being created at once, {of}"
        if self._names[_name(holder)] >= MOST_OF_ONE_NAME:
            return f"{MOST_OF_ONE_NAME} pods of the name {holder.name} are being created at once"
        return ""

    def _book_gang(self, booking: GangBooking) -> Booked | Shortfall | NotNow:
        """What the gang holds already, as a whole or by its pods, needs no room."""
        gangs = {each.key: each for each in self.account.gangs}
        before = gangs.get((booking.namespace, booking.uid)) or self._new_gang(booking)
        promise = _promise(booking, before)
        others = tuple(each for each in before.promises if each.terms != promise.terms)
        if before.key not in gangs and _unseen_in(booking.namespace, gangs.values()) >= MOST_GANGS - len(gangs):
            return NotNow(f"{len(gangs)} workloads of tenant {self._tenant.name} have not ended", soon=False)
        if len(others) >= MOST_PROMISES:
            return NotNow(f"{booking.kind} {booking.name} is being changed too often at once")
        after = replace(before, promises=(*others, promise), tier=booking.tier or before.tier)
        account = replace(self.account, gangs=tuple({**gangs, before.key: after}.values()))
        by_itself = self._is_known_by_itself(after)
        if by_itself:
            usage = {row: gpus + self._sums.added_as(after, row) for row, gpus in self._usage.items()}
        else:
            usage = usage_of(account, self._tenant)
        for row, gpus in usage.items():
            if gpus > max(row.hard, self._usage[row]):
                return self._gang_shortfall(booking, before, row)
        self._account, self._usage = account, usage
        if by_itself:
            self._sums.put(after)
        else:
            self._sum_anew()
        return Booked()

    def _new_gang(self, booking: GangBooking) -> Gang:
        """It takes the place of one of its name whose create came to nothing, but never of one that has pods."""
        gang = gang_to_book(booking)
        return replace(gang, apart=self._sums.has_pods(gang.place))

    def _is_known_by_itself(self, gang: Gang) -> bool:
        """Whether it shares no claim, and no pod that has counted alone so far is one of its own."""
        charges = (each for promise in gang.promises for each in promise.charges)
        if any(each.shared for each in (*gang.declared, *charges)):
            return False
        holders = (*self._account.pods, *self._reservations.values())
        return gang.key in self._sums or all(each.draws_on != gang.key for each in holders)

    def _gang_shortfall(self, booking: GangBooking, before: Gang, row: QuotaRow) -> Shortfall:
        """The usage that shows it is that of all others."""
        others = {row: gpus - self._sums.held_at(before.place, row) for row, gpus in self._usage.items()}
        return whole_shortfall(booking.charges, self._tenant, others) or Shortfall(booking.charges[0], row, others)

    def _free_places(self, booking: Booking) -> Iterator[str]:
        """Preempted pods of the same controller and gang that have no heir, and are none."""
        taken = {each.heir_of for each in (*self._account.pods, *self._reservations.values())}
        for pod in self._account.pods if booking.controller and booking.moved_from is None else ():
            of = pod.namespace, pod.controller, pod.gang
            if (
                of == (booking.namespace, booking.controller, booking.gang)
                and pod.preempted
                and not pod.heir_of
                and pod.uid not in taken
            ):
                yield pod.uid

    def _reserve(self, holder: Holder) -> QuotaRow | None:
        """Add it; or leave all as it was, and say which row has no room for it."""
        after = self._usage_with(holder)
        for row, gpus in after.items():
            if gpus > max(row.hard, self._usage[row]):
                return row
        if self._stands_alone(holder):
            self._sums.join(holder)
        else:
            self._sum_anew()
        self._reservations[holder.key] = holder
        self._usage = after
        self._names[_name(holder)] += 1
        self._in_namespace[holder.namespace] += 1
        return None

    def _usage_with(self, holder: Holder) -> dict[QuotaRow, Decimal]:
        if self._stands_alone(holder):
            return {row: gpus + self._sums.added_by(holder, row) for row, gpus in self._usage.items()}
        return usage_of(replace(self.account, reservations=(*self._reservations.values(), holder)), self._tenant)

    def _stands_alone(self, holder: Holder) -> bool:
        """Whether it shares neither a place nor a claim with another."""
        shares = any(each.shared for each in holder.charges)
        return not holder.heir_of and _name(holder) not in self._names and not shares

    @cached_property
    def _sums(self) -> GangSums:
        return GangSums(self.account, self._tenant)

    def _sum_anew(self) -> None:
        """Before the next look: gangs, or pods that share something, have changed."""
        self.__dict__.pop("_sums", None)

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
        charges=booking.charges,
        moved_from=booking.moved_from,
        gang=booking.gang,
    )


def _promise(booking: GangBooking, before: Gang) -> Promise:
    """What is promised anew. A gang that was demoted stays at its tier."""
    tier = booking.tier or before.tier
    attempts = [each.attempt for each in before.promises if each.generation == booking.generation]
    return Promise(
        generation=booking.generation, attempt=max(attempts, default=0) + 1, charges=at_tier(booking.charges, tier)
    )


def gang_to_book(booking: GangBooking) -> Gang:
    """The gang of a booking, which holds nothing yet."""
    return Gang(
        uid=booking.uid,
        namespace=booking.namespace,
        kind=booking.kind,
        name=booking.name,
        of_pods=booking.of_pods,
    )


def _unseen_in(namespace: str, gangs: Iterable[Gang]) -> int:
    """The gangs of a namespace whose workloads nobody has seen."""
    return sum(1 for each in gangs if each.namespace == namespace and not each.declared)


def _name(holder: Holder) -> tuple[str, str]:
    return holder.namespace, holder.name or holder.uid
