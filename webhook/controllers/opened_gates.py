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
    """`opened` gets each pod, what it holds and the seconds for which it was held; None where they are not known."""

    def __init__(
        self, opened: Callable[[str, Holding, float | None], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
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
        self._opened(uid, holding, seconds_between(since, datetime.now(UTC).isoformat()))

    def stuck(self) -> Iterator[tuple[str, float]]:
        """Namespaces with pods whose gates can't be opened, and for how many seconds each has been tried."""
        now = self._clock()
        self._failing = {uid: each for uid, each in self._failing.items() if now - each[2] < FORGOTTEN}
        for namespace, first, _ in self._failing.values():
            yield namespace, now - first
