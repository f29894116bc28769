"""What one replica does for all: it keeps the accounts in line with pods, namespaces and policy.

It first writes its term into every account, and then lists the pods: whoever led before can't write from an older view
any more. An account under another term ends the leading. The rules are in docs/ledger.md.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

import structlog

from webhook.controller.changes import Changes
from webhook.controller.expiry import Expiry
from webhook.controller.moving import Moving
from webhook.controller.rebuilding import Rebuilding
from webhook.controller.terms import Superseded, Term
from webhook.controller.world import Pods, World
from webhook.kube.errors import ApiError
from webhook.ledger.kubernetes import KubernetesLedger
from webhook.ledger.pod_view import PodView
from webhook.ledger.protocol import TryAgain
from webhook.ledger.rewrite import rewritten
from webhook.ledger.stored_quotas import StoredQuotas, count_of
from webhook.ledger.working_copy import WorkingCopy

log = structlog.get_logger(__name__)

BREATH_SECONDS = 0.05
"""Between two rounds at least: pods that are seen together are counted by one write."""
AT_ONCE = 16
"""TenantQuotas that are written side by side."""
RECHECK_SECONDS = 5.0
"""After this a round comes unasked: it repeats what could not be written."""


class Leader:
    """Leads for one term. `horizon`: H, the longest that a create can be under way after our yes, in seconds."""

    def __init__(
        self,
        ledger: KubernetesLedger,
        stored: StoredQuotas,
        world: World,
        changes: Changes,
        identity: str,
        horizon: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stored = stored
        self._versions = stored.versions
        self._world = world
        self._changes = changes
        self._horizon = horizon
        self._clock = clock
        self._term = Term(ledger, identity)
        self._view = PodView(changes.namespace, clock)
        self._moving = Moving(self._term, stored, self._view, world)
        self._claimed: set[str] = set()
        self._repairing: set[str] = set()
        self._left_alone: set[str] = set()

    async def lead(self, first: bool) -> None:  # noqa: FBT001 - as the election calls it
        """Lead until cancelled or superseded. `first`: nobody has led before. Raises ApiError, TryAgain."""
        try:
            await self._claim_all()
            async with self._world.pods(self._view) as pods, asyncio.TaskGroup() as repairs:
                self._expiry = Expiry(self._horizon, pods.find, self._view, self._clock)
                rebuilding = Rebuilding(
                    self._term,
                    self._stored,
                    self._view,
                    self._world,
                    pods,
                    self._moving,
                    self._horizon,
                    first=first,
                    clock=self._clock,
                )
                self._changes.everything()
                while True:
                    self._repair(rebuilding, repairs)
                    await self._move()
                    await self._count(pods)
                    await asyncio.sleep(BREATH_SECONDS)
                    await self._changes.wait(self._until_due())
        except* Superseded as superseded:
            log.warning("superseded", reason=str(superseded.exceptions[0]))

    async def _claim_all(self) -> None:
        """Put all accounts under our term. One that can't be written now is tried again and ends no term: whoever led
        next would find the same, and nothing would be counted for as long as the API server is slow.
        """
        names = [version.name for version in await self._stored.every()]
        while names:
            await _for_each(names, self._claim)
            names = [name for name in names if not self._is_claimed(name)]

    async def _claim(self, name: str) -> None:
        try:
            await self._term.claim(name)
            self._claimed.add(name)
        except TryAgain as problem:
            log.warning("ledger not claimed", tenant=name, error=str(problem))

    def _is_claimed(self, name: str) -> bool:
        """A TenantQuota that is deleted needs no claim."""
        return name in self._claimed or self._versions.newest(name) is None

    def _repair(self, rebuilding: Rebuilding, repairs: asyncio.TaskGroup) -> None:
        """Begin to rebuild each account that is not sealed."""
        for name in self._versions.names():
            version = self._versions.newest(name)
            if version is None or version.sealed or name in self._repairing:
                continue
            if version.account.newer:
                self._leave_alone(name)
                continue
            self._repairing.add(name)
            repairs.create_task(self._rebuilt(name, rebuilding))

    def _leave_alone(self, name: str) -> None:
        if name not in self._left_alone:
            log.error("ledger of a later version", tenant=name)
        self._left_alone.add(name)

    async def _rebuilt(self, name: str, rebuilding: Rebuilding) -> None:
        try:
            await rebuilding.rebuild(name)
        except (ApiError, TryAgain) as error:
            log.warning("ledger not rebuilt", tenant=name, error=str(error))
            await asyncio.sleep(1.0)
        finally:
            self._repairing.discard(name)
            self._changes.everything()

    async def _move(self) -> None:
        try:
            await self._moving.round()
        except (ApiError, TryAgain) as error:
            log.warning("namespaces not moved", error=str(error))

    async def _count(self, pods: Pods) -> None:
        """Write the accounts and statuses that have become others."""
        self._view.drop_overdue()
        names = {*self._changes.take(self._versions), *self._expiry.aged()}
        stale = "; ".join(pods.problems())
        await _for_each(names, lambda name: self._write(name, stale))

    async def _write(self, name: str, stale: str) -> None:
        version = self._versions.newest(name)
        if version is None or not version.sealed:
            return
        self._expiry.note(name, version.account)
        lapsed = await self._expiry.lapsed(name, version.account)

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                account = rewritten(copy.account, self._view, lapsed)
                status = self._world.status(copy.version, count_of(account, copy.version.in_force, stale))
                copy.put(copy.account if account == copy.account else account, changes=status)

        try:
            await self._term.change(name, edit)
        except TryAgain as problem:
            log.warning("tenant status not written", tenant=name, error=str(problem))
            self._changes.tenant(name)

    def _until_due(self) -> float:
        """Seconds until something is due that nobody tells of."""
        due = [each for each in (self._expiry.due(), self._view.drop_overdue()) if each is not None]
        return min([RECHECK_SECONDS, *(max(each - self._clock(), 0.0) for each in due)])


async def _for_each(names: Iterable[str], do: Callable[[str], Awaitable[None]]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(name: str) -> None:
        async with turns:
            await do(name)

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(in_turn(name))
