"""Breadth-first search of a model's states, so that the first violation comes with the shortest way to it."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

State = TypeVar("State")


class Searched(Protocol[State]):
    def start(self) -> State: ...

    def steps(self, s: State, /) -> Iterator[tuple[str, State]]:
        """Yield each next state with what happens; "VIOLATION" in the text ends the search."""

    def tidy(self, s: State, /) -> State:
        """Return the same state without what can have no effect any more."""

    def wrong(self, s: State, /) -> str:
        """Return what the state violates, or nothing."""


def search(model: Searched[State], limit: int = 3_000_000) -> tuple[int, str, list[str]]:
    """Return the number of states, what is violated, and the shortest way to it."""
    first = model.tidy(model.start())
    came: dict[State, tuple[State, str] | None] = {first: None}
    queue = deque([first])
    while queue and len(came) < limit:
        s = queue.popleft()
        for label, after in model.steps(s):
            t = model.tidy(after)
            if t in came and "VIOLATION" not in label:
                continue
            wrong = label if "VIOLATION" in label else model.wrong(t)
            came.setdefault(t, (s, label))
            if wrong:
                trace, way = [label], came[s]
                while way:
                    trace.append(way[1])
                    way = came[way[0]]
                return len(came), wrong, trace[::-1]
            queue.append(t)
    return len(came), "LIMIT" if queue else "", []


Explore = Callable[[str, str], tuple[int, str, list[str]]]
"""Searches a scenario by its name, without a rule or, for "", with all."""


def search_all(
    arguments: Sequence[str], scenarios: Collection[str], rules: Mapping[str, str], explore: Explore
) -> None:
    """Search scenarios and print what is found: those named, or all, and then each rule's scenario without the rule.

    `-rule` among the arguments leaves that one out. `rules` names the scenario that shows what each rule is for.
    """
    names = [each for each in arguments if each in scenarios] or list(scenarios)
    runs = [(name, "") for name in names] + [(name, rule) for rule, name in rules.items()]
    if arguments:
        runs = [(name, rule) for name in names for rule in [each[1:] for each in arguments if each[0] == "-"] or [""]]
    total = 0
    for name, rule in runs:
        began = time.monotonic()
        states, wrong, trace = explore(name, rule)
        total += states
        title, seconds = f"without {rule}" if rule else "all rules", time.monotonic() - began
        print(f"{name:9}{title:20}{states:9,} states {seconds:6.1f} s  {wrong or 'no violation'}", flush=True)
        print("".join(f"      {k:2}. {line}\n" for k, line in enumerate(trace, 1)), end="", flush=True)
    print(f"{total:,} states in all")
