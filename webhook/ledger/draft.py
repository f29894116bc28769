"""Books a batch of reviews into a draft of an account, one after another, under the quota of its tenant."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Entry, at_tier
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.slot_sums import SlotSums, free_for_queue, reserved_by_heads
from webhook.policy.quota.charges import Charge, Shortfall, shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

MOST_RESERVATIONS = 1000
"""Most creates of one tenant under way. Each takes some 200 bytes of the 1.5 MiB that etcd stores of an object. A
namespace may have as many as its tenant has left, so that the other namespaces always have some left too."""
MOST_BYTES = 2**20
"""Most bytes of an account, so that an update never reaches the 1.5 MiB that etcd stores of an object. Entries name
claims, owners and groups, and names may be long. A namespace may take as many as its tenant has left."""
MOST_OF_ONE_NAME = 20
"""Most pods of one name that are being created. At most one of them will be stored. A controller whose creates fail
makes fewer, because it waits longer each time."""
MOST_CHANGES = 8
"""Most changes of one workload under way."""
MOST_TRIED = 20
"""Most slots of other pods in which a replacement is tried."""


NOBODY = Tenant("")


class NotNow(msgspec.Struct, frozen=True):
    """No answer now; the text says why. `soon`: the reason passes by itself, so a caller may wait for it."""

    reason: str
    soon: bool = True


class Draft:
    """Books into a copy of an account, under the quota of its tenant."""

    def __init__(self, account: Account, tenant: Tenant) -> None:
        self._account = account
        self._tenant = tenant
        self._entries = {each.key: each for each in account.entries}
        self._gangs = account.gangs
        self._for_queue = [each for each in account.entries if each.state == "ForQueue"]
        self._books = SlotSums(account.entries, tenant)
        pods = [each for each in account.entries if each.is_pod]
        self._made_by = defaultdict[tuple[str, str], list[Entry]](list)
        for each in pods:
            self._made_by[each.namespace, each.maker].append(each)
        # A user who may edit a pod may change its owner, so slots are looked up among the pods of all makers.
        self._taken = {each.slot for each in pods}
        self._used = {each.slot or each.uid for each in pods if each.state == "Used" and not _is_replaceable(each)}
        self._length = _length(account)
        self._names = Counter(map(_name, pods))
        self._under_way = Counter(each.namespace for each in pods if each.state == "Reserved")

    @property
    def account(self) -> Account:
        """The account with all that was booked; the same object if nothing was."""
        entries = tuple(self._entries.values())
        return self._account if entries == self._account.entries else replace(self._account, entries=entries)

    @property
    def booked(self) -> dict[QuotaRow, Decimal]:
        """GPUs on each row, with all that was booked, without those reserved for the queue."""
        return self._books.booked

    @property
    def usage(self) -> Usage:
        """GPUs on each row, with all that was booked and those reserved for the queue."""
        booked = self._books.booked
        queued = free_for_queue(booked, self._for_queue, self._tenant)
        return {row: gpus + queued[row] for row, gpus in booked.items()}

    def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        if self._account.namespaces.get(booking.namespace) != "open":
            return NotNow(f"namespace {booking.namespace} is not yet in the ledger of tenant {self._tenant.name}")
        if isinstance(booking, Booking) and _pod(booking, self._tenant).key in self._entries:
            return Booked()  # a pod is booked once
        length = _length(msgspec.structs.replace(booking, tenant=NOBODY))
        if excess := self._excess(booking.namespace, length):
            return NotNow(excess, soon=False)
        answer = self._book_gang(booking) if isinstance(booking, GangBooking) else self._book_pod(booking)
        self._length += length if isinstance(answer, Booked) else 0
        return answer

    def _excess(self, namespace: str, length: int) -> str:
        """Return why so many bytes more would make the account too long; "" if they would not, as nearly always."""
        if self._length + length <= MOST_BYTES // 4:
            return ""
        here = sum(_length(each) for each in self._entries.values() if each.namespace == namespace)
        if here + length <= MOST_BYTES - self._length:
            return ""
        of = f"{here} bytes of namespace {namespace} are in the ledger of tenant {self._tenant.name}"
        return f"{of}, and this asks for {length} more: use fewer or shorter names of claims and groups"

    def _book_pod(self, booking: Booking) -> Booked | Shortfall | NotNow:
        # 1. A group is booked with its first pod.
        entry = _pod(booking, self._tenant)
        if booking.group is not None and entry.gang not in self._gangs:
            whole = self._book_gang(booking.group)
            if not isinstance(whole, Booked):
                return whole

        # 2. Creates under way are bounded.
        if crowd := self._crowd(entry):
            return NotNow(crowd)

        # 3. Book it in the slot of a pod that it replaces, or in that of its name. Prefer a slot where it adds nothing.
        tries, heads = list(self._tries(booking, entry)), self._reserved_before(booking)
        if len(tries) > 1:
            tries.sort(key=self._adds_nothing, reverse=True)
        for tried in tries:
            if self._row_without_room(tried, heads) is None:
                self._books = self._books.with_entry(tried)
                self._entries[tried.key] = tried
                self._made_by[tried.namespace, tried.maker].append(tried)
                self._taken.add(tried.slot)
                self._names[_name(entry)] += 1
                self._under_way[entry.namespace] += 1
                return Booked()
        return self._shortfall(booking, entry, heads)

    def lacks(self, booking: Booking | GangBooking) -> Shortfall | None:
        """Return the shortfall of a booking as if nothing were reserved for the queue; None if it has room then."""
        if isinstance(booking, GangBooking):
            return self._shortfall_of_gang(booking, self._reservation(booking), ())
        entry = _pod(booking, self._tenant)
        if any(self._row_without_room(tried, ()) is None for tried in self._tries(booking, entry)):
            return None
        return self._shortfall(booking, entry, ())

    def adds_nothing(self, booking: Booking) -> bool:
        """Tell whether a pod would add no GPUs to any row.

        A pod that shares no slot, claim or gang adds some, and is not tried.
        """
        entry = _pod(booking, self._tenant)
        shares = any(each.shared for each in entry.wants) or _name(entry) in self._names
        tries = list(self._tries(booking, entry))
        return (shares or entry.gang in self._gangs or len(tries) > 1) and any(map(self._adds_nothing, tries))

    def added_by(self, booking: Booking | GangBooking) -> dict[QuotaRow, Decimal]:
        """Return the GPUs that a booking would add to each row; for a pod, in the first slot that it may take."""
        if isinstance(booking, GangBooking):
            entry = self._reservation(booking)
        else:
            entry = next(iter(self._tries(booking, _pod(booking, self._tenant))))
        before = self._books.booked
        return {row: gpus - before[row] for row, gpus in self._books.booked_with(entry).items()}

    def reserve(self, entry: Entry) -> None:
        """Reserve GPUs for the head of a queue, against all later bookings."""
        self._for_queue.append(entry)
        self._entries[entry.key] = entry

    def _adds_nothing(self, entry: Entry) -> bool:
        return self._books.booked_with(entry) == self._books.booked and self._row_without_room(entry, ()) is None

    def _book_gang(self, booking: GangBooking) -> Booked | Shortfall | NotNow:
        """Book a gang. GPUs that it or its pods have already need no room."""
        # 1. The new reservation, in the gang's slot.
        reservation = self._reservation(booking)
        known = self._gangs.get(reservation.gang, ())

        # 2. Gangs are bounded, and so are changes of one that are under way.
        here = (each for each in self._gangs.values() if each[0].namespace == booking.namespace)
        unseen = (each for each in here if all(entry.state == "Reserved" for entry in each))
        if not known and sum(1 for _ in unseen) >= MOST_GANGS - len(self._gangs):
            return NotNow(f"{len(self._gangs)} workloads of tenant {self._tenant.name} have not ended", soon=False)
        terms = reservation.generation, reservation.wants  # another attempt has the same
        stays = [each for each in known if each.state != "Reserved" or (each.generation, each.wants) != terms]
        if sum(each.state == "Reserved" for each in stays) >= MOST_CHANGES:
            return NotNow(f"{booking.kind} {booking.name} is being changed too often at once")

        # 3. The whole gang is booked or nothing of it.
        if short := self._shortfall_of_gang(booking, reservation, self._reserved_before(booking)):
            return short
        self._books = self._books.with_entry(reservation)
        for each in known:
            del self._entries[each.key]
        after = (*(replace(each, tier=reservation.tier) for each in stays), reservation)
        self._entries |= {each.key: each for each in after}
        self._gangs[reservation.gang] = after
        return Booked()

    def _reservation(self, booking: GangBooking) -> Entry:
        """Return the reservation for a gang. A gang that was demoted stays at its tier.

        A new gang shares the slot of its name, because one of two creates fails. If an earlier gang of that name has
        pods, the new one gets a slot of its own, because those pods may outlive their workload.
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
        """Yield the entry in each slot that it may share, and then in its own.

        A pod may replace a preempted or ended pod of its maker, each of which has one replacement. A retry may share
        the slot of an earlier try until another try or a seen pod is in it. A pod that moves stays in its slot.
        """
        if entry.instead_of is not None:
            slots = (each.slot for each in self._entries.values() if each.uid == entry.uid and each.slot)
            yield replace(entry, slot=next(slots, ""))
            return
        of_maker = self._made_by[entry.namespace, entry.maker] if entry.maker else ()
        if of_maker:
            left = _distinct_slots(each for each in of_maker if _is_replaceable(each) and each.uid not in self._taken)
            # If one of the tries was seen or has lapsed since they were counted, too few may have come to nothing.
            are_there = {each.name for each in of_maker}.issuperset(booking.retries)
            tries = open_tries(of_maker) if booking.retries and are_there else {}
            again = (slot for slot, name in tries.items() if name in booking.retries and slot not in self._used)
            yield from (replace(entry, slot=slot) for slot in (*again, *left)[:MOST_TRIED])
        yield entry

    def _crowd(self, entry: Entry) -> str:
        """Return why one more create would be too many; "" if it would not."""
        under_way, here = self._under_way.total(), self._under_way[entry.namespace]
        if here >= MOST_RESERVATIONS - under_way:
            of = f"{here} of them in namespace {entry.namespace}"
            return f"{under_way} pods of tenant {self._tenant.name} are being created at once, {of}"
        if self._names[_name(entry)] >= MOST_OF_ONE_NAME:
            return f"{MOST_OF_ONE_NAME} pods of the name {entry.name} are being created at once"
        return ""

    def _row_without_room(self, entry: Entry, heads: Collection[Entry]) -> QuotaRow | None:
        """Return a row that has no room for an entry; None if there is room. An entry that adds nothing has room.

        A vacant slot counts although nobody uses its GPUs. If the quota was lowered below it, it is not filled again.
        """
        after, before = self._books.booked_with(entry), self._books.booked
        queued = reserved_by_heads(heads, self._tenant)
        is_vacant = (entry.namespace, entry.slot, "Vacant") in self._entries
        for row, gpus in after.items():
            if gpus > before[row] and gpus + queued[row] > row.hard:
                return row
            if is_vacant and gpus > row.hard and any(row.counts(each.tier, each.flavor) for each in entry.wants):
                return row
        return None

    def _reserved_before(self, booking: Booking | GangBooking) -> list[Entry]:
        """Return the reservations for the queue that count against a booking: not its own, and none of a lower tier."""
        if not self._for_queue:  # mostly
            return []
        if isinstance(booking, GangBooking):
            own = {booking.uid}
        else:
            own = {booking.holder, booking.gang or booking.controller}
        return [each for each in self._for_queue if each.rank >= booking.rank and each.uid not in own]

    def _shortfall_of_gang(
        self, booking: GangBooking, reservation: Entry, heads: Collection[Entry]
    ) -> Shortfall | None:
        row = self._row_without_room(reservation, heads)
        if row is None:
            return None
        return self._short(booking.charges, row, self._books.without_gang(reservation), heads)

    def _shortfall(self, booking: Booking, entry: Entry, heads: Collection[Entry]) -> Shortfall:
        shared = {claim for charge in booking.charges for claim in charge.shared}
        row = self._row_without_room(entry, heads) or self._tenant.bounds[0]
        return self._short(booking.charges, row, self._books.without(shared), heads)

    def _short(
        self, charges: Sequence[Charge], row: QuotaRow, others_use: Usage, heads: Collection[Entry]
    ) -> Shortfall:
        """Return the shortfall on the narrowest row that all charges together would overdraw, or else on `row`."""
        reserved = free_for_queue(others_use, heads, self._tenant)
        usage = {each: gpus + reserved[each] for each, gpus in others_use.items()}
        found = shortfall(charges, self._tenant, usage) or Shortfall(charges[0], row, usage)
        return replace(found, reserved=reserved)


def _pod(booking: Booking, tenant: Tenant) -> Entry:
    maker = booking.workload if tenant.has_queue and booking.workload else booking.controller
    return Entry(
        uid=booking.holder,
        namespace=booking.namespace,
        name=booking.name,
        maker=maker,
        of=booking.gang or booking.controller,
        state="Reserved",
        wants=booking.charges,
        instead_of=booking.moved_from,
        tries_again=booking.tries_again,
    )


def _length(found: Account | Entry | Booking | GangBooking) -> int:
    """Return how many bytes it has as JSON."""
    return len(msgspec.json.encode(found))


def _name(pod: Entry) -> tuple[str, str]:
    return pod.namespace, pod.name or pod.uid


def _is_replaceable(pod: Entry) -> bool:
    """Tell whether a replacement may share the slot of a pod. A pod in another pod's slot has no replacement."""
    return not pod.slot and (pod.state == "Vacant" or (pod.preempted and pod.state == "Used"))


def _distinct_slots(pods: Iterable[Entry]) -> list[str]:
    """Return the uids of replaceable pods, one for each group of equal vacant slots.

    A pod without room in one of them has none in the others.
    """
    found = dict[object, str]()
    for each in pods:
        shares = any(charge.shared for charge in each.wants)
        equal = (each.of, *((one.gpus, one.tier, one.flavor) for one in each.wants))
        found.setdefault(each.uid if shares or each.state != "Vacant" else equal, each.uid)
    return list(found.values())


def open_tries(pods: Iterable[Entry]) -> dict[str, str]:
    """Return the slots in which no pod was seen except the replaced one, each with the name of its latest try.

    The slot whose latest try is the oldest comes first.
    """
    tries, used = dict[str, str](), set[str]()
    for each in pods:
        slot = each.slot or each.uid
        if each.state == "Reserved" and each.tries_again:
            tries.pop(slot, None)
            tries[slot] = each.name
        elif not _is_replaceable(each):
            used.add(slot)
    return {slot: name for slot, name in tries.items() if slot not in used}


def gang_to_book(booking: GangBooking) -> Entry:
    """Return the gang of a booking, without GPUs."""
    return Entry(
        uid=booking.uid, namespace=booking.namespace, kind=booking.kind, name=booking.name, of_pods=booking.of_pods
    )
