"""What the tiers held during the last day, and whom they lost: as this process has seen it, or as a Prometheus has."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping

import msgspec

EVERY, DAY = 60.0, 24 * 60 * 60.0
"""Seconds between two looks that are kept, and for which they are."""


class UseAt(msgspec.Struct, frozen=True):
    """GPUs by tier, at a time in seconds since 1970."""

    time: float
    gpus: Mapping[str, float]


class Evicted(msgspec.Struct, frozen=True):
    """Pods of a tier that were preempted about a time, in seconds since 1970."""

    time: float
    tier: str
    pods: float = 1.0


class DayOfUse(msgspec.Struct, frozen=True):
    """What a Prometheus tells of the last day, the oldest first; of `problem` it says why it tells nothing."""

    seen: tuple[UseAt, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    problem: str = ""


class UseOverTime:
    """Bounded: one look a minute, for a day."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: deque[UseAt] = deque(maxlen=int(DAY / EVERY))

    def add(self, held: Mapping[tuple[str, str, str], float]) -> None:
        """So many GPUs are held now, by tenant, tier and flavor."""
        now = self._clock()
        if not self._kept or now - self._kept[-1].time >= EVERY:
            by_tier: defaultdict[str, float] = defaultdict(float)
            for (_, tier, _), gpus in held.items():
                by_tier[tier] += gpus
            self._kept.append(UseAt(now, dict(by_tier)))

    def forget(self) -> None:
        """From now on another process counts, so that later there would be a gap."""
        self._kept.clear()

    def __iter__(self) -> Iterator[UseAt]:
        """The oldest first."""
        return iter(self._kept)
