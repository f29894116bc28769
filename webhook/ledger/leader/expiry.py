"""Expires reservations that came to nothing: H after this process saw them first, and only if a read proves it.

H is the longest that a create can be under way after we admitted it. Each process measures ages by its own clock,
because clocks differ. The proof is a quorum read of the pod or workload for which the reservation was made.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from webhook.kube.errors import ApiError
from webhook.ledger.account import Account, Entry, EntryKey, at_tier
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.terms import Pods, Workloads

log = logging.getLogger(__name__)

UNDER_WAY = 10
"""Most of these reads at once, because a slow API server would answer none of hundreds in time."""


class Proof:
    """Reads the pods and workloads of reservations, and removes from the view those that do not exist."""

    def __init__(self, pods: Pods, workloads: Workloads, view: PodView) -> None:
        self._pods = pods
        self._workloads = workloads
        self._view = view
        self._slots = asyncio.Semaphore(UNDER_WAY)

    async def is_nothing(self, reservation: Entry) -> bool:
        """Tell whether a read proves a reservation unused, so that it may be removed. False if the read fails."""
        try:
            async with self._slots:
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

    async def _came_to_nothing(self, gang: Entry) -> bool:
        """Tell whether the workload is gone, has ended, or lacks the generation or charges that were reserved.

        If its generation is later, or its charges aren't known, the watch decides. Groups of pods have no workload.
        """
        if gang.of_pods:
            return True
        uid, declared = await self._workloads.find(gang.kind, gang.namespace, gang.name) or ("", None)
        if uid != gang.uid or declared is None:
            self._view.workloads.release(gang.uid)
            return True
        if declared.generation != gang.generation or declared.charges is None:
            return declared.generation < gang.generation
        return at_tier(declared.charges, gang.tier) != gang.wants


AGAIN_SECONDS = 1.0
"""Seconds after which a reservation is read again if its pod exists and our watch has not shown it yet."""

A_ROUND = 50
"""Most reservations of a tenant that are read in a round of the leader, because all tenants wait for the round."""


class Expiry:
    """The ages of all reservations that a leader has seen, and the times until which other entries stay in an account.

    `horizon`: H in seconds. `wall` returns seconds since 1970.
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
        """Note the current reservations of a tenant, and forget the ages of all others."""
        before, now, wall = self._seen.get(tenant, {}), self._clock(), self._wall()
        self._seen[tenant] = {each.key: before.get(each.key, now) for each in account.reserved}
        self._until.pop(tenant, None)
        if ends := [
            each.until for each in account.entries if each.until > wall or (each.until and each.state == "Vacant")
        ]:
            self._until[tenant] = min(ends)

    def due(self) -> float | None:
        """Return the time of the clock at which the first of them is over; None without any."""
        seen = [each + self._horizon for ages in self._seen.values() for each in ages.values()]
        seen += [self._clock() + max(each - self._wall(), 0.0) for each in self._until.values()]
        return min(seen, default=None)

    def aged(self) -> list[str]:
        """Return the tenants with a reservation or entry whose time is over."""
        old, wall = self._clock() - self._horizon, self._wall()
        aged = [tenant for tenant, ages in self._seen.items() if any(seen <= old for seen in ages.values())]
        return [*aged, *(tenant for tenant, until in self._until.items() if until <= wall)]

    async def lapsed(self, tenant: str, account: Account) -> list[EntryKey]:
        """Return the reservations that are old enough, and for which a read proves that nothing came of them."""
        old, ages = self._clock() - self._horizon, self._seen.get(tenant, {})
        aged = [each for each in account.reserved if ages.get(each.key, old + 1) <= old][:A_ROUND]
        for each in aged:
            ages[each.key] = old + AGAIN_SECONDS
        nothing = await asyncio.gather(*map(self._proof.is_nothing, aged))
        return [each.key for each, gone in zip(aged, nothing, strict=True) if gone]
