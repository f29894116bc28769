"""Hands bookings to the replica that leads, whose writer puts all that wait for a tenant into one write.

It is a hint: whoever has a booking books it by the same rules, so where the leader does not book it at once the one
that was asked does. Why, and what is lost without it: docs/decisions/hand-over.md.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal

import structlog

from webhook.kube.errors import ApiError
from webhook.ledger.protocol import Booking, GangBooking

log = structlog.get_logger(__name__)

TAKEN_SECONDS = 0.1
"""The leader says within this that it has a booking; it is on our network, and its answer needs nobody else's."""
ANSWERED_SECONDS = 1.0
"""It has booked within this, or we do: a review has 5 s, and our own write needs its part of them."""
ALONE_SECONDS, LONGEST_ALONE = 0.25, 4.0
"""After one that failed we book all ourselves for so long, and then try with one; twice as long each time, for a leader
that is only busy is soon asked again, and one that stands still delays a booking now and then."""

Outcome = Literal["booked", "declined", "failed"]
Way = Callable[[Booking | GangBooking], AbstractAsyncContextManager[Awaitable[bool]]]
"""Hands a booking to one leader: entered once that has taken it. The result says whether it is booked.

Raises ApiError where the leader can't be reached, or does not take it.
"""


class HandOver:
    """One replica's hand-overs. `leader`: the way to whoever leads now; None where nobody does, or we do ourselves."""

    def __init__(
        self,
        leader: Callable[[], Way | None],
        told: Callable[[Outcome], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leader = leader
        self._told = told
        self._clock = clock
        self._alone_since, self._alone = 0.0, 0.0
        """When one failed that was not under way with others, and for how long we book by ourselves then: 0 for not."""

    async def booked(self, booking: Booking | GangBooking) -> bool:
        """Whether the leader has booked it. Where not, for whatever reason, it may do so yet, once."""
        began, way = self._clock(), self._leader()
        if way is None or began < self._alone_since + self._alone:
            return False
        if self._alone:
            self._alone_since = began  # this one tries, and the others don't wait for what comes of it
        try:
            async with asyncio.timeout(TAKEN_SECONDS) as limit, way(booking) as answer:
                limit.reschedule(asyncio.get_running_loop().time() + ANSWERED_SECONDS)
                booked = await answer
        except (TimeoutError, ApiError) as problem:
            self._fail(began, str(problem) or "the leader is slow")
            return False
        self._alone = 0.0
        self._told("booked" if booked else "declined")
        return booked

    def _fail(self, began: float, reason: str) -> None:
        self._told("failed")
        if began >= self._alone_since:
            self._alone_since, self._alone = self._clock(), min(2 * self._alone or ALONE_SECONDS, LONGEST_ALONE)
            log.info("bookings not handed over", reason=reason, seconds=self._alone)
