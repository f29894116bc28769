"""What trainings report of their saves, as this replica has heard it. A pod reports to every replica.

A pod speaks only of itself, and gains nothing by it: without a report all its work since its start is at risk, which is
the most that it could claim.
"""

import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.policy.checkpoint.at_risk import LastSave

SOONEST = 5.0
"""Seconds between two reports of a pod; it sends one each 30 s."""
KEPT = 3600.0
"""Seconds for which a report counts. A pod that is gone reports no more."""
MOST = 50_000
"""Pods whose reports are kept. 200 bytes each."""
SKEW = 60.0
"""Seconds that a node's clock may be ahead of ours."""


class Progress(msgspec.Struct, frozen=True):
    """How far a training is, as it stands in its file `progress`. Times in seconds since 1970."""

    step: Annotated[int, Meta(ge=0, le=2**53)]
    last_saved_step: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    last_saved_at: Annotated[float, Meta(ge=0)] | None = None


Heard = Literal["heard", "too-soon", "ahead", "no-room"]
"""How a report is taken. `ahead`: its save has not come yet, by our clock."""


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

    def report(self, uid: str, progress: Progress) -> Heard:
        """A pod has told how far it is. Of a report that is not heard nothing is kept."""
        now, at = self._clock(), progress.last_saved_at
        before = self._heard.get(uid)
        if before is not None and now - before[0] < SOONEST:
            return "too-soon"
        if at is not None and at > now + SKEW:
            return "ahead"
        if before is None and len(self._heard) >= MOST and len(self) >= MOST:
            return "no-room"
        self._heard.pop(uid, None)  # who was heard longest ago stands first
        self._heard[uid] = now, None if at is None else LastSave(progress.last_saved_step, min(at, now))
        return "heard"

    def _forget(self) -> None:
        over = self._clock() - KEPT
        while self._heard and next(iter(self._heard.values()))[0] <= over:
            del self._heard[next(iter(self._heard))]
