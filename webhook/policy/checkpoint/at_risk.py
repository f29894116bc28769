"""Work at risk: the GPU-time of a training pod whose result lies in no checkpoint yet."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

MINUTE, HOUR = 60.0, 3600.0


class LastSave(msgspec.Struct, frozen=True):
    """The last whole save of a pod, in seconds since 1970, and its step where that is told."""

    step: int | None
    at: float


class Work(msgspec.Struct, frozen=True, rename="camel"):
    """GPU-seconds of work that no checkpoint holds. `exact`: since a save that was told; else at most so many."""

    gpu_seconds: float
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at most '}{_in_words(self.gpu_seconds)}"


def work_since(gpus: Decimal, until: float, saved: LastSave | None, started: float | None) -> Work | None:
    """The work of so many GPUs since a pod saved, or since its start where no save is known; None: not known either.

    A save from before its start is that from which it goes on, and what came of the time between is another pod's loss.
    Clocks of machines differ, so an end may seem to come before its save.
    """
    since = max(saved.at, started or 0.0) if saved else started
    return None if since is None else Work(float(gpus) * max(0.0, until - since), exact=saved is not None)


def summed(parts: Iterable[Work]) -> Work:
    """One part that is not exact makes the sum "at most"."""
    known = [*parts]
    return Work(sum(each.gpu_seconds for each in known), exact=all(each.exact for each in known))


def _in_words(gpu_seconds: float) -> str:
    """In the unit that a person would choose."""
    if gpu_seconds < 2 * MINUTE:
        return f"{gpu_seconds:.0f} GPU-seconds"
    return (
        f"{gpu_seconds / MINUTE:.0f} GPU-minutes" if gpu_seconds < 2 * HOUR else f"{gpu_seconds / HOUR:,.1f} GPU-hours"
    )
