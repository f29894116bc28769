"""Bounds the time for which look-ups for the pods of one namespace hold up the watch of all pods.

A pod's owners are read before its event is handed on, and whoever may edit a pod may name another owner each time, of a
megabyte. The leader would see the pods of all tenants a minute late.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BURST_SECONDS = 3.0
"""For so long a namespace may look up at once: the owners of some thousand pods, which are kept for a moment."""
SHARE = 0.1
"""And then for this part of the time."""
MOST_NAMESPACES = 1024


class LookupShare:
    """What is left to each namespace. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_at: dict[str, float] = {}
        """When the look-ups of a namespace so far are its share of the time."""

    def is_left(self, namespace: str) -> bool:
        return self._paid_at.get(namespace, 0.0) <= self._clock() + BURST_SECONDS / SHARE

    @contextmanager
    def spending(self, namespace: str) -> Iterator[None]:
        """Count the time of a look-up."""
        began = self._clock()
        try:
            yield
        finally:
            now = self._clock()
            self._paid_at[namespace] = max(self._paid_at.get(namespace, now), now) + (now - began) / SHARE
            if len(self._paid_at) > MOST_NAMESPACES:
                self._paid_at = {each: paid for each, paid in self._paid_at.items() if paid > now}
