"""Properties of every state of the model of Hold."""

from tests.ledger.model.hold_state import Leader, Scenario, State, View, caught_up, charge, members, pods_gang, swap
from tests.ledger.model.hold_writes import Writes


class Properties(Writes):
    """The properties: nothing is overdrawn, and every pod that fits is opened once nothing disturbs any more."""

    def __init__(self, scenario: Scenario, without: str = "") -> None:
        super().__init__(scenario, without)
        self.settled_before: dict[object, str] = {}

    def must_cover(self, s: State) -> int:
        """Return what is open, and what a create or opening under way may add."""
        under_way = frozenset(i for each in s.leaders for i, _ in each.plan)
        return charge(self.pods, members(s.at, "oty") | under_way, s.ledger.replacements, s.ledger.gangs)

    def wrong(self, s: State) -> str:
        is_open = charge(self.pods, members(s.at, "ot"), s.ledger.replacements, frozenset())
        if is_open > s.cap:
            return f"VIOLATION: overdrawn, {is_open} open and the quota {s.cap}"
        if not self.off and self.cost(s.ledger) < self.must_cover(s):
            return "VIOLATION: the ledger counts less than was reserved"
        return self.stuck(s, s.ledger.term) or self.stuck(s, 1 - s.ledger.term)

    def stuck(self, s: State, k: int) -> str:
        """Let one leader work alone from here, and return what fits and stays gated. A new one remembers nothing."""
        at = "".join("d" if c in "nguy" else c for c in s.at)
        me = s.leaders[k]
        key = (
            at,
            s.born,
            s.ledger,
            s.hold,
            s.quota,
            k == s.ledger.term and me.view is not None and (me.refused, me.skip),
        )
        if key not in self.settled_before:
            fresh = (
                Leader(View(at, s.rv))
                if k != s.ledger.term or not me.view
                else me._replace(view=View(at, s.rv), plan=frozenset())
            )
            alone = s._replace(at=at, ledger=s.ledger._replace(term=k), leaders=swap((Leader(), Leader()), k, fresh))
            self.settled_before[key] = self.unsettled(alone, k)
        return self.settled_before[key]

    def unsettled(self, s: State, k: int) -> str:
        for i in s.leaders[k].refused:
            s = s._replace(leaders=swap(s.leaders, k, s.leaders[k]._replace(skip=s.leaders[k].skip | {i})))
        for _ in range(len(self.pods) + 2):
            _, s = self.write(s, k, members(s.at, "d"))
            for i, _ in s.leaders[k].plan - {(i, s.rv[i]) for i in s.leaders[k].skip}:
                s = self.put(s, i, "o") if s.at[i] == "h" else s
            view = s.leaders[k].view
            assert view
            s = s._replace(
                leaders=swap(s.leaders, k, s.leaders[k]._replace(view=caught_up(view, 99), plan=frozenset()))
            )
        waiting = [i for i in s.born if s.at[i] == "h" and i not in s.leaders[k].skip]
        for i in sorted(waiting, key=lambda i: self.rank(s, i)):
            unit, gang = self.pods[i].unit, pods_gang(self.pods, self.pods[i].unit)
            if any(self.pods[j].unit == unit and c == "o" for j, c in enumerate(s.at)) and gang:
                return "VIOLATION: half a gang is open for ever"
            gangs = s.ledger.gangs | ({unit} if gang else set())
            more = s.ledger._replace(reserved=(s.ledger.reserved | {i}) - s.leaders[k].skip, gangs=gangs)
            if self.cost(more) <= s.quota:
                return f"VIOLATION: {self.pods[i].name} fits and is gated for ever"
            if self.could_fit(s, unit):
                break
        return ""
