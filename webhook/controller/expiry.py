"""When a promise has come to nothing: H after this process saw it first, and only if a read proves it.

H is the longest that a create can be under way after our yes. Ages are this process's own: clocks differ.
"""

import asyncio
import time
from collections.abc import Callable

from webhook.controller.proof import Key, Proof, open_promises
from webhook.ledger.account import Account

AGAIN_SECONDS = 1.0
"""After this a promise that had to be kept is looked at again: it exists, and our watch has yet to show it."""

A_ROUND = 50
"""Promises of a tenant that are looked at in a round of the leader, a request each; all tenants wait for it."""


class Expiry:
    """The ages of all promises that a leader has seen. `horizon`: H in seconds."""

    def __init__(self, horizon: float, proof: Proof, clock: Callable[[], float] = time.monotonic) -> None:
        self._horizon = horizon
        self._proof = proof
        self._clock = clock
        self._seen: dict[str, dict[Key, float]] = {}

    def note(self, tenant: str, account: Account) -> None:
        """These are a tenant's promises now; the ages of others are forgotten."""
        before, now = self._seen.get(tenant, {}), self._clock()
        self._seen[tenant] = {each.key: before.get(each.key, now) for each in open_promises(account)}

    def due(self) -> float | None:
        """When the oldest promise is old enough, by the clock."""
        first = (seen for ages in self._seen.values() for seen in ages.values())
        return min((seen + self._horizon for seen in first), default=None)

    def aged(self) -> list[str]:
        """The tenants with promises that are old enough."""
        old = self._clock() - self._horizon
        return [tenant for tenant, ages in self._seen.items() if any(seen <= old for seen in ages.values())]

    async def lapsed(self, tenant: str, account: Account) -> list[Key]:
        """The promises that are old enough, and of which a read proves that nothing came of them."""
        old, ages = self._clock() - self._horizon, self._seen.get(tenant, {})
        aged = [each for each in open_promises(account) if ages.get(each.key, old + 1) <= old][:A_ROUND]
        for each in aged:
            ages[each.key] = old + AGAIN_SECONDS
        nothing = await asyncio.gather(*map(self._proof.is_nothing, aged))
        return [each.key for each, gone in zip(aged, nothing, strict=True) if gone]
