"""Tells which refusals of the model are unjust: nothing that exists, or that may be stored yet, is in the way."""

from tests.ledger.model.books_properties import Properties
from tests.ledger.model.books_state import FAULTS, State


class Refusals(Properties):
    """Judges a refusal for want of room by what the leader may know."""

    def unjust(self, s: State, i: int) -> str:
        if self.is_for_nothing(s, i):
            return "VIOLATION: refused for tries of which nothing came; "
        is_disturbed = s.left[FAULTS.index("edit")] != self.scenario.faults.get("edit", 0)
        if s.quota != s.cap or is_disturbed or self.items[i].is_workload:
            return ""
        if self.is_of_admitted_gang(s, i):
            return "VIOLATION: a pod of a gang that was admitted is refused; "
        if self.is_replacement(s, i):
            return "VIOLATION: the replacement of a preempted pod is refused; "
        return "VIOLATION: refused though it fits; " if self.fits_with_all(s, i) else ""

    def is_for_nothing(self, s: State, i: int) -> bool:
        """Find a controller that makes one pod at once, and holds more than one slot by creates that were refused."""
        dead = [e for e in s.ledger.entries if s.at[e.item] == "d" and self.items[e.item].maker]
        slots = {(self.items[e.item].maker, e.slot) for e in dead if self.items[e.item].maker != self.items[i].maker}
        return len(slots) > len({maker for maker, _ in slots})

    def is_of_admitted_gang(self, s: State, i: int) -> bool:
        gang = self.items[i].gang
        mates = [k for k in self.among(s.at, "sty") | {i} if self.items[k].gang == gang]
        asked = [sum(self.items[k].wants[row] for k in mates) for row in range(self.rows)]
        return gang >= 0 and all(map(int.__le__, asked, self.wants_of(s.at, gang)))

    def is_replacement(self, s: State, i: int) -> bool:
        """Find a preempted pod that holds at least as much, is seen, and has no replacement yet."""
        item, entries = self.items[i], s.ledger.entries
        old = self.of(entries, item.after) if item.after >= 0 else None
        if old is None or old.state != "T" or old.slot.startswith("claim"):
            return False
        return all(map(int.__le__, item.wants, old.wants)) and not self.has_live(entries, old.slot, old.item)

    def fits_with_all(self, s: State, i: int) -> bool:
        """Count all that exists, that may be stored, or that the leader has not seen end."""
        if any(each.is_workload for each in self.items):
            return False
        known = frozenset(e.item for e in s.ledger.entries) | self.among(s.at, "sty") | {i}
        most = self.exists(s._replace(at="".join("y" if k in known else c for k, c in enumerate(s.at))), "y")
        return all(map(int.__le__, most, s.quota))
