"""Measures how long pods were held when their gate opens, and how long gates can't be opened that should be."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from webhook.controllers.placements import seconds_between
from webhook.kube.errors import ApiError, NotFound
from webhook.ledger.protocol import Holding

FORGOTTEN = 60.0
"""Seconds after the last try to open a gate, which comes every few seconds: then its pod is gone, or waits again."""


class OpenedGates:
    """`opened` gets the seconds for which a pod was held, with its tier."""

    def __init__(self, opened: Callable[[float, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._opened = opened
        self._clock = clock
        self._failing: dict[str, tuple[str, float, float]] = {}

    @contextmanager
    def opening(self, uid: str, holding: Holding) -> Iterator[None]:
        """Around each try."""
        try:
            yield
        except NotFound:
            self._failing.pop(uid, None)
            raise
        except ApiError:
            now = self._clock()
            first = self._failing[uid][1] if uid in self._failing else now
            self._failing[uid] = holding.namespace, first, now
            raise
        self._failing.pop(uid, None)
        since = holding.gated.since if holding.gated else ""
        if (seconds := seconds_between(since, datetime.now(UTC).isoformat())) is not None:
            self._opened(seconds, holding.charge.tier or "")

    def stuck(self) -> Iterator[tuple[str, float]]:
        """Namespaces with pods whose gates can't be opened, and for how many seconds each has been tried."""
        now = self._clock()
        self._failing = {uid: each for uid, each in self._failing.items() if now - each[2] < FORGOTTEN}
        for namespace, first, _ in self._failing.values():
            yield namespace, now - first
