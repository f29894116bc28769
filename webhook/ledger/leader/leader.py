"""The leader: one replica updates the accounts to match pods, namespaces and policy.

It writes its term into every account before it lists the pods, so that an earlier leader can't write from an older
view. When it finds an account under another term, it stops leading. The rules are in docs/decisions/books.md.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from webhook.kube.errors import ApiError
from webhook.ledger.draft import NotNow
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.counting import Changes, Counting
from webhook.ledger.leader.expiry import Proof
from webhook.ledger.leader.moving import Moving
from webhook.ledger.leader.opening import Opening
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rebuilding import Rebuilding
from webhook.ledger.leader.rewrite import book_with_its_pods
from webhook.ledger.leader.terms import Leading, Superseded, Term, World
from webhook.ledger.protocol import Booked, GangBooking, TryAgain
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Shortfall

log = logging.getLogger(__name__)

BREATH_SECONDS = 0.05
"""Shortest time between two rounds, so that one write counts all pods that are seen together."""


class Leader:
    """Leads for one `term`. `horizon` is that of `Leading`; `done` is called after each round."""

    def __init__(
        self,
        term: Term,
        store: KubernetesStore,
        world: World,
        changes: Changes,
        horizon: float,
        clock: Callable[[], float] = time.monotonic,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._done = done
        self._changes = changes
        view = PodView(changes.namespace, clock, world.now)
        self._leading = Leading(term, store, view, world, horizon, clock)
        self._moving = Moving(self._leading)
        self._repairing: set[str] = set()
        self._left_alone: set[str] = set()

    async def lead(self, first: bool) -> None:  # noqa: FBT001 - as the election calls it
        """Lead until cancelled or superseded. `first`: nobody has led before. Raises ApiError at the start."""
        leading, world, view = self._leading, self._leading.world, self._leading.view
        try:
            await leading.term.claim_all(leading.store)
            async with (
                AsyncExitStack() as stack,
                world.workloads(view.workloads) as workloads,
                world.pods(view) as pods,
                asyncio.TaskGroup() as tasks,
            ):
                for version in map(leading.store.versions.newest, leading.store.versions.names()):
                    if version is not None and version.sealed:
                        view.inherit(version.account)
                # Gangs are booked by this view only once it has the vacant slots of the last leader.
                stack.enter_context(leading.term.ledger.booking_gangs(self._book_gang))
                counting = Counting(leading, self._changes, pods, Proof(pods, workloads, view))
                opening = Opening(leading)
                tasks.create_task(opening.run())
                rebuilding = Rebuilding(leading, pods, self._moving, first=first)
                self._changes.everything()
                while True:
                    self._repair(rebuilding, tasks)
                    await self._move()
                    await counting.round()
                    await opening.round()
                    self._done()
                    await asyncio.sleep(BREATH_SECONDS)
                    await self._changes.wait(min(counting.until_due(), opening.until_due()))
        except* Superseded as superseded:
            log.warning("superseded", {"reason": _first(superseded)})

    def _book_gang(self, copy: WorkingCopy, booking: GangBooking) -> Booked | Shortfall | NotNow:
        """Book a gang by our view, unless another replica leads by now and knows more."""
        if copy.account.term != self._leading.term.name:
            return copy.book(booking)
        return book_with_its_pods(copy, self._leading.view, booking)

    def _repair(self, rebuilding: Rebuilding, repairs: asyncio.TaskGroup) -> None:
        """Begin to rebuild each account that is not sealed."""
        versions = self._leading.store.versions
        for name in versions.names():
            version = versions.newest(name)
            if version is None or version.sealed or name in self._repairing:
                continue
            if version.account.newer:
                if name not in self._left_alone:
                    log.error("ledger of a later version", {"tenant": name})
                self._left_alone.add(name)
                continue
            self._repairing.add(name)
            repairs.create_task(self._rebuilt(name, rebuilding))

    async def _rebuilt(self, name: str, rebuilding: Rebuilding) -> None:
        try:
            await rebuilding.rebuild(name)
        except (ApiError, TryAgain) as error:
            log.warning("ledger not rebuilt", {"tenant": name, "error": str(error)})
            await asyncio.sleep(1.0)
        finally:
            self._repairing.discard(name)
            self._changes.tenant(name)

    async def _move(self) -> None:
        try:
            await self._moving.round(self._changes.generation)
        except (ApiError, TryAgain) as error:
            log.warning("namespaces not moved", {"error": str(error)})


def _first(error: BaseException) -> str:
    """Return the text of the first error of a group. Tasks within tasks make groups within groups."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else str(error)
