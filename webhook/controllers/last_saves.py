"""What trainings report of their saves, as this replica has heard it. The listener in a pod reports to every replica.

A pod speaks only of itself, and gains nothing by it: without a report all its work since its start is at risk, which is
the most that it could claim.
"""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from webhook.policy.checkpoint.outcome import LastSave

SOONEST = 5.0
"""Seconds between two reports of a pod; it sends one each 30 s."""
KEPT = 3600.0
"""Seconds for which a report counts. A pod that is gone reports no more."""
MOST = 50_000
"""Pods whose reports are kept. 200 bytes each."""
SKEW = 60.0
"""Seconds that a node's clock may be ahead of ours."""


class Progress(msgspec.Struct, frozen=True):
    """How far a training is, as its listener writes it down. Times in seconds since 1970."""

    step: Annotated[int, Meta(ge=0, le=2**53)]
    last_saved_step: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    last_saved_at: Annotated[float, Meta(ge=0)] | None = None


class TooSoon(Exception):  # noqa: N818 - an answer, not a malfunction
    """The pod has just reported."""


class NoRoom(Exception):  # noqa: N818 - an answer, not a malfunction
    """So many pods report that no other is heard."""


class NotYet(Exception):  # noqa: N818 - an answer, not a malfunction
    """A time that has not come yet."""


class LastSaves:
    """The last save of each pod that reports, by its uid."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[float, LastSave | None]] = {}

    def of(self, uid: str) -> LastSave | None:
        """None where the pod reports nothing, or has not saved yet."""
        heard, save = self._heard.get(uid, (0.0, None))
        return save if self._clock() - heard < KEPT else None

    def __len__(self) -> int:
        """So many pods have been heard within the time that counts."""
        self._forget()
        return len(self._heard)

    def report(self, uid: str, progress: Progress) -> None:
        """A pod has told how far it is. Raises TooSoon, NoRoom or NotYet, and keeps what was known then."""
        now = self._clock()
        before = self._heard.get(uid)
        if before is not None and now - before[0] < SOONEST:
            raise TooSoon
        if before is None and len(self._heard) >= MOST and len(self) >= MOST:
            raise NoRoom
        self._heard.pop(uid, None)  # who was heard longest ago stands first
        self._heard[uid] = now, _save(progress, now)

    def _forget(self) -> None:
        over = self._clock() - KEPT
        while self._heard and next(iter(self._heard.values()))[0] <= over:
            del self._heard[next(iter(self._heard))]


def _save(progress: Progress, now: float) -> LastSave | None:
    at = progress.last_saved_at
    if at is None:
        return None
    if at > now + SKEW:
        raise NotYet
    return LastSave(progress.last_saved_step, min(at, now))
