"""Breadth-first search of a model's states, so that the first violation comes with the shortest way to it."""

from collections import deque
from collections.abc import Iterator
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
