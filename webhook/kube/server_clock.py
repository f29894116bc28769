"""The clock of the API server, by the Date of its answers.

Replicas on nodes whose clocks differ agree by it, and a step of a node's clock moves nothing.
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

SAMPLE_SECONDS = 1.0


class ServerClock:
    """Seconds since 1970 as the API server counts them; by this machine's clock until the first answer.

    A Date has whole seconds: at some moment of the request the server's clock was between it and a second later. Each
    answer narrows the difference to our monotonic clock. One that contradicts it begins again.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._ahead: tuple[float, float] | None = None
        self._sampled = float("-inf")

    def note(self, date: str | None, sent: float) -> None:
        """Note the Date header of an answer to a request that was sent at this monotonic time."""
        received = self._monotonic()
        if date is None or received < self._sampled + SAMPLE_SECONDS:
            return
        try:
            shown = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        self._sampled = received
        least, most = shown - received, shown + 1 - sent
        if self._ahead is not None and max(least, self._ahead[0]) <= min(most, self._ahead[1]):
            least, most = max(least, self._ahead[0]), min(most, self._ahead[1])
        self._ahead = least, most

    def now(self) -> float:
        return self._wall() if self._ahead is None else self._monotonic() + sum(self._ahead) / 2
