"""Rebuilds an account that is not sealed: a new one, and one that somebody has emptied or edited.

Nobody books meanwhile, so what our watch remembers of it is exact. Where the watch is too young to remember, every
create that may have been promised is waited out first. The order of the steps is that of docs/ledger.md.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from webhook.controller.moving import Moving
from webhook.controller.reopening import Reopening
from webhook.controller.terms import AT_ONCE, Term
from webhook.controller.world import Pods, World
from webhook.ledger.account import Account
from webhook.ledger.pod_view import PodView
from webhook.ledger.rewrite import rewritten
from webhook.ledger.stored_quotas import StoredQuotas, count_of
from webhook.ledger.versions import Version
from webhook.ledger.working_copy import WorkingCopy
from webhook.policy.quota.usage_status import Count

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 0.1
"""Between two looks at whether the other accounts are known."""


class Rebuilding:
    """The rebuilds of one term. `first`: nobody has led before, so there was no account to remember."""

    def __init__(
        self,
        term: Term,
        stored: StoredQuotas,
        view: PodView,
        world: World,
        pods: Pods,
        moving: Moving,
        horizon: float,
        *,
        first: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._term = term
        self._stored = stored
        self._versions = stored.versions
        self._view = view
        self._world = world
        self._pods = pods
        self._moving = moving
        self._horizon = horizon
        self._nothing_before = self._versions.watching_since if first else None
        self._clock = clock
        self._reopening = Reopening(term, stored.versions, world)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def rebuild(self, name: str) -> None:
        """Rebuild one account. Raises ApiError, TryAgain, Superseded; what was begun is begun anew the next time."""
        async with self._turns:
            claimed = await self._claim(name)
        if claimed is None:
            return
        await self._until_shown(claimed)
        if self._seconds_under_way(name) > 0:
            log.warning("ledger rebuilt from nothing", tenant=name, after_seconds=round(self._seconds_under_way(name)))
        while self._versions.newest(name) == claimed:
            if self._seconds_under_way(name) <= 0:
                async with self._turns:
                    if await self._done(claimed):
                        return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _claim(self, name: str) -> Version | None:
        """The version with our term; None where it needs no rebuilding."""
        self._moving.claimed()

        def edit(copy: WorkingCopy) -> None:
            if not copy.sealed and not copy.account.newer and not self._is_claimed(copy):
                count = Count(repairing="the ledger of this tenant is being rebuilt")
                status = self._world.status(copy.version, count)
                copy.put(Account(term=self._term.name), sealed=False, changes=status)

        await self._term.change(name, edit)
        self._reopening.ended(name)
        found = self._versions.newest(name)
        return found if found and not found.sealed and found.account.term == self._term.name else None

    def _is_claimed(self, copy: WorkingCopy) -> bool:
        """Whether it bears our term, waits for nothing that its status should tell, and no write may still come."""
        version, blank = copy.version, Account(term=self._term.name, revision=copy.account.revision)
        if copy.account != blank or self._reopening.is_under_way(version.name):
            return False
        return self._seconds_under_way(version.name) <= 0 and not self._reopening.must_wait(version)

    async def _until_shown(self, claimed: Version) -> None:
        """Our own watch has shown our claim, and so everything before it."""
        name = claimed.name
        while self._versions.newest(name) == claimed and claimed.newer_than(self._versions.shown(name)):
            await self._versions.news(name).wait()

    def _seconds_under_way(self, name: str) -> float:
        """For how long something may be under way that we don't remember.

        A watch that is older than H, and has shown no account, proves that there is nothing to remember. So does the
        watch of whoever leads first, until it begins anew.
        """
        since = self._versions.watching_since
        known = self._versions.remembered(name) is not None or since == self._nothing_before
        return 0.0 if known else since + self._horizon - self._clock()

    async def _done(self, claimed: Version) -> bool:
        """Write the account, unless others must be known first. What it opens is decided before it is listed."""
        async with self._moving.alone:
            known = self._seconds_under_way(claimed.name) <= 0
            account = self._reopening.begin(claimed) if known else None
        if account is None:
            return False
        await self._list(account)
        await self._write(claimed, account)
        self._reopening.ended(claimed.name)
        return True

    async def _list(self, account: Account) -> None:
        """The pods of its namespaces, listed after our claim."""
        for namespace in account.namespaces:
            told = self._view.begin_list()
            try:
                found = await self._pods.list_in(namespace)
            finally:
                self._view.end_list(told)
            self._view.merge(namespace, found, told)

    async def _write(self, claimed: Version, account: Account) -> None:
        def edit(copy: WorkingCopy) -> None:
            if copy.version.quota.uid == claimed.quota.uid and copy.account == claimed.account:
                whole = rewritten(account, self._view)
                count = count_of(whole, copy.version.in_force, "; ".join(self._pods.problems()))
                copy.put(whole, changes=self._world.status(copy.version, count))

        await self._term.change(claimed.name, edit)
        log.info("ledger rebuilt", tenant=claimed.name)
