"""The model of an account as entries in slots, with the queue of a tenant that holds. Breadth-first search.

It explores every interleaving of creates that are stored late or refused after our yes, retries, preemption, changes,
edits of the status, replicas that book, and two leaders, one of which may be paused between any two of its steps. A
compare-and-swap wins only on the newest account, so one step is read, decide and write. What may be old is a leader's
view of pods and of workloads, each by its own watch, and the gates (`plan`) that it still has to open.

    python -m tests.ledger.model.books              all rules in all scenarios, then each rule left out
    python -m tests.ledger.model.books gang -draw   one scenario without a rule
"""

import sys
from collections.abc import Iterator

from tests.ledger.model.books_account import REAL, Entries, value
from tests.ledger.model.books_properties import SHOWN
from tests.ledger.model.books_refusals import Refusals
from tests.ledger.model.books_scenarios import SCENARIOS, SHOWN_IN
from tests.ledger.model.books_state import FAULTS, RULES, Leader, Ledger, Scenario, State, Step, View
from tests.ledger.model.hold_state import swap
from tests.ledger.model.search import search, search_all


class Model(Refusals):
    """Everybody's steps."""

    def start(self) -> State:
        start, n = self.scenario.start or "n" * len(self.items), len(self.items)
        at, news = start.lower().replace("b", "s"), tuple((i, c.lower()) for i, c in enumerate(start) if c in "SH")
        view = View("".join(SHOWN.get(c, "-") for c in start.replace("b", "s")), news)
        counted = (i for i, c in enumerate(start) if c == "b" or (c == "s" and not self.items[i].is_workload))
        entries = frozenset(self.entry(i, "U") for i in counted)
        left = tuple(self.scenario.faults.get(each, 0) for each in FAULTS)
        quota = self.scenario.quota
        leaders = Leader(view), Leader()
        return State(at, Ledger(0, entries), leaders, quota, quota, (-1,) * n, frozenset(), left)

    def put(self, s: State, i: int, letter: str) -> State:
        s = s._replace(at=s.at[:i] + letter + s.at[i + 1 :])
        if letter not in SHOWN:
            return s
        change = tuple(
            each._replace(view=each.view._replace(news=(*each.view.news, (i, letter)))) if each.view else each
            for each in s.leaders
        )
        return s._replace(leaders=change)

    def fault(self, s: State, fault: str, label: str, after: State) -> Iterator[Step]:
        which = FAULTS.index(fault)
        if s.left[which]:
            yield label, after._replace(left=swap(s.left, which, s.left[which] - 1))

    def steps(self, s: State) -> Iterator[Step]:
        for i, letter in enumerate(s.at):
            if letter == "n":
                yield from self.create(s, i)
            elif letter in "yg":
                yield from self.end_of_create(s, i)
            elif letter in "sht" and self.items[i].changes < 0 and self.scenario.ends:
                yield from self.end_of_object(s, i)
        for k in (0, 1):
            yield from self.leader_steps(s, k)
        yield from self.fault(s, "edit", "somebody empties the status", s._replace(ledger=self.emptied()))
        lower = tuple(max(each - 1, 0) for each in s.quota)
        yield from self.fault(s, "lower", "the quota is lowered", s._replace(quota=lower))

    def emptied(self) -> Ledger:
        return Ledger(-1 if self.on("seal") else 0, frozenset(), sealed=not self.on("seal"))

    # --- creates ---------------------------------------------------------------------------------------------------
    def create(self, s: State, i: int) -> Iterator[Step]:
        item, name = self.items[i], self.items[i].name
        if item.gang >= 0 and s.at[item.gang] != "s":
            return
        if item.changes >= 0 and s.at[item.changes] != "s":
            return
        if item.after >= 0 and s.at[item.after] not in "tde":
            lost = "y" if s.at[item.after] == "y" else ""
            if lost:
                label = f"the answer to {self.items[item.after].name} is lost, {name} is made"
                yield from (
                    (label + ": " + text, t)
                    for text, t in self.reviewed(self.lose(s), i)
                    if s.left[FAULTS.index("lost")]
                )
            return
        yield from self.reviewed(s, i)

    def lose(self, s: State) -> State:
        which = FAULTS.index("lost")
        return s._replace(left=swap(s.left, which, s.left[which] - 1))

    def reviewed(self, s: State, i: int) -> Iterator[Step]:
        item, name = self.items[i], self.items[i].name
        if self.scenario.hold and item.is_workload:
            yield f"{name} is applied", self.put(s, i, "y")
        elif self.scenario.hold and item.gated:
            yield f"{name} is sent with the gate", self.put(s, i, "g")
        elif self.is_taken(s, i) and self.on("taken"):
            yield f"{name} is refused: its name is taken", self.put(s, i, "d")
        elif not s.ledger.sealed or self.must_wait(s, i):
            return
        else:
            yield from self.judged(s, i)
        if not (self.on("swap") and self.on("news")) and not s.copy:
            yield from self.fault(s, "copy", f"a replica reads for {name}", s._replace(copy=(i, s.ledger)))

    def is_taken(self, s: State, i: int) -> bool:
        return bool(self.items[i].place) and any(
            self.items[k].place == self.items[i].place for k in self.among(s.at, "sht")
        )

    def must_wait(self, s: State, i: int) -> bool:
        waits = self.scenario.way == "wait" and self.on("retry")
        return waits and self.unsettled_try(s, s.ledger.entries, i) is not None

    def judged(self, s: State, i: int) -> Iterator[Step]:
        name, letter = self.items[i].name, "y"
        if s.copy and s.copy[0] == i and not self.on("swap"):
            found = self.booked(s, s.copy[1], i)
            if found:
                ledger = s.ledger._replace(entries=found[0])
                yield (
                    f"{name} is booked on an older version: {self.show(found[0])}",
                    self.put(s._replace(ledger=ledger, copy=None), i, letter),
                )
        if s.copy and s.copy[0] == i and not self.on("news") and not self.booked(s, s.copy[1], i):
            wrong = "VIOLATION: refused by old news, " if self.booked(s, s.ledger, i) else ""
            yield f"{wrong}{name} is refused by an older version", self.put(s._replace(copy=None), i, "d")
        found = self.booked(s, s.ledger, i)
        if found is None:
            yield f"{self.unjust(s, i)}{name} is refused", self.put(s, i, "d")
            return
        entries, victim = found
        if self.scenario.way == "gate" and self.shares(entries, i):
            letter = "g"
        pairs = swap(s.pairs, i, -1 if self.has_rival(s, victim) else victim)
        ledger = s.ledger._replace(entries=entries if self.is_written(s, entries, i) else s.ledger.entries)
        yield f"{name} is booked: {self.show(entries)}", self.put(s._replace(ledger=ledger, pairs=pairs), i, letter)

    def has_rival(self, s: State, victim: int) -> bool:
        """Find another replacement of that preempted pod, or the pod that it replaces itself."""
        taken = any(v == victim and s.at[h] in "yst" for h, v in enumerate(s.pairs))
        return victim < 0 or taken or (s.pairs[victim] >= 0 and s.at[s.pairs[victim]] in "st")

    def is_written(self, s: State, entries: Entries, i: int) -> bool:
        adds = value(entries, "UTR", self.rows) != value(s.ledger.entries, "UTR", self.rows)
        return self.on("draw") or adds or self.items[i].is_workload

    def shares(self, entries: Entries, i: int) -> bool:
        mine = self.of(entries, i)
        return mine is not None and any(e.slot == mine.slot and e.item != i and e.state == "R" for e in entries)

    def end_of_create(self, s: State, i: int) -> Iterator[Step]:
        item, name, letter = self.items[i], self.items[i].name, s.at[i]
        if self.is_taken(s, i):
            yield f"{name} fails: AlreadyExists", self.put(s, i, "d")
        elif item.changes >= 0 and s.at[item.changes] != "s":
            yield f"{name} fails: its object is gone", self.put(s, i, "d")
        else:
            yield f"{name} is stored", self.put(s, i, "s" if letter == "y" else "h")
            yield f"{name} is never stored", self.put(s, i, "d")

    def end_of_object(self, s: State, i: int) -> Iterator[Step]:
        item, name, letter = self.items[i], self.items[i].name, s.at[i]
        if letter == "s" and item.maker:
            yield from self.fault(s, "preempt", f"{name} is preempted", self.put(s, i, "t"))
        had_slot = self.of(s.ledger.entries, i) is not None
        yield f"{name} ends", self.put(s if had_slot else s._replace(timed=s.timed | {i}), i, "e")
        if not self.of(s.ledger.entries, i):
            again = s._replace(ledger=s.ledger._replace(entries=s.ledger.entries | {self.entry(i, "R")}))
            yield from (
                self.fault(s, "dup", f"a late copy of {name}'s booking is written", again)
                if self.booked(s, s.ledger, i)
                else ()
            )

    # --- leaders ---------------------------------------------------------------------------------------------------
    def leader_steps(self, s: State, k: int) -> Iterator[Step]:
        me, who, ledger = s.leaders[k], f"leader {k + 1}", s.ledger
        yield from self.watch_steps(s, k, me.view) if me.view else ()
        for i in sorted(me.plan):
            yield f"{who} opens {self.items[i].name}", self.put(changed(s, k, plan=me.plan - {i}), i, "s")
        if self.on("term") and ledger.term != k:
            claimed = changed(s, k, view=None)._replace(ledger=ledger._replace(term=k))
            yield from self.fault(s, "claim", f"{who} claims the account", claimed)
        elif me.view is None:
            yield f"{who} lists", changed(s, k, view=listed(s))
            if not self.on("quorum"):
                stored = tuple((i, c) for i, c in enumerate(s.at) if c in "sht")
                old = View("".join(c if c == "e" else "-" for c in s.at), stored)
                yield f"{who} lists a stale cache", changed(s, k, view=old)
        elif ledger.sealed:
            yield from self.written(s, k)
            yield from self.written(s, k, lapsed) if (lapsed := self.lapsing(s, me.view)) else ()
            yield from self.written(s, k, timed=True) if any(e.state == "L" for e in ledger.entries) else ()
        elif not (self.on("horizon") and self.among(s.at, "yg")):
            yield from self.written(changed(s, k, view=listed(s)), k, rebuilds=True)

    def watch_steps(self, s: State, k: int, view: View) -> Iterator[Step]:
        for is_workload in (False, True):
            change = next((each for each in view.news if self.items[each[0]].is_workload is is_workload), None)
            if change:
                label = f"leader {k + 1} sees {self.items[change[0]].name}: {change[1]}"
                yield label, changed(s, k, view=caught_up(view, change))

    def lapsing(self, s: State, view: View) -> frozenset[int]:
        unseen = frozenset(e.item for e in s.ledger.entries if e.state == "R" and view.at[e.item] == "-")
        met = self.among(s.at, "sthed") if self.on("age") else self.among(s.at, "sthedyg")
        return unseen & met - (self.among(s.at, "sth") if self.on("proof") else frozenset())

    def written(
        self, s: State, k: int, lapsed: frozenset[int] = frozenset(), *, timed: bool = False, rebuilds: bool = False
    ) -> Iterator[Step]:
        view = s.leaders[k].view
        assert view
        if self.on("over"):
            gone = "".join("e" if i in lapsed else c for i, c in enumerate(view.at))
            view = View(gone, tuple(each for each in view.news if each[0] not in lapsed))
        over = frozenset(e.item for e in s.ledger.entries if e.state == "L") if timed else frozenset()
        s = s._replace(timed=s.timed | over)
        entries, wrong = self.count(s, view, lapsed, timed=timed), ""
        if self.scenario.hold:
            entries, wrong = self.queue(s, entries, view)
        plan = self.to_open(entries, view.at)
        if not self.on("gate"):
            plan |= self.among(view.at, "h")
        t = changed(s, k, view=view, plan=s.leaders[k].plan | plan)
        t = t._replace(ledger=Ledger(k, entries), pairs=self.paired(s, entries))
        if t != s or rebuilds:
            said = (
                "lets lapse and writes"
                if lapsed
                else "writes, time is over,"
                if timed
                else "rebuilds"
                if rebuilds
                else "writes"
            )
            yield f"{wrong}leader {k + 1} {said}: {self.show(entries)}", t

    def show(self, entries: Entries) -> str:
        return (
            " ".join(f"{self.items[e.item].name}={e.state}@{e.slot.replace('name ', '')}" for e in sorted(entries))
            or "nothing"
        )

    def tidy(self, s: State) -> State:
        leaders = tuple(each._replace(plan=each.plan & self.among(s.at, "h")) for each in s.leaders)
        pairs = tuple(v if v >= 0 and s.at[i] in "ysth" and s.at[v] in "st" else -1 for i, v in enumerate(s.pairs))
        counted = value(s.ledger.entries, REAL, self.rows)
        there = tuple(map(max, self.reserved(s), counted))
        cap = tuple(max(quota, min(cap, most)) for quota, cap, most in zip(s.quota, s.cap, there, strict=True))
        return s._replace(leaders=leaders, pairs=pairs, cap=cap)


def listed(s: State) -> View:
    return View("".join(SHOWN.get(c, "-") for c in s.at))


def caught_up(view: View, change: tuple[int, str]) -> View:
    i, letter = change
    news = list(view.news)
    news.remove(change)
    return View(view.at[:i] + letter + view.at[i + 1 :], tuple(news))


def changed(s: State, k: int, **fields: object) -> State:
    return s._replace(leaders=swap(s.leaders, k, s.leaders[k]._replace(**fields)))  # type: ignore[arg-type]


def explore(scenario: Scenario, without: str = "", limit: int = 2_000_000) -> tuple[int, str, list[str]]:
    return search(Model(scenario, without), limit)


if __name__ == "__main__":
    shown_in = {rule: SHOWN_IN.get(rule, "core") for rule in RULES}
    search_all(sys.argv[1:], SCENARIOS, shown_in, lambda name, rule: explore(SCENARIOS[name], rule))
