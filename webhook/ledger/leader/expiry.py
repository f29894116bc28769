"""When a reservation has come to nothing: H after this process saw it first, and only if a read proves it.

H is the longest that a create can be under way after our yes. Ages are this process's own: clocks differ. The proof is
a quorum read of the pod or the workload that it was made for.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from webhook.kube.errors import ApiError
from webhook.ledger.account import Account, Entry, EntryKey, at_tier
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.world import Pods, Workloads

log = logging.getLogger(__name__)

UNDER_WAY = 10
"""How many of these reads run side by side: a slow API server would answer none of hundreds in time."""


class Proof:
    """Reads what was promised, and tells the view what does not exist."""

    def __init__(self, pods: Pods, workloads: Workloads, view: PodView) -> None:
        self._pods = pods
        self._workloads = workloads
        self._view = view
        self._turns = asyncio.Semaphore(UNDER_WAY)

    async def is_nothing(self, reservation: Entry) -> bool:
        """Tells whether nothing came of it, so that it may go. What can't be read may be there."""
        try:
            async with self._turns:
                if reservation.is_gang:
                    return await self._came_to_nothing(reservation)
                return await self._is_no_pod(reservation)
        except ApiError as error:
            log.warning("reservation not expired", {"uid": reservation.uid, "error": str(error)})
            return False

    async def _is_no_pod(self, reservation: Entry) -> bool:
        found = await self._pods.find(reservation.namespace, reservation.name)
        if found is None or found[0] != reservation.uid:
            self._view.prove_over(reservation.uid)
            return True
        holding = found[1]
        moved = reservation.instead_of is not None
        return holding is None or (moved and holding.charge.flavor != reservation.wants[0].flavor)

    async def _came_to_nothing(self, promise: Entry) -> bool:
        """Where the workload is what was promised, or has gone on from there, the watch will show it."""
        if promise.of_pods:
            return True
        uid, declared = await self._workloads.find(promise.kind, promise.namespace, promise.name) or ("", None)
        if uid != promise.uid or declared is None:
            self._view.workloads.release(promise.uid)
            return True
        if declared.generation != promise.generation or declared.charges is None:
            return declared.generation < promise.generation
        return at_tier(declared.charges, promise.tier) != promise.wants


AGAIN_SECONDS = 1.0
"""After this a promise that had to be kept is looked at again: it exists, and our watch has yet to show it."""

A_ROUND = 50
"""Promises of a tenant that are looked at in a round of the leader, a request each; all tenants wait for it."""


class Expiry:
    """The ages of all reservations that a leader has seen, and the times of what stands in an account until then.

    `horizon`: H in seconds. `wall` tells seconds since 1970.
    """

    def __init__(
        self,
        horizon: float,
        proof: Proof,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._horizon = horizon
        self._proof = proof
        self._clock = clock
        self._wall = wall
        self._seen: dict[str, dict[EntryKey, float]] = {}
        self._until: dict[str, int] = {}

    def note(self, tenant: str, account: Account) -> None:
        """These are a tenant's reservations now; the ages of others are forgotten."""
        before, now, wall = self._seen.get(tenant, {}), self._clock(), self._wall()
        self._seen[tenant] = {each.key: before.get(each.key, now) for each in account.reserved}
        self._until.pop(tenant, None)
        if ends := [
            each.until for each in account.entries if each.until > wall or (each.until and each.state == "Vacant")
        ]:
            self._until[tenant] = min(ends)

    def due(self) -> float | None:
        """When the first of them is over, by the clock."""
        seen = [each + self._horizon for ages in self._seen.values() for each in ages.values()]
        seen += [self._clock() + max(each - self._wall(), 0.0) for each in self._until.values()]
        return min(seen, default=None)

    def aged(self) -> list[str]:
        """The tenants of which one is."""
        old, wall = self._clock() - self._horizon, self._wall()
        aged = [tenant for tenant, ages in self._seen.items() if any(seen <= old for seen in ages.values())]
        return [*aged, *(tenant for tenant, until in self._until.items() if until <= wall)]

    async def lapsed(self, tenant: str, account: Account) -> list[EntryKey]:
        """The reservations that are old enough, and of which a read proves that nothing came of them."""
        old, ages = self._clock() - self._horizon, self._seen.get(tenant, {})
        aged = [each for each in account.reserved if ages.get(each.key, old + 1) <= old][:A_ROUND]
        for each in aged:
            ages[each.key] = old + AGAIN_SECONDS
        nothing = await asyncio.gather(*map(self._proof.is_nothing, aged))
        return [each.key for each, gone in zip(aged, nothing, strict=True) if gone]
