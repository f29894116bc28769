"""The writes of the account in the model: a replica books, and a leader counts."""

from collections.abc import Iterator

from tests.ledger.model.books_account import Amounts, Entries, Entry, Fit, Item
from tests.ledger.model.books_state import Ledger, Scenario, State, View


class Writes:
    """The writes of the model, each one compare-and-swap."""

    def __init__(self, scenario: Scenario, without: str = "") -> None:
        self.scenario, self.items, self.off = scenario, scenario.items, without
        self.rows = len(scenario.quota)

    def on(self, rule: str) -> bool:
        return rule != self.off

    def fit(self, s: State) -> Fit:
        return Fit(s.quota, self.on("nothing"), self.on("lowered"))

    def among(self, at: str, letters: str) -> frozenset[int]:
        return frozenset(i for i, c in enumerate(at) if c in letters)

    # --- entries ---------------------------------------------------------------------------------------------------
    def entry(self, i: int, state: str, slot: str = "", wants: Amounts | None = None) -> Entry:
        item = self.items[i]
        if item.is_workload:
            target = i if item.changes < 0 else item.changes
            return Entry(i, f"gang {target}", state, wants or item.wants, tier=item.tier)
        by_name = item.slot if self.on("names") or not item.place else f"name {item.name}"
        by_name = f"name {item.name}" if item.claim and not self.on("claim") else by_name
        outermost = item.gang if self.on("inside") and not item.claim else -1
        return Entry(i, slot or by_name, state, wants or item.wants, outermost, item.tier)

    def wants_of(self, at: str, i: int) -> Amounts:
        """Return the demand of an object by the last change of it that is stored."""
        changes = [k for k, each in enumerate(self.items) if each.changes == i and at[k] == "s"]
        return self.items[changes[-1] if changes else i].wants

    def of(self, entries: Entries, i: int) -> Entry | None:
        return next((each for each in entries if each.item == i and each.state != "K"), None)

    def has_live(self, entries: Entries, slot: str, but: int) -> bool:
        return any(e.slot == slot and e.item != but and e.state in "UTR" for e in entries)

    # --- a replica -------------------------------------------------------------------------------------------------
    def booked(self, s: State, ledger: Ledger, i: int, state: str = "R") -> tuple[Entries, int] | None:
        """Return the entries with a booking, and the preempted pod whose slot it shares; None where it has no room."""
        entries, item = ledger.entries, self.items[i]
        if self.of(entries, i):
            return entries, -1
        for after, victim in self.slots_for(s, entries, i, state):
            if not self.fit(s).short_rows(entries, after, item.tier):
                return after, victim
        return None

    def slots_for(self, s: State, entries: Entries, i: int, state: str) -> Iterator[tuple[Entries, int]]:
        item = self.items[i]
        if item.changes >= 0 and not item.is_workload:
            old = self.items[item.changes].wants if self.on("move") else (0,) * self.rows
            news = tuple(0 if before else now for before, now in zip(old, item.wants, strict=True))
            yield entries | {self.entry(i, state, wants=news)}, -1
            return
        for each in sorted(entries) if item.maker else ():
            if each.state in "TL" and self.hands_on(entries, each, item):
                separate = f"after {each.item}" if self.on("apart") else each.slot
                rest = entries - {each} | ({each._replace(slot=separate)} if each.state == "T" else set())
                yield rest | {self.entry(i, state, separate)}, each.item if each.state == "T" else -1
        if self.scenario.way in ("share", "gate") and (first := self.unsettled_try(s, entries, i)):
            yield entries | {self.entry(i, state, first.slot)}, -1
        yield entries | {self.entry(i, state)}, -1

    def hands_on(self, entries: Entries, left: Entry, item: Item) -> bool:
        if self.items[left.item].family != item.family or (left.state == "T" and not self.on("replaces")):
            return False
        if left.slot.startswith("claim") and self.on("own"):
            return False
        return not (self.on("one") and self.has_live(entries, left.slot, left.item))

    def unsettled_try(self, s: State, entries: Entries, i: int) -> Entry | None:
        """An earlier create of the same controller that nobody has seen, and that a quorum read does not find."""
        maker = self.items[i].maker
        unseen = (each for each in sorted(entries) if each.state == "R" and self.items[each.item].maker == maker)
        return next((e for e in unseen if maker and e.item != i and s.at[e.item] not in "sth"), None)

    # --- a leader --------------------------------------------------------------------------------------------------
    def count(self, s: State, view: View, lapsed: frozenset[int], *, timed: bool) -> Entries:
        """The entries as a leader's view has them. `timed`: the time of all that is Left is over."""
        dropped = frozenset(e.item for e in s.ledger.entries if e.state == "R" and not self.on("seen"))
        entries_left = {each for old in s.ledger.entries if (each := self.counted(s, view, old, lapsed))}
        live = [each.slot for each in entries_left if each.state in "UTR"]
        entries_left = {each for each in entries_left if each.state != "L" or not (timed or each.slot in live)}
        entries_left = {self.in_its_own_slot(each, live) for each in entries_left}
        known = {each.item for each in entries_left}
        for i in sorted(self.among(view.at, "st") - known - dropped):
            if not self.items[i].is_workload and self.items[i].changes < 0:
                entries_left.add(self.entry(i, "T" if view.at[i] == "t" else "U", wants=self.wants_of(view.at, i)))
        return frozenset(entries_left)

    def in_its_own_slot(self, each: Entry, live: list[str]) -> Entry:
        """Return a preempted pod's entry to the slot of its name where its replacement came to nothing."""
        is_alone = each.state == "T" and live.count(each.slot) == 1
        return each._replace(slot=self.entry(each.item, "T").slot) if is_alone else each

    def counted(self, s: State, view: View, old: Entry, lapsed: frozenset[int]) -> Entry | None:
        seen, item = view.at[old.item], self.items[old.item]
        if old.state in "LK" or old.item in lapsed:
            return old if old.state == "L" else None
        if item.changes >= 0:
            return old if seen not in "sed" and view.at[item.changes] != "e" else None
        if item.is_workload:
            return self.counted_workload(view, old, seen)
        has_lost_gang = item.gang >= 0 and view.at[item.gang] == "e" and not self.on("part")
        return None if has_lost_gang else self.counted_pod(s, view, old, seen)

    def counted_workload(self, view: View, old: Entry, seen: str) -> Entry | None:
        if seen == "-":
            return old if self.on("promise") or old.state != "R" else None
        return old._replace(state="U", wants=self.wants_of(view.at, old.item)) if seen == "s" else None

    def counted_pod(self, s: State, view: View, old: Entry, seen: str) -> Entry | None:
        if old.state == "R" and seen in "sth" and not self.on("seen"):
            return None
        if seen in "st":
            return old._replace(state="T" if seen == "t" else "U", wants=self.wants_of(view.at, old.item))
        if seen == "e":
            has_maker = self.items[old.item].maker and old.item not in s.timed
            return old._replace(state="L") if self.scenario.hold and self.on("left") and has_maker else None
        return old if old.state == "R" else None
