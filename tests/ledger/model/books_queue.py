"""The queue in the model: what a leader books of the pods behind their gates, by one rule and in one order."""

from tests.ledger.model.books_account import WITH_LEFT, Entries, Entry, added, value
from tests.ledger.model.books_state import State, View
from tests.ledger.model.books_writes import Writes

Unit = tuple[int, ...]
"""Pods that are booked together."""


class Queue(Writes):
    """Books first what adds nothing to a row, and then the others by tier and age."""

    def queue(self, s: State, entries: Entries, view: View) -> tuple[Entries, str]:
        """Return the entries with what is booked and what the head reserves, and the pods that the booking wrongs."""
        wrong, reserved = "", set[int]()
        for unit in self.units(view, entries) if self.on("nothing") else ():
            after = self.with_unit(s, entries, unit)
            if not any(added(entries, after, self.rows)) and not self.short(s, entries, after, unit):
                entries = after
        for unit in self.units(view, entries):
            after = self.with_unit(s, entries, unit)
            short = self.short(s, entries, after, unit)
            if not short:
                wrong = wrong or self.wronged(s, view, entries, after, unit)
                entries = after
            elif self.on("kept") and (not self.on("never") or self.could_fit(s, unit)):
                bare = without_reserved(entries)
                really = self.fit(s).short_rows(bare, self.with_unit(s, bare, unit), self.items[unit[0]].tier)
                if really and reserved.isdisjoint(really) and (self.on("each row") or not reserved):
                    reserved.update(really)
                    entries |= {self.reserve(s, bare, unit, really)}
        return entries, wrong

    def units(self, view: View, entries: Entries) -> list[Unit]:
        booked = {each.item for each in entries if each.state != "K"}
        together = dict[tuple[int, int], list[int]]()
        for i in sorted(self.among(view.at, "h") - booked):
            gang = self.items[i].gang
            seen = gang >= 0 and view.at[gang] == "s"
            if gang >= 0 and not seen and self.on("sure"):
                continue
            is_whole = seen and gang not in booked and self.on("whole")
            together.setdefault((gang, -1) if is_whole else (-1, i), []).append(i)
        return sorted(map(tuple, together.values()), key=self.turn)

    def turn(self, unit: Unit) -> tuple[int, int, int]:
        return self.due(unit) if self.on("age of work") else (-self.items[unit[0]].tier, unit[0], 0)

    def due(self, unit: Unit) -> tuple[int, int, int]:
        item = self.items[unit[0]]
        of_work = self.items[item.gang] if item.gang >= 0 else item
        return -item.tier, of_work.age, unit[0]

    def with_unit(self, s: State, entries: Entries, unit: Unit) -> Entries:
        gang, is_sure = self.items[unit[0]].gang, self.on("sure")
        gang = self.items[unit[0]].gang
        if gang >= 0 and self.of(entries, gang) is None and self.on("whole") and s.at[gang] == "s" and is_sure:
            entries |= {self.entry(gang, "U", wants=self.wants_of(s.at, gang))}
        for i in unit:
            choices = [after for after, _ in self.slots_for(s, entries, i, "R")]
            entries = min(choices, key=lambda after: added(entries, after, self.rows))
        return entries

    def short(self, s: State, entries: Entries, after: Entries, unit: Unit) -> list[int]:
        if not self.on("strict"):
            entries, after = without_reserved(entries), without_reserved(after)
        return self.fit(s).short_rows(entries, after, self.items[unit[0]].tier)

    def could_fit(self, s: State, unit: Unit) -> bool:
        gang = self.items[unit[0]].gang
        wants = self.wants_of(s.at, gang if gang >= 0 else unit[0])
        return all(gpus <= hard for gpus, hard in zip(wants, s.quota, strict=True))

    def reserve(self, s: State, entries: Entries, unit: Unit, short: list[int]) -> Entry:
        """On short rows all that it adds, on the others what it needs there beyond what will end on the short one.

        The last row is the total, of which each other row is a part.
        """
        after, total = self.with_unit(s, entries, unit), self.rows - 1
        asks, then = added(entries, after, self.rows), value(after, WITH_LEFT, self.rows)
        missing = {row: then[row] - s.quota[row] for row in short}
        ends = max((gpus for row, gpus in missing.items() if row != total), default=0)
        rest = tuple(max(gpus - (ends if row == total else 0), 0) for row, gpus in enumerate(asks))
        wants = tuple(asks[r] if r in short else rest[r] * self.on("total") for r in range(self.rows))
        return Entry(unit[0], f"kept {unit[0]}", "K", wants, tier=self.items[unit[0]].tier)

    # --- pods that a booking wrongs---------------------------------------------------------------------------------
    def wronged(self, s: State, view: View, before: Entries, after: Entries, unit: Unit) -> str:
        """Tell of a replacement or of one before it in the queue that a booking wrongs."""
        for first in self.units(view, before):
            if self.due(first) >= self.due(unit) or not self.could_fit(s, first):
                continue
            if not self.short(s, without_reserved(before), without_reserved(self.with_unit(s, before, first)), first):
                return f"VIOLATION: {self.names(*first)} is overtaken; "
            if wrong := self.passed(s, before, after, first):
                return wrong
        return self.robbed(s, before, after)

    def robbed(self, s: State, before: Entries, after: Entries) -> str:
        """Report a replacement that lacks room only because of those that were booked."""
        booked = {each.item for each in after} - {each.item for each in before}
        for i, item in enumerate(self.items):
            ended, gone = item.after, item.gang >= 0 and s.at[item.gang] == "e"
            is_due = ended >= 0 and not gone and s.at[ended] == "e" and ended not in s.timed and s.at[i] in "ngh"
            unknown = (old := self.of(after, ended)) is not None and old.state == "U"
            if (
                not is_due
                or unknown
                or i in booked
                or self.of(after, i)
                or any(self.items[b].family == item.family for b in booked)
            ):
                continue
            if self.no_room(s, after, i) and not self.no_room(s, before, i):
                return f"VIOLATION: the slot of {self.names(ended)} is taken before its replacement comes; "
        return ""

    def no_room(self, s: State, entries: Entries, i: int) -> bool:
        entries = without_reserved(entries)
        fit = self.fit(s)
        return all(
            fit.short_rows(entries, after, self.items[i].tier) for after, _ in self.slots_for(s, entries, i, "R")
        )

    def passed(self, s: State, before: Entries, after: Entries, head: Unit) -> str:
        """Tell of the first of the queue, where somebody behind it takes what it needs, or will need in the total."""
        before, after = without_reserved(before), without_reserved(after)
        mine, total = self.with_unit(s, before, head), self.rows - 1
        short = self.fit(s).short_rows(before, mine, self.items[head[0]].tier)
        asks, then = added(before, mine, self.rows), value(before, WITH_LEFT, self.rows)
        ends = max((then[row] + asks[row] - s.quota[row] for row in short if row != total), default=0)
        takes = added(before, after, self.rows)
        too_full = takes[total] > 0 and then[total] + takes[total] + asks[total] - ends > s.quota[total]
        if any(takes[row] > 0 for row in short) or too_full:
            return f"VIOLATION: {self.names(*head)} is passed; "
        return ""

    def names(self, *items: int) -> str:
        return "+".join(self.items[i].name for i in sorted(items)) or "nothing"


def without_reserved(entries: Entries) -> Entries:
    return frozenset(each for each in entries if each.state != "K")
