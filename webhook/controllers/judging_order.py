"""Says for which gangs that wait for devices the leader judges next whether pods are evicted.

To judge takes a part of a second in a large cluster, and anybody may have many pods wait. So the gangs of a namespace
take turns with those of others, a gang for which nobody is evicted is judged less often, and judging has a share of the
time.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.preemptor import SETTLED

AGAIN, LATEST = 5.0, 60.0
"""Seconds until a gang is judged again for which nobody is evicted, and at most: twice as long for the same reason."""
LONGEST_SPELL = 1.0
"""Seconds after which the others are judged later: reservations go on in between."""
REST = 4
"""The times of a spell for which nobody is judged after it."""


class _LastJudged(NamedTuple):
    """When a gang was judged last, for how long it is not judged again, and why nobody was evicted."""

    at: float = 0.0
    pause: float = 0.0
    reason: str = ""


@dataclass(eq=False)
class JudgingOrder:
    """Ask for those that are `due`, tell of each that was `judged`, and `rest` after each spell.

    `clock` returns seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _judged: dict[str, _LastJudged] = field(default_factory=dict)
    _rests_until: float = 0.0

    def due(self, waiting: Iterable[PodState], now: float) -> list[str]:
        """Return the gangs that wait and were not judged a moment ago. `now` is in seconds since 1970.

        In each namespace the highest tier is first, then what was judged longest ago. The first of all namespaces come
        before the second of any.
        """
        waiting = list(waiting)
        gangs = {each.gang for each in waiting}
        self._judged = {gang: judged for gang, judged in self._judged.items() if gang in gangs}
        if self.clock() < self._rests_until:
            return []
        last = {gang: self._judged.get(gang, _LastJudged()) for gang in gangs}
        due = [
            each
            for each in waiting
            if last[each.gang].at + last[each.gang].pause < self.clock() and (each.waits_since or 0.0) < now - SETTLED
        ]
        due.sort(key=lambda each: (-each.priority, last[each.gang].at, each.waits_since or 0.0))
        turns, places = Counter[str](), dict[str, int]()
        for each in due:
            if each.gang not in places:
                places[each.gang] = turns[each.namespace]
                turns[each.namespace] += 1
        return sorted(places, key=lambda gang: places[gang])

    def judged(self, gang: str, reason: str, *, again: float = AGAIN) -> None:
        """Note for which reason nobody is evicted for a gang; `again`: seconds until it is judged again at first."""
        before = self._judged.get(gang, _LastJudged())
        pause = min(2 * before.pause, LATEST) if before.reason == reason and before.pause else again
        self._judged[gang] = _LastJudged(self.clock(), pause, reason)

    def forget(self, gang: str) -> None:
        self._judged.pop(gang, None)

    def rest(self, spell: float) -> None:
        """Judge nobody for a while after a spell of so many seconds."""
        self._rests_until = self.clock() + REST * spell
