"""Limits how long look-ups for the pods of one namespace delay the watch of all pods.

A pod's owners are read before its event is passed on. A user who edits a pod again and again may name another owner
each time, of a megabyte. Without a limit the leader would see the pods of all tenants a minute late.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BURST_SECONDS = 3.0
"""Seconds of look-ups that a namespace may take at once, enough for the owners of some thousand pods."""
SHARE = 0.1
"""The share of time that its look-ups may take after that."""
MOST_NAMESPACES = 1024


class LookupShare:
    """The time that each namespace has left for look-ups. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_at: dict[str, float] = {}
        """The time at which the look-ups of a namespace so far are its share."""

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
