"""Writes down how far the training is, for people and for gpu-tiers.

Why a file and a line in the termination message: neither needs a right or a connection, and the line outlives the pod's
containers in its status.
"""

from __future__ import annotations

import json
import time
from typing import Any

from listener.protocol import RUN, TERMINATION_LOG, shared, write_json

PROGRESS_SECONDS = 5.0


class Progress:
    """How far the training is, and the file `progress`."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {"run": RUN, "step": 0, "max_steps": None}
        self.known.update(last_saved_step=None, last_saved_at=None, seconds_per_step=None)
        self.pace: float | None = None
        self.stepped = self.written = 0.0

    def step(self, step: int, last: int) -> bool:
        """Record a step; return True if it is time to write."""
        now = time.monotonic()
        if self.stepped:
            took = now - self.stepped
            self.pace = took if self.pace is None else 0.9 * self.pace + 0.1 * took
        self.stepped = now
        self.known["step"], self.known["max_steps"] = step, last or None
        return now - self.written >= PROGRESS_SECONDS

    def saved(self, step: int) -> None:
        self.known.update(last_saved_step=step, last_saved_at=round(time.time(), 1))

    def line(self) -> dict[str, Any]:
        pace = None if self.pace is None else round(self.pace, 4)
        return dict(self.known, seconds_per_step=pace, at=round(time.time(), 1))

    def write(self) -> None:
        self.written = time.monotonic()
        write_json(shared("progress"), self.line())

    def leave(self) -> None:
        """Write the file and, if possible, the container's termination message, where the hook writes too."""
        self.write()
        try:
            with open(TERMINATION_LOG, "a") as file:
                file.write("\ngpu-tiers: progress %s\n" % json.dumps(self.line()))
        except OSError:
            pass  # there is none outside a pod, or it belongs to another user
