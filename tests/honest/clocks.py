"""Moves the clocks of this process into the virtual time of a history.

Import it before any module of webhook/: a parameter's default keeps the clock that it found.
"""

import asyncio
import datetime as dt
import time

from tests.ledger.virtual_time import VirtualLoop

real_monotonic = time.monotonic
_real_time = time.time

START = 1000.0
"""The loop's time at which a history begins."""
EPOCH = dt.datetime(2026, 11, 1, 8, 0, 0, tzinfo=dt.UTC)
"""The simulated API server's creationTimestamps count from here."""


def _virtual_now() -> float | None:
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return running.time() if isinstance(running, VirtualLoop) else None


def monotonic() -> float:
    now = _virtual_now()
    return real_monotonic() if now is None else now


def _unix_time() -> float:
    now = _virtual_now()
    return _real_time() if now is None else EPOCH.timestamp() + now


class VirtualDatetime(dt.datetime):
    """`datetime` for modules that ask for the time of day."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        now = _virtual_now()
        return dt.datetime.now(tz) if now is None else EPOCH + dt.timedelta(seconds=int(now))


time.monotonic = monotonic
time.time = _unix_time
