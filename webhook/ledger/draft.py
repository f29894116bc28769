"""Books a batch of reviews into a draft of an account, one after another, under the quota of its tenant."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Entry, at_tier
from webhook.ledger.books import NOTHING, Books, free_for_queue, kept_of
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
MOST_TRIED = 20
"""Slots of others that the next pod of their maker is tried in."""


class NotNow(msgspec.Struct, frozen=True):
    """No answer now; the text says why. `soon`: because of something that passes by itself, so it may be waited for."""

    reason: str
    soon: bool = True


class Draft:
    """Books into a copy of an account, under the quota of its tenant."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._account = account
        self._tenant = tenant
        self._entries = {each.key: each for each in account.entries}
        self._gangs = account.gangs
        self._kept = [each for each in account.entries if each.state == "Kept"]
        self._books = Books(account.entries, tenant)
        pods = [each for each in account.entries if each.is_pod]
        self._made_by = defaultdict[tuple[str, str], list[Entry]](list)
        for each in pods:
            self._made_by[each.namespace, each.maker].append(each)
        self._names = Counter((each.namespace, each.name or each.uid) for each in pods)
        self._under_way = Counter(each.namespace for each in pods if each.state == "Reserved")

    @property
    def account(self) -> Account:
        """The account with what has been booked; the same object where nothing has."""
        entries = tuple(self._entries.values())
        return self._account if entries == self._account.entries else replace(self._account, entries=entries)

    @property
    def usage(self) -> Usage:
        """GPUs on each row, with what has been booked and what is reserved for the queue."""
        return self._with_kept(self._books.usage, self._kept)

    def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        if self._account.namespaces.get(booking.namespace) != "open":
            return NotNow(f"namespace {booking.namespace} is not yet in the ledger of tenant {self._tenant.name}")
        return self._book_gang(booking) if isinstance(booking, GangBooking) else self._book_pod(booking)

    def _book_pod(self, booking: Booking) -> Booked | Shortfall | NotNow:
        # 1. It is booked once. With the first pod of a group that is.
        entry = _pod(booking, self._tenant)
        if entry.key in self._entries:
            return Booked()
        if booking.group is not None and entry.gang not in self._gangs:
            whole = self._book_gang(booking.group)
            if not isinstance(whole, Booked):
                return whole

        # 2. Creates under way are bounded.
        name = entry.namespace, entry.name or entry.uid
        if crowd := self._crowd(entry):
            return NotNow(crowd)

        # 3. In the slot of a pod whose place it takes, else in that of its name; best where it adds nothing.
        tries, kept = list(self._tries(booking, entry)), self._kept_from(booking)
        if len(tries) > 1:
            tries.sort(key=self._is_free, reverse=True)
        for tried in tries:
            if self._row_without_room(tried, kept) is None:
                self._books = self._books.with_entry(tried)
                self._entries[tried.key] = tried
                self._made_by[tried.namespace, tried.maker].append(tried)
                self._names[name] += 1
                self._under_way[entry.namespace] += 1
                return Booked()
        return self._shortfall(booking, entry)

    def adds_nothing(self, booking: Booking) -> bool:
        """Whether it would add to no row."""
        entry = _pod(booking, self._tenant)
        shares = any(each.shared for each in entry.wants) or (entry.namespace, entry.name or entry.uid) in self._names
        tries = list(self._tries(booking, entry))
        return (shares or entry.gang in self._gangs or len(tries) > 1) and any(map(self._is_free, tries))

    def added_by(self, booking: Booking | GangBooking) -> dict[QuotaRow, Decimal]:
        """The GPUs that it would add to each row."""
        if isinstance(booking, GangBooking):
            entry = self._promise(booking)
        else:
            entry = next(iter(self._tries(booking, _pod(booking, self._tenant))))
        before = self._books.usage
        return {row: gpus - before[row] for row, gpus in self._books.usage_with(entry).items()}

    def keep(self, entry: Entry) -> None:
        """The queue reserves this from now on."""
        self._kept.append(entry)
        self._entries[entry.key] = entry

    def _is_free(self, entry: Entry) -> bool:
        return self._books.usage_with(entry) == self._books.usage and self._row_without_room(entry, ()) is None

    def _book_gang(self, booking: GangBooking) -> Booked | Shortfall | NotNow:
        """What the gang holds already, as a whole or by its pods, needs no room."""
        # 1. What it is promised anew, in its slot.
        promise = self._promise(booking)
        known = self._gangs.get(promise.gang, ())

        # 2. Gangs, and changes of one that are under way, are bounded.
        if not known and _unseen_in(booking.namespace, self._gangs.values()) >= MOST_GANGS - len(self._gangs):
            return NotNow(f"{len(self._gangs)} workloads of tenant {self._tenant.name} have not ended", soon=False)
        others = [each for each in known if each.state == "Reserved" and each.terms != promise.terms]
        if len(others) >= MOST_PROMISES:
            return NotNow(f"{booking.kind} {booking.name} is being changed too often at once")

        # 3. It is booked whole or not at all.
        kept = self._kept_from(booking)
        row = self._row_without_room(promise, kept)
        if row is not None:
            others_use = self._with_kept(self._books.without_gang(promise), kept)
            short = whole_shortfall(booking.charges, self._tenant, others_use)
            return short or Shortfall(booking.charges[0], row, others_use)
        self._books = self._books.with_entry(promise)
        stays = [
            replace(each, tier=promise.tier)
            for each in known
            if each.state != "Reserved" or each.terms != promise.terms
        ]
        for each in known:
            del self._entries[each.key]
        self._entries |= {each.key: each for each in (*stays, promise)}
        self._gangs[promise.gang] = (*stays, promise)
        return Booked()

    def _promise(self, booking: GangBooking) -> Entry:
        """A gang that was demoted stays at its tier.

        One that is new takes the slot of one of its name whose create came to nothing, but never of one that has pods.
        """
        known = self._gangs.get((booking.namespace, booking.uid), ())
        gang = known[0] if known else gang_to_book(booking)
        if not known and self._books.has_pods(gang):
            gang = replace(gang, slot=gang.uid)
        tier = booking.tier or gang.tier
        attempts = [each.attempt for each in known if each.generation == booking.generation]
        return replace(
            gang,
            state="Reserved",
            wants=at_tier(booking.charges, tier),
            generation=booking.generation,
            attempt=max(attempts, default=0) + 1,
            tier=tier,
        )

    def _tries(self, booking: Booking, entry: Entry) -> Iterator[Entry]:
        """It in the slots of pods of its maker that were preempted or have ended, or came to nothing; then in its own.

        Each of those has one next pod. A pod that moves stays in the slot in which it stands.
        """
        if entry.instead_of is not None:
            slots = (each.slot for each in self._entries.values() if each.uid == entry.uid and each.slot)
            yield replace(entry, slot=next(slots, ""))
            return
        of_maker = self._made_by[entry.namespace, entry.maker] if entry.maker else ()
        taken = {each.slot for each in of_maker}
        left = [each.uid for each in of_maker if _hands_on(each) and each.uid not in taken]
        yield from (replace(entry, slot=uid) for uid in (*booking.retries, *left)[:MOST_TRIED])
        yield entry

    def _crowd(self, entry: Entry) -> str:
        """Who else is being created, if that is too many to take one more."""
        under_way, here = self._under_way.total(), self._under_way[entry.namespace]
        if here >= MOST_RESERVATIONS - under_way:
            of = f"{here} of them in namespace {entry.namespace}"
            return f"{under_way} pods of tenant {self._tenant.name} are being created at once, {of}"
        if self._names[entry.namespace, entry.name or entry.uid] >= MOST_OF_ONE_NAME:
            return f"{MOST_OF_ONE_NAME} pods of the name {entry.name} are being created at once"
        return ""

    def _row_without_room(self, entry: Entry, kept: Iterable[Entry]) -> QuotaRow | None:
        """The row that would have more than it may, and more than it has; None where there is room.

        The slot of an ended pod counts although nobody uses its GPUs. Where a quota was lowered below it, it is not
        filled again.
        """
        after, before, queued = self._books.usage_with(entry), self._books.usage, kept_of(kept, self._tenant)
        is_vacant = (entry.namespace, entry.slot, "Left") in self._entries
        for row, gpus in after.items():
            if gpus > before[row] and gpus + queued[row] > row.hard:
                return row
            if is_vacant and gpus > row.hard and any(row.counts(each.tier, each.flavor) for each in entry.wants):
                return row
        return None

    def _kept_from(self, booking: Booking | GangBooking) -> list[Entry]:
        """What the queue reserves against a booking: not for itself, and not against a higher tier."""
        if isinstance(booking, GangBooking):
            own = {booking.uid}
        else:
            own = {booking.holder, booking.gang or booking.controller}
        return [each for each in self._kept if each.rank >= booking.rank and each.uid not in own]

    def _with_kept(self, usage: Usage, kept: Collection[Entry]) -> dict[QuotaRow, Decimal]:
        queued = free_for_queue(usage, kept_of(kept, self._tenant)) if kept else {}
        return {row: gpus + queued.get(row, NOTHING) for row, gpus in usage.items()}

    def _shortfall(self, booking: Booking, entry: Entry) -> Shortfall:
        """The narrowest row without room, as the charges together ask for it; else the row that was found."""
        shared, kept = {claim for charge in booking.charges for claim in charge.shared}, self._kept_from(booking)
        usage = self._with_kept(self._books.without(shared), kept)
        row = self._row_without_room(entry, kept) or self._tenant.rows[0]
        return shortfall(booking.charges, self._tenant, usage) or Shortfall(booking.charges[0], row, self.usage)


def _pod(booking: Booking, tenant: Tenant) -> Entry:
    maker = booking.workload if tenant.holds and booking.workload else booking.controller
    return Entry(
        uid=booking.holder,
        namespace=booking.namespace,
        name=booking.name,
        maker=maker,
        of=booking.gang or booking.controller,
        state="Reserved",
        wants=booking.charges,
        instead_of=booking.moved_from,
    )


def _hands_on(pod: Entry) -> bool:
    """Whether the next one may stand in its slot; not while it stands in that of another itself."""
    return not pod.slot and (pod.state == "Left" or (pod.preempted and pod.state == "Used"))


def gang_to_book(booking: GangBooking) -> Entry:
    """The gang of a booking, which holds nothing yet."""
    return Entry(
        uid=booking.uid, namespace=booking.namespace, kind=booking.kind, name=booking.name, of_pods=booking.of_pods
    )


def _unseen_in(namespace: str, gangs: Collection[tuple[Entry, ...]]) -> int:
    """The gangs of a namespace whose workloads nobody has seen."""
    unseen = (each for each in gangs if all(entry.state == "Reserved" for entry in each))
    return sum(1 for each in unseen if each[0].namespace == namespace)
