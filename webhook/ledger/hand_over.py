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
ALONE_SECONDS = 2.0
"""After one that failed we book all ourselves, and then try with one: a leader that stands still delays one booking in
this time. It is about how often replicas read who leads."""

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
        self._alone_until = 0.0

    async def booked(self, booking: Booking | GangBooking) -> bool:
        """Whether the leader has booked it. Where not, for whatever reason, it may do so yet, once."""
        now, way = self._clock(), self._leader()
        if way is None or now < self._alone_until:
            return False
        if self._alone_until:
            self._alone_until = now + ALONE_SECONDS  # this one tries, and the others don't wait for what comes of it
        try:
            async with asyncio.timeout(TAKEN_SECONDS) as limit, way(booking) as answer:
                limit.reschedule(asyncio.get_running_loop().time() + ANSWERED_SECONDS)
                booked = await answer
        except (TimeoutError, ApiError) as problem:
            self._alone_until = self._clock() + ALONE_SECONDS
            self._told("failed")
            log.info("booking not handed over", reason=str(problem) or "the leader is slow")
            return False
        self._alone_until = 0.0
        self._told("booked" if booked else "declined")
        return booked
