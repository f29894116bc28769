"""The model of Hold: pods wait behind a scheduling gate, and the leader books and opens them. Breadth-first search.

It explores every interleaving of creates, users, another webhook, an administrator, and two leaders, one of which may
be paused between any two of its steps. A compare-and-swap wins only on the newest ledger, so one step is read, decide
and write. What may be old is a leader's view of pods, and the openings (`plan`) that it still has under way.

    python -m tests.ledger.model.hold             all rules in all scenarios, then each rule left out
    python -m tests.ledger.model.hold gang -whole one scenario without a rule
"""

import sys
from collections.abc import Iterator

from tests.ledger.model.hold_properties import Properties
from tests.ledger.model.hold_state import (
    FAULTS,
    NONE,
    RULES,
    SHOWN,
    Leader,
    Ledger,
    Pod,
    Scenario,
    State,
    View,
    caught_up,
    members,
    swap,
)
from tests.ledger.model.hold_writes import Step
from tests.ledger.model.search import search, search_all


class Model(Properties):
    """Everybody's steps."""

    def start(self) -> State:
        at, n = self.scenario.start, len(self.pods)
        ledger = Ledger(0, members(at, "o"), replacements=(-1,) * n)
        leading = Leader(View(at, (0,) * n))
        left = tuple(self.scenario.faults.get(each, 0) for each in FAULTS)
        quota = self.scenario.quota
        return State(
            at,
            (0,) * n,
            tuple(sorted(members(at, "oh"))),
            (),
            ledger,
            (leading, Leader()),
            self.scenario.hold,
            quota,
            quota,
            left,
        )

    def pod_steps(self, s: State, i: int) -> Iterator[Step]:
        pod, name, letter = self.pods[i], self.pods[i].name, s.at[i]
        if letter == "n" and (pod.after < 0 or s.at[pod.after] in "txe"):
            yield (
                f"{name} is sent {'with the gate' if s.hold else 'without the gate'}",
                self.put(s, i, "gu"[not s.hold]),
            )
        if letter == "u":
            yield self.review(s, i)
        if letter in "gy":
            yield f"{name} is stored", self.put(s, i, "h" if letter == "g" else "o")
            yield f"{name} is never stored", self.put(s, i, "d")
        if letter == "h":
            yield from self.fault(s, "delete", f"a user deletes {name}", self.put(s, i, "e"))
            yield from self.fault(s, "edit", f"a user edits {name}", self.put(s, i, "h", 1))
        if letter == "o":
            yield from self.fault(s, "preempt", f"{name} is preempted", self.put(s, i, "t"))
        if letter in "ot":
            yield f"{name} ends", self.put(s, i, "x" if letter == "t" else "e")

    # --- a leader's steps ------------------------------------------------------------------------------------------
    def leader_steps(self, s: State, k: int) -> Iterator[Step]:
        me, who = s.leaders[k], f"leader {k + 1}"
        if me.view and me.view.news:
            yield f"{who}'s watch moves on", changed(s, k, view=caught_up(me.view, 1))
        for i, version in sorted(me.plan):
            yield from self.opening(s, k, i, version)
        for i in me.refused:
            touched = self.put(s, i, "h", 1) if self.on("touch") and s.at[i] == "h" else s
            mine = touched.leaders[k]._replace(refused=me.refused - {i}, skip=me.skip | {i})
            yield f"{who} touches {self.pods[i].name}", touched._replace(leaders=swap(touched.leaders, k, mine))
        if self.on("term") and s.ledger.term != k:
            claimed = changed(s, k, view=None, refused=NONE, skip=NONE)
            yield from self.fault(
                s, "claim", f"{who} claims the ledger", claimed._replace(ledger=s.ledger._replace(term=k))
            )
        elif me.view is None:
            yield f"{who} lists", changed(s, k, view=View("".join(SHOWN.get(c, "-") for c in s.at), s.rv))
        else:
            yield self.write(s, k)
            lapsed = members(s.at, "d" if self.on("stays") else "dh") & s.ledger.reserved
            if lapsed:
                label, t = self.write(s, k, lapsed)
                yield label.replace("writes", "lets bookings lapse and writes"), t

    def opening(self, s: State, k: int, i: int, version: int) -> Iterator[Step]:
        me, opened = s.leaders[k], f"leader {k + 1} opens {self.pods[i].name}"
        if not self.on("before"):
            version = me.view.rv[i] if me.view else version
        if version != s.rv[i] and self.on("version"):
            return
        yield opened, self.put(s, i, "o")
        plan = frozenset(each for each in me.plan if each[0] != i)
        refused = s._replace(leaders=swap(s.leaders, k, me._replace(plan=plan, refused=me.refused | {i})))
        yield from self.fault(s, "refuse", f"another webhook refuses: {opened}", refused)

    # --- everybody's steps -----------------------------------------------------------------------------------------
    def fault(self, s: State, fault: str, label: str, after: State) -> Iterator[Step]:
        which = FAULTS.index(fault)
        if s.left[which]:
            yield label, after._replace(left=swap(s.left, which, s.left[which] - 1))

    def steps(self, s: State) -> Iterator[Step]:
        for i in range(len(self.pods)):
            yield from self.pod_steps(s, i)
        for k in (0, 1):
            yield from self.leader_steps(s, k)
        yield from self.fault(
            s, "mode", f"onExceed becomes {'Deny' if s.hold else 'Hold'}", s._replace(hold=not s.hold)
        )
        yield from self.fault(
            s, "raise", "the quota is raised", s._replace(quota=s.quota + 1, cap=max(s.cap, s.quota + 1))
        )
        if s.quota > 1:
            yield from self.fault(s, "lower", "the quota is lowered", s._replace(quota=s.quota - 1))

    def tidy(self, s: State) -> State:
        """The same state without what can have no effect any more."""
        versions = self.on("version") and self.on("before")
        leaders = tuple(
            each._replace(
                plan=frozenset(p for p in each.plan if s.at[p[0]] == "h" and (not versions or p[1] == s.rv[p[0]])),
                refused=each.refused & members(s.at, "h"),
                skip=each.skip & members(s.at, "h"),
            )
            for each in s.leaders
        )
        born = tuple(i for i in s.born if s.at[i] not in "xe")
        cap = max(s.quota, min(s.cap, max(self.must_cover(s), self.cost(s.ledger)))) if s.cap > s.quota else s.cap
        return s._replace(leaders=leaders, born=born, cap=cap)


def changed(s: State, k: int, **fields: object) -> State:
    """Return the state with something else of a leader."""
    return s._replace(leaders=swap(s.leaders, k, s.leaders[k]._replace(**fields)))  # type: ignore[arg-type]


def explore(scenario: Scenario, without: str = "", limit: int = 3_000_000) -> tuple[int, str, list[str]]:
    return search(Model(scenario, without), limit)


A, B, C = Pod("A", "a"), Pod("B", "b"), Pod("C", "c")
M1, M2 = Pod("M1", "m", gang=2), Pod("M2", "m", gang=2)
SCENARIOS = {
    "line": Scenario((A, B), "nn", 1, {"claim": 2, "edit": 1}),
    "tiers": Scenario((A, Pod("C", "c", tier=1)), "nn", 1, {"claim": 2, "delete": 1}),
    "refused": Scenario((A, B), "hh", 1, {"claim": 1, "refuse": 1, "edit": 1}),
    "gang": Scenario((A, M1, M2), "onn", 2, {"claim": 2, "delete": 1}),
    "gangs": Scenario((M1, M2, Pod("N1", "n", gang=2), Pod("N2", "n", gang=2)), "hhhh", 2, {"claim": 1}),
    "heir": Scenario((Pod("V", "v"), Pod("H", "v", after=0), C), "onn", 1, {"claim": 1, "preempt": 1}),
    "replaced": Scenario((C, A, Pod("A2", "a", after=1), B), "ohnh", 1, {"claim": 1, "delete": 1}),
    "rows": Scenario((A, M1, M2, B), "onnn", 2, {"lower": 1, "raise": 1}),
    "mode": Scenario((A, B, C), "onn", 1, {"mode": 2, "claim": 1}),
    "drain": Scenario((A, M1, M2, B), "onnn", 2, {"mode": 1}),
}
SHOWN_IN = {
    "gate": "mode",
    "booked": "tiers",
    "seen": "tiers",
    "stays": "tiers",
    "term": "refused",
    "release": "refused",
    "touch": "refused",
    "before": "refused",
    "version": "refused",
    "whole": "gang",
    "heirs": "heir",
    "keep": "heir",
    "missed": "heir",
    "line": "replaced",
    "strict": "rows",
    "never": "rows",
    "drain": "mode",
    "queue": "drain",
}


if __name__ == "__main__":
    shown_in = {rule: SHOWN_IN.get(rule, "line") for rule in RULES}
    search_all(sys.argv[1:], SCENARIOS, shown_in, lambda name, rule: explore(SCENARIOS[name], rule))
