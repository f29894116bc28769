"""Whether a promise has come to nothing, by a quorum read of the pod or the workload that it was made for."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import structlog

from webhook.controller.world import Pods, Workloads
from webhook.kube.errors import ApiError
from webhook.ledger.account import Account, Gang, Holder, Promise, drawn_of
from webhook.ledger.pod_view import PodView
from webhook.ledger.rewritten_gangs import promise_key

log = structlog.get_logger(__name__)

UNDER_WAY = 10
"""How many of these reads run side by side: a slow API server would answer none of hundreds in time."""

Key = tuple[str, str]


class Open(NamedTuple):
    """A promise of an account that nothing has been seen of: a pod's reservation, or one to a workload."""

    key: Key
    of: Holder | Gang
    promise: Promise = Promise()


def open_promises(account: Account) -> Iterator[Open]:
    """All promises of an account."""
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
        """Whether it does not exist, counts nothing, or was not changed. What can't be read may be there."""
        try:
            async with self._turns:
                if isinstance(promise.of, Gang):
                    return await self._came_to_nothing(promise.of, promise.promise)
                return await self._is_no_pod(promise.of)
        except ApiError as error:
            log.warning("promise kept", uid=promise.of.uid, error=str(error))
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
        return drawn_of(declared.charges, gang.tier) != promise.charges
