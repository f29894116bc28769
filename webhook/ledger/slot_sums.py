"""Adds up the entries of an account on each row of a quota.

An entry is in a slot, and a slot may be inside another one. **The value of a slot on a row is the larger of its
largest own entry and the sum of the slots inside it. Usage of a row is the sum over the outermost slots.** So a gang is
a slot with its pods inside, a ResourceClaim is a slot that its pods share, the replacement of a preempted pod is in the
slot of that pod, and a second create of a name is in the slot of the name.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from webhook.ledger.account import Account, Entry
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

NOTHING = Decimal(0)
Amounts = tuple[Decimal, ...]
"""GPUs on each row, in the order of the tenant's rows."""


def booked_of(account: Account, tenant: Tenant) -> dict[QuotaRow, Decimal]:
    """Return the GPUs on each row that pods use or have reserved, without those reserved for the queue."""
    return SlotSums(account.entries, tenant).booked


def used_of(account: Account, tenant: Tenant) -> dict[QuotaRow, Decimal]:
    """Return the GPUs on each row that existing pods use."""
    return SlotSums([each for each in account.entries if each.state == "Used" and not each.is_gang], tenant).booked


def reserved_by_heads(entries: Iterable[Entry], tenant: Tenant, rank: int = 0) -> dict[QuotaRow, Decimal]:
    """Return the GPUs on each row that heads of the queue reserve against bookings of this rank."""
    reserved = [each.reserves for each in entries if each.state == "ForQueue" and each.rank >= rank]
    return {row: sum((each.get(row.label, NOTHING) for each in reserved), NOTHING) for row in tenant.bounds}


def free_for_queue(usage: Usage, entries: Iterable[Entry], tenant: Tenant, rank: int = 0) -> dict[QuotaRow, Decimal]:
    """Return the free GPUs on each row that heads of the queue reserve. A head may ask for more than is free."""
    reserved = reserved_by_heads(entries, tenant, rank)
    return {row: min(gpus, max(row.hard - usage[row], NOTHING)) for row, gpus in reserved.items()}


def left_of(
    usage: Usage, entries: Iterable[Entry], tenant: Tenant, rank: Callable[[str | None], int]
) -> dict[QuotaRow, Decimal]:
    """Return the GPUs that new pods of each row may still use while heads of the queue reserve some; {} otherwise.

    `rank` returns the value of a tier. A head of gpu-batch reserves free GPUs of the total, and gpu-training may use
    them.
    """
    heads, left = [each for each in entries if each.state == "ForQueue"], dict[QuotaRow, Decimal]()
    for row in tenant.rows if heads else ():
        reserved = free_for_queue(usage, heads, tenant, rank(row.tier))
        free = (each.hard - usage[each] - reserved[each] for each in tenant.rows if each.counts(row.tier, row.flavor))
        left[row] = max(min(free), NOTHING)
    return left


class _Slot(NamedTuple):
    outer: str
    own: Amounts
    inside: Amounts

    @property
    def value(self) -> Amounts:
        return tuple(map(max, self.own, self.inside))


class _Part(NamedTuple):
    """The GPUs of an entry in one slot: its own, or its part of a claim."""

    slot: str
    outer: str
    amounts: Amounts


class SlotSums:
    """The usage of each row by the entries of an account, slot by slot, without reservations for the queue."""

    def __init__(self, entries: Iterable[Entry], tenant: Tenant) -> None:
        self._entries = [each for each in entries if each.state != "ForQueue"]
        self._tenant, self._rows = tenant, tenant.bounds
        self._sum = self._nothing = (NOTHING,) * len(self._rows)
        # 1. Caches: on which rows a tier and flavor counts, and the GPUs of a charge on each row.
        self._counting: dict[tuple[str | None, str | None], Sequence[bool]] = {}
        self._known: dict[tuple[Decimal, str | None, str | None], Amounts] = {}
        # 2. The slot of each gang; the gangs and controllers that pods belong to; the pods whose slots others share.
        self._gangs = {each.gang: _gang_slot(each) for each in self._entries if each.kind}
        self._with_pods = {(each.namespace, each.of) for each in self._entries if not each.kind}
        self._shared = {each.slot for each in self._entries if each.slot and not each.kind}
        # 3. By slot: its sums, and its entries. By the uid of a pod: its slot.
        self._slots: dict[str, _Slot] = {}
        self._entries_in: dict[str, list[Entry]] = {}
        self._slot_of: dict[str, str] = {}
        for each in self._entries:
            self._stand(each, self._slot(each))
        self._add_up()

    def _add_up(self) -> None:
        """Sum all slots: first their own entries, then the slots inside them, then the outermost slots."""
        # 1. Most slots have one entry and nothing inside.
        own, outer = dict[str, Amounts](), dict[str, str]()
        for slot, standing in self._entries_in.items():
            around = self._outer(standing)
            for each in standing:
                for part in self._parts(each, slot, around):
                    before = own.get(part.slot)
                    own[part.slot] = part.amounts if before is None else tuple(map(max, before, part.amounts))
                    outer[part.slot] = part.outer

        # 2. Slots inside of others.
        inside = dict[str, Amounts]()
        for slot, around in outer.items():
            if around:
                inside[around] = tuple(map(Decimal.__add__, inside.get(around, self._nothing), own[slot]))

        # 3. Thousands of slots have few different amounts, so each is added once.
        alike = dict[int, tuple[Amounts, int]]()
        for slot, around in outer.items():
            found = self._slots[slot] = _Slot(around, own[slot], inside.get(slot, self._nothing))
            if not around:
                amounts = found.value if slot in inside else found.own
                alike[id(amounts)] = amounts, alike.get(id(amounts), (amounts, 0))[1] + 1
        for amounts, times in alike.values():
            self._sum = tuple(total + times * gpus for total, gpus in zip(self._sum, amounts, strict=True))

    @property
    def booked(self) -> dict[QuotaRow, Decimal]:
        return dict(zip(self._rows, self._sum, strict=True))

    def without(self, claims: Iterable[str]) -> dict[QuotaRow, Decimal]:
        """Return the usage without the slots of these ResourceClaims."""
        return self._without(map(_claim_slot, claims))

    def without_gang(self, gang: Entry) -> dict[QuotaRow, Decimal]:
        """Return the usage without the slot of a gang."""
        return self._without((_gang_slot(gang),))

    def has_pods(self, gang: Entry) -> bool:
        """Tell whether pods use or reserve GPUs inside the slot of a gang."""
        found = self._slots.get(_gang_slot(gang))
        return found is not None and any(found.inside)

    def booked_with(self, entry: Entry) -> dict[QuotaRow, Decimal]:
        """Return the usage with one entry more."""
        if self._changes_other_slots(entry):
            return SlotSums([*self._entries, entry], self._tenant).booked
        _, total = self._changed(self._parts_of_next(entry))
        return dict(zip(self._rows, total, strict=True))

    def with_entry(self, entry: Entry) -> "SlotSums":
        """Return the sums with one entry more: this object, unless other entries change their slots."""
        if self._changes_other_slots(entry):
            return SlotSums([*self._entries, entry], self._tenant)
        changed, self._sum = self._changed(self._parts_of_next(entry))
        self._slots.update(changed)
        slot = self._slot_of_next(entry)
        self._entries.append(entry)
        self._stand(entry, slot)
        if entry.is_gang:
            self._gangs[entry.gang] = slot
        else:
            self._with_pods.add(entry.gang)
            self._shared |= {entry.slot} if entry.slot else set()
        return self

    def _slot(self, entry: Entry) -> str:
        """Return the slot of a gang, of a sum, or of a pod: that of the replaced pod, of its uid, or of its name."""
        if entry.kind:
            return _gang_slot(entry)
        if not entry.uid:
            return f"pods of {entry.namespace}/{entry.of}"
        if entry.slot:
            return entry.slot
        by_itself = entry.uid in self._shared or entry.instead_of is not None or not entry.name
        return entry.uid if by_itself else f"{entry.namespace}/{entry.name}"

    def _slot_of_next(self, entry: Entry) -> str:
        return self._slot_of.get(entry.slot, entry.slot) if entry.slot and not entry.is_gang else self._slot(entry)

    def _changes_other_slots(self, entry: Entry) -> bool:
        """Tell whether one entry more makes other entries change their slots, or the slots around those."""
        if entry.is_gang:
            return entry.gang not in self._gangs and entry.gang in self._with_pods
        if entry.uid in self._shared:
            return True
        slot = self._slot_of_next(entry)
        standing = self._entries_in.get(slot, ())
        if entry.slot and [each.uid for each in standing] not in ([], [entry.slot]):
            return True
        of_shared_slots = not entry.slot and any(each.uid in self._shared for each in standing)
        # Where neither gang is booked nothing is around the slot, before and after.
        others = [each.gang for each in standing if each.gang != entry.gang]
        return of_shared_slots or any(gang in self._gangs for gang in (*others, *([entry.gang] if others else ())))

    def _outer(self, standing: Sequence[Entry]) -> str:
        """Return the slot around a slot: that of the gang to which all entries of the slot belong."""
        first = standing[0]
        if not self._gangs or first.kind or (len(standing) > 1 and len({each.gang for each in standing}) > 1):
            return ""
        return self._gangs.get((first.namespace, first.of), "")

    def _stand(self, entry: Entry, slot: str) -> None:
        self._entries_in.setdefault(slot, []).append(entry)
        if not entry.kind:
            self._slot_of.setdefault(entry.uid, slot)

    def _parts_of_next(self, entry: Entry) -> Iterator[_Part]:
        return self._parts(entry, self._slot_of_next(entry), self._outer([entry]))

    def _parts(self, entry: Entry, slot: str, outer: str) -> Iterator[_Part]:
        wants = entry.wants
        if len(wants) == 1 and not wants[0].shared and entry.instead_of is None:
            yield _Part(slot, outer, self._amounts(wants[0]))
            return
        instead = self._counts(entry.instead_of) if entry.instead_of is not None else ()
        own = [NOTHING] * len(self._nothing)
        for charge in wants:
            for nth, counts in enumerate(self._counts(charge)):
                own[nth] += charge.own if counts and not (instead and instead[nth]) else NOTHING
            for claim, gpus in charge.shared.items():
                shared = tuple(gpus if counts else NOTHING for counts in self._counts(charge))
                yield _Part(_claim_slot(claim), "", shared)
        yield _Part(slot, outer, tuple(own))

    def _amounts(self, charge: Charge) -> Amounts:
        """Return the GPUs of a charge on each row. Thousands of pods have few kinds of charges."""
        kind = charge.gpus, charge.tier, charge.flavor
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = tuple(charge.gpus if counts else NOTHING for counts in self._counts(charge))
        return found

    def _counts(self, charge: Charge) -> Sequence[bool]:
        """Tell for each row whether a charge counts there."""
        kind = charge.tier, charge.flavor
        if kind not in self._counting:
            self._counting[kind] = [row.counts(*kind) for row in self._rows]
        return self._counting[kind]

    def _changed(self, parts: Iterable[_Part]) -> tuple[dict[str, _Slot], Amounts]:
        """Return the slots that change with these parts, and the sum of all slots then: what `_add_up` would find."""
        changed, total, empty = dict[str, _Slot](), self._sum, _Slot("", self._nothing, self._nothing)

        def found(name: str) -> _Slot | None:
            return changed.get(name) or self._slots.get(name)

        for part in parts:
            before = found(part.slot) or empty._replace(outer=part.outer)
            changed[part.slot] = after = before._replace(own=tuple(map(max, before.own, part.amounts)))
            if after.outer:
                more = map(Decimal.__sub__, after.value, before.value)
                before = found(after.outer) or empty
                changed[part.outer] = after = before._replace(inside=tuple(map(Decimal.__add__, before.inside, more)))
            total = tuple(a + b - c for a, b, c in zip(total, after.value, before.value, strict=True))
        return changed, total

    def _without(self, slots: Iterable[str]) -> dict[QuotaRow, Decimal]:
        found = [self._slots[slot].value for slot in slots if slot in self._slots]
        return {row: gpus - sum(each[nth] for each in found) for nth, (row, gpus) in enumerate(self.booked.items())}


def _gang_slot(gang: Entry) -> str:
    """Return a gang's slot: `slot`, or by its name; a group's is by its uid, because a workload may have its name."""
    return f"{gang.namespace}/{gang.kind}/{gang.slot or (not gang.of_pods and gang.name) or gang.uid}"


def _claim_slot(claim: str) -> str:
    return f"claim {claim}"
