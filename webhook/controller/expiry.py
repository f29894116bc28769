"""When a promise has come to nothing: H after this process saw it first, and only if its pod is proved not to exist.

H is the longest that a create can be under way after our yes. Ages are this process's own: clocks differ.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from webhook.kube.errors import ApiError
from webhook.ledger.account import Account, Holder
from webhook.ledger.pod_view import PodView
from webhook.ledger.protocol import Holding

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 1.0
"""After this a reservation that had to be kept is looked at again: its pod exists, and our watch has yet to show it."""

A_ROUND = 50
"""Reservations of a tenant that are looked at in a round of the leader, a request each; all tenants wait for it."""
UNDER_WAY = 10
"""Of these requests, how many run side by side: a slow API server would answer none of hundreds in time."""

Key = tuple[str, str]

Find = Callable[[str, str], Awaitable[tuple[str, Holding | None] | None]]
"""The uid of the pod of that namespace and name, and what it holds, by a quorum read. Raises ApiError."""


class Expiry:
    """The ages of all reservations that a leader has seen. `horizon`: H in seconds."""

    def __init__(self, horizon: float, find: Find, view: PodView, clock: Callable[[], float] = time.monotonic) -> None:
        self._horizon = horizon
        self._find = find
        self._view = view
        self._clock = clock
        self._seen: dict[str, dict[Key, float]] = {}
        self._turns = asyncio.Semaphore(UNDER_WAY)

    def note(self, tenant: str, account: Account) -> None:
        """These are a tenant's reservations now; the ages of others are forgotten."""
        before, now = self._seen.get(tenant, {}), self._clock()
        self._seen[tenant] = {each.key: before.get(each.key, now) for each in account.reservations}

    def due(self) -> float | None:
        """When the oldest reservation is old enough, by the clock."""
        first = (seen for ages in self._seen.values() for seen in ages.values())
        return min((seen + self._horizon for seen in first), default=None)

    def aged(self) -> list[str]:
        """The tenants with reservations that are old enough."""
        old = self._clock() - self._horizon
        return [tenant for tenant, ages in self._seen.items() if any(seen <= old for seen in ages.values())]

    async def lapsed(self, tenant: str, account: Account) -> list[Key]:
        """The reservations that are old enough, and whose pod does not exist, counts nothing, or was not changed."""
        old, ages = self._clock() - self._horizon, self._seen.get(tenant, {})
        aged = [each for each in account.reservations if ages.get(each.key, old + 1) <= old][:A_ROUND]
        for each in aged:
            ages[each.key] = old + AGAIN_SECONDS
        nothing = await asyncio.gather(*map(self._is_nothing, aged))
        return [each.key for each, gone in zip(aged, nothing, strict=True) if gone]

    async def _is_nothing(self, reservation: Holder) -> bool:
        try:
            async with self._turns:
                found = await self._find(reservation.namespace, reservation.name)
        except ApiError as error:
            log.warning("reservation kept", uid=reservation.uid, error=str(error))
            return False
        if found is None or found[0] != reservation.uid:
            self._view.prove_over(reservation.uid)
            return True
        holding = found[1]
        moved = reservation.moved_from is not None
        return holding is None or (moved and holding.charge.flavor != reservation.charges[0].flavor)
