"""Every write of the ledger in the model of Hold: a replica's booking, and what a leader counts and books."""

from tests.ledger.model.hold_state import NONE, Leader, Ledger, Pods, Rules, State, View, members, pods_gang, swap

Step = tuple[str, State]


class Writes(Rules):
    """The writes of the model, each one compare-and-swap."""

    def put(self, s: State, i: int, letter: str, touched: int = 0) -> State:
        rv = swap(s.rv, i, s.rv[i] + touched)
        s = s._replace(at=s.at[:i] + letter + s.at[i + 1 :], rv=rv)
        if letter not in "hotxe":
            return s
        shown = tuple(
            each._replace(view=each.view._replace(news=(*each.view.news, (i, letter, rv[i])))) if each.view else each
            for each in s.leaders
        )
        born = s.born if i in s.born else (*s.born, i)
        return s._replace(leaders=shown, born=born)

    def review(self, s: State, i: int) -> Step:
        """A replica judges a pod without the gate."""
        name, ledger = self.pods[i].name, s.ledger
        if s.hold and not self.on("gate"):
            return f"{name} is admitted unbooked, because its row queues", self.put(s, i, "y")
        successor = self.inherit(ledger, i)
        if successor:
            return f"{name} is booked as a replacement", self.put(s._replace(ledger=successor), i, "y")
        unit = self.pods[i].unit
        gangs = ledger.gangs | ({unit} if pods_gang(self.pods, unit) and self.on("whole") else set())
        new = ledger._replace(reserved=ledger.reserved | {i}, gangs=gangs)
        ahead = [u for u, gpus in ledger.line if gpus and u != unit and self.tier(u) >= self.pods[i].tier]
        waiting = [u for u in ahead if self.could_fit(s, u) and self.cost(new) > self.cost(ledger)]
        if self.cost(new) > s.quota or (waiting and self.on("queue")):
            return f"{name} is refused", self.put(s, i, "d")
        wrong = f"VIOLATION of order: passes {waiting[0]}, " if waiting else ""
        return f"{wrong}{name} is booked", self.put(s._replace(ledger=new), i, "y")

    # --- a leader's write ------------------------------------------------------------------------------------------
    def inherit(self, ledger: Ledger, i: int) -> Ledger | None:
        """Take the slot of a preempted pod of the same controller, which needs no room."""
        for victim in self.of(self.pods[i].unit, ledger.places) if self.on("heirs") else ():
            replacements = swap(ledger.replacements, i, victim if victim in ledger.counted else -1)
            return ledger._replace(
                reserved=ledger.reserved | {i}, replacements=replacements, places=ledger.places - {victim}
            )
        return None

    def count(self, s: State, me: Leader, view: View, lapsed: Pods) -> Ledger:
        """The ledger as the view has it: what is open, and the bookings and places that are still good."""
        old, queued = s.ledger, members(view.at, "h")
        counted, over = members(view.at, "ot"), members(view.at, "xe") | lapsed
        reserved = old.reserved - counted - over - (NONE if self.on("seen") else queued)
        reserved -= me.skip if self.on("release") else NONE
        live = counted | reserved
        replacements = tuple(v if i in live and v in counted else -1 for i, v in enumerate(old.replacements))
        awaited = {
            each.after
            for i, each in enumerate(self.pods)
            if self.is_due(s, i) or (s.at[i] == "h" and i not in reserved)
        }
        missed = old.counted & members(view.at, "e") if self.on("missed") else NONE
        reserved_slots = (old.places | missed | members(view.at, "x")) & awaited if self.on("keep") else NONE
        places = (members(view.at, "t") | reserved_slots) - set(replacements) if self.on("heirs") else NONE
        alive = frozenset(each.unit for i, each in enumerate(self.pods) if s.at[i] not in "xed")
        return old._replace(
            counted=counted, reserved=reserved, replacements=replacements, places=places, gangs=old.gangs & alive
        )

    def book(self, s: State, ledger: Ledger, waiting: list[int]) -> tuple[Ledger, list[int]]:
        """First what needs no room, then the line; and who has taken room from it."""
        for i in waiting:
            draws = ledger._replace(reserved=ledger.reserved | {i})
            free = self.cost(draws) == self.cost(ledger) and self.pods[i].unit in ledger.gangs
            ledger = draws if free else self.inherit(ledger, i) or ledger
        booked: list[int] = []
        units = [each for each, _ in ledger.line if not self.on("never") or self.could_fit(s, each)]
        for unit in sorted(units, key=lambda each: -self.tier(each)):
            mine = self.of(unit, frozenset(waiting) - ledger.reserved)
            is_gang = bool(pods_gang(self.pods, unit)) and self.on("whole")
            for some in [mine] if is_gang and mine else [[i] for i in mine]:
                gangs = ledger.gangs | ({unit} if is_gang else set())
                new = ledger._replace(reserved=ledger.reserved | set(some), gangs=gangs)
                if self.cost(new) <= s.quota:
                    ledger, booked = new, booked + some
                elif self.on("strict"):
                    return ledger, booked
        return ledger, booked

    def lined(self, s: State, ledger: Ledger, view: View, waiting: list[int]) -> tuple[tuple[str, int], ...]:
        gated = [self.pods[i].unit for i in s.born if view.at[i] == "h"]
        reserved_slots = (
            [each for each, _ in s.ledger.line if each in gated or self.is_queued(s, each)] if self.on("line") else []
        )
        waits = [self.pods[i].unit for i in waiting if i not in ledger.reserved]
        return tuple((each, waits.count(each)) for each in dict.fromkeys((*reserved_slots, *gated)))

    def is_queued(self, s: State, unit: str) -> bool:
        """Return whether a pod of the unit is gated, or soon will be as the replacement of a deleted one."""
        return any(each.unit == unit and (s.at[i] == "h" or self.is_due(s, i)) for i, each in enumerate(self.pods))

    def write(self, s: State, k: int, lapsed: Pods = NONE) -> Step:
        """One compare-and-swap: count, book, and plan to open what it shows."""
        me = s.leaders[k]
        view = me.view
        assert view
        ledger = self.count(s, me, view, lapsed)
        waiting = [i for i in s.born if view.at[i] == "h" and i not in ledger.reserved | me.skip]
        ledger = ledger._replace(line=self.lined(s, ledger, view, waiting))
        before, (ledger, booked) = ledger, self.book(s, ledger, waiting) if s.hold or self.on("drain") else (ledger, [])
        new = ledger.reserved - before.reserved
        ledger = ledger._replace(line=self.lined(s, ledger, view, waiting))
        gated = [self.pods[i].unit for i in s.born if view.at[i] == "h"]
        s = s._replace(
            order=tuple(dict.fromkeys((*(u for u in s.order if u in gated or self.is_queued(s, u)), *gated)))
        )
        wrong = self.unjust(s, ledger, view, booked, waiting)
        openings = {(i, view.rv[i]) for i in (ledger.reserved if self.on("finish") else new) if view.at[i] == "h"}
        if not self.on("booked"):
            ledger = ledger._replace(reserved=before.reserved)
        leaders = swap(s.leaders, k, me._replace(plan=me.plan | openings))
        return f"{wrong}leader {k + 1} writes: {self.show(ledger)}", s._replace(ledger=ledger, leaders=leaders)

    def unjust(self, s: State, ledger: Ledger, view: View, booked: list[int], waiting: list[int]) -> str:
        """Tells of one who was booked before somebody that had to come first."""
        for i in booked:
            for other in [w for w in waiting if w not in ledger.reserved and self.could_fit(s, self.pods[w].unit)]:
                if s.at[other] == "h" and self.rank(s, other) < self.rank(s, i):
                    return f"VIOLATION of order: {self.pods[i].name} before {self.pods[other].name}; "
        return self.robbed(s, ledger, view, booked) if booked else ""

    def robbed(self, s: State, ledger: Ledger, view: View, booked: list[int]) -> str:
        """Report a replacement that lacks room only because of those that were booked."""
        for successor, pod in enumerate(self.pods):
            waits = self.is_due(s, successor) or (s.at[successor] == "h" and successor not in ledger.reserved)
            if not waits or pod.after not in s.ledger.places | s.ledger.counted | members(view.at, "tx"):
                continue
            replacements = swap(ledger.replacements, successor, pod.after)
            more = ledger._replace(
                reserved=ledger.reserved | {successor}, replacements=replacements, places=ledger.places - {pod.after}
            )
            if self.cost(more) > s.quota >= self.cost(more._replace(reserved=more.reserved - set(booked))):
                return f"VIOLATION of order: the queue takes the slot of {pod.name}, a replacement; "
        return ""

    def rank(self, s: State, i: int) -> tuple[int, int]:
        return -self.pods[i].tier, s.order.index(self.pods[i].unit) if self.pods[i].unit in s.order else len(s.order)

    def show(self, ledger: Ledger) -> str:
        parts = {"open": ledger.counted, "booked": ledger.reserved, "places": ledger.places}
        shown = {part: "+".join(self.pods[i].name for i in sorted(pods)) for part, pods in parts.items()}
        return ", ".join(f"{part} {names or 'nothing'}" for part, names in shown.items() if names or part != "places")
