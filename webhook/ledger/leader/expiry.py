"""When a promise has come to nothing: H after this process saw it first, and only if a read proves it.

H is the longest that a create can be under way after our yes. Ages are this process's own: clocks differ. The proof is
a quorum read of the pod or the workload that the promise was made for.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from webhook.kube.errors import ApiError
from webhook.ledger.account import Account, Gang, Holder, Promise, at_tier
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import promise_key
from webhook.ledger.leader.world import Pods, Workloads

log = logging.getLogger(__name__)

UNDER_WAY = 10
"""How many of these reads run side by side: a slow API server would answer none of hundreds in time."""

Key = tuple[str, str]


class Open(NamedTuple):
    """A promise of an account that nothing has been seen of: a pod's reservation, or one to a workload."""

    key: Key
    of: Holder | Gang
    promise: Promise = Promise()


def open_promises(account: Account) -> Iterator[Open]:
    yield from (Open(each.key, each) for each in account.reservations)
    for gang in account.gangs:
        yield from (Open(promise_key(gang, each), gang, each) for each in gang.promises)


class Proof:
    """Reads what was promised, and tells the view what does not exist."""

    def __init__(self, pods: Pods, workloads: Workloads, view: PodView) -> None:
        self._pods = pods
        self._workloads = workloads
        self._view = view
        self._turns = asyncio.Semaphore(UNDER_WAY)

    async def is_nothing(self, promise: Open) -> bool:
        """Tells whether nothing came of it, so that it may go. What can't be read may be there."""
        try:
            async with self._turns:
                if isinstance(promise.of, Gang):
                    return await self._came_to_nothing(promise.of, promise.promise)
                return await self._is_no_pod(promise.of)
        except ApiError as error:
            log.warning("promise not expired", {"uid": promise.of.uid, "error": str(error)})
            return False

    async def _is_no_pod(self, reservation: Holder) -> bool:
        found = await self._pods.find(reservation.namespace, reservation.name)
        if found is None or found[0] != reservation.uid:
            self._view.prove_over(reservation.uid)
            return True
        holding = found[1]
        moved = reservation.moved_from is not None
        return holding is None or (moved and holding.charge.flavor != reservation.charges[0].flavor)

    async def _came_to_nothing(self, gang: Gang, promise: Promise) -> bool:
        """Where the workload is what was promised, or has gone on from there, the watch will show it."""
        if gang.of_pods:
            return True
        uid, declared = await self._workloads.find(gang.kind, gang.namespace, gang.name) or ("", None)
        if uid != gang.uid or declared is None:
            self._view.workloads.release(gang.uid)
            return True
        if declared.generation != promise.generation or declared.charges is None:
            return declared.generation < promise.generation
        return at_tier(declared.charges, gang.tier) != promise.charges


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
        first = (seen for ages in self._seen.values() for seen in ages.values())
        return min((seen + self._horizon for seen in first), default=None)

    def aged(self) -> list[str]:
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
