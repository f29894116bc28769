"""The properties of every state: no row is overdrawn, and a quiet account equals what exists."""

from tests.ledger.model.books_account import REAL, Amounts, Entries, value
from tests.ledger.model.books_queue import Queue, without_reserved
from tests.ledger.model.books_state import Leader, Scenario, State, View

SHOWN = {"s": "s", "h": "h", "t": "t", "e": "e"}


class Properties(Queue):
    """No row is overdrawn, and once all is quiet the account equals what exists."""

    def __init__(self, scenario: Scenario, without: str = "") -> None:
        super().__init__(scenario, without)
        self.settled_before: dict[object, str] = {}

    def exists(self, s: State, letters: str, plan: frozenset[int] = frozenset()) -> Amounts:
        """Count the pods in these states: a claim once, a preempted pod and its replacement at the larger of both."""
        live = [
            i for i in self.among(s.at, letters) | plan if not self.items[i].is_workload and self.items[i].changes < 0
        ]
        shares = dict[object, Amounts]()
        for i in live:
            changed = [k for k, each in enumerate(self.items) if each.changes == i and s.at[k] in letters]
            versions = [self.items[k].wants for k in changed if s.at[k] == "y"]
            wants = tuple(map(max, self.wants_of(s.at, i), *versions)) if versions else self.wants_of(s.at, i)
            root = s.pairs[i] if s.pairs[i] in live else i
            is_paired = root != i or any(s.pairs[h] == i for h in live)
            key = self.items[i].claim or (not is_paired and self.items[i].place) or root
            shares[key] = tuple(map(max, shares.get(key, (0,) * self.rows), wants))
        return tuple(sum(each[row] for each in shares.values()) for row in range(self.rows))

    def paired(self, s: State, entries: Entries) -> tuple[int, ...]:
        """Note which preempted pods those replace that a leader has booked."""
        pairs = list(s.pairs)
        for each in entries:
            victim = next((e.item for e in entries if e.slot == each.slot and e.state == "T"), -1)
            if victim >= 0 and each.state == "R" and s.at[each.item] == "h" and victim not in pairs:
                pairs[each.item] = victim
        return tuple(pairs)

    def reserved(self, s: State) -> Amounts:
        """Count what exists, and what may by a create or an opening that is under way."""
        return self.exists(s, "sty", frozenset(i for each in s.leaders for i in each.plan if s.at[i] == "h"))

    def wrong(self, s: State) -> str:
        there = self.exists(s, "st")
        if any(gpus > cap for gpus, cap in zip(there, s.cap, strict=True)):
            return f"VIOLATION: overdrawn, {there} exist of {s.cap}"
        if not self.off and s.ledger.sealed and self.scenario.way != "share":
            counted = value(s.ledger.entries, REAL, self.rows)
            if any(have < due for have, due in zip(counted, self.reserved(s), strict=True)):
                return "VIOLATION: the account counts less than was reserved"
        if not s.ledger.sealed or self.among(s.at, "y"):
            return ""
        return self.when_quiet(s)

    def when_quiet(self, s: State) -> str:
        """Let a leader work alone on the newest view until nothing changes any more."""
        at = "".join("d" if c in "ng" else c for c in s.at)
        key = at, s.ledger.entries, s.quota, s.pairs
        if key not in self.settled_before:
            view = View("".join(SHOWN.get(c, "-") for c in at))
            alone = s._replace(at=at, leaders=(Leader(view), Leader()), timed=frozenset(range(len(at))))
            self.settled_before[key] = self.unsettled(alone)
        return self.settled_before[key]

    def unsettled(self, s: State) -> str:
        for _ in range(len(self.items) + 1):
            me = s.leaders[0]
            assert me.view
            entries = self.count(s, me.view, self.among(s.at, "d"), timed=True)
            if self.scenario.hold:
                entries, _ = self.queue(s, entries, me.view)
            opened = self.to_open(entries, s.at)
            at = "".join("s" if i in opened else c for i, c in enumerate(s.at))
            view = me.view._replace(at="".join("s" if i in opened else c for i, c in enumerate(me.view.at)))
            ledger = s.ledger._replace(entries=entries)
            s = s._replace(at=at, ledger=ledger, leaders=(Leader(view), Leader()), pairs=self.paired(s, entries))
        return self.miscounted(s) or self.stuck(s)

    def to_open(self, entries: Entries, at: str) -> frozenset[int]:
        """Return the pods whose gate may be opened; of tries that share a slot none until the others are settled."""
        booked = (each for each in entries if each.state == "R" and at[each.item] == "h")
        return frozenset(e.item for e in booked if self.scenario.hold or not self.has_live(entries, e.slot, e.item))

    def miscounted(self, s: State) -> str:
        entries = without_reserved(s.ledger.entries)
        if any(each.state in "RL" and s.at[each.item] != "h" for each in entries):
            return "VIOLATION: a reservation outlives what it was for"
        pods = frozenset(e for e in entries if e.state != "R" and not self.items[e.item].is_workload)
        counted, there = value(pods, REAL, self.rows), self.exists(s, "st")
        return f"VIOLATION: counts {counted} for ever, {there} exist" if counted != there else ""

    def stuck(self, s: State) -> str:
        """Tell of half a gang, and of who waits though there is room."""
        entries = without_reserved(s.ledger.entries)
        for i in sorted(self.among(s.at, "h")):
            gang = self.items[i].gang
            if gang >= 0 and s.at[gang] != "s":
                continue
            if gang >= 0 and self.is_half(s, gang):
                return "VIOLATION: half a gang is open for ever"
            if not self.short(s, entries, self.with_unit(s, entries, (i,)), (i,)) and self.is_first(s, i):
                return f"VIOLATION: {self.items[i].name} fits and waits for ever"
        return ""

    def is_half(self, s: State, gang: int) -> bool:
        """Compare with what the gang was applied with, because a gang that waits to grow runs."""
        mates = [i for i in self.among(s.at, "s") if self.items[i].gang == gang]
        has = [sum(self.items[i].wants[row] for i in mates) for row in range(self.rows)]
        return bool(mates) and any(gpus < all_ for gpus, all_ in zip(has, self.items[gang].wants, strict=True))

    def is_first(self, s: State, i: int) -> bool:
        """Return true where nobody waits before it who could ever fit."""
        view = s.leaders[0].view
        assert view
        for unit in self.units(view, s.ledger.entries):
            if i in unit:
                return True
            if self.could_fit(s, unit):
                return False
        return False
