"""Rebuilds an account that is not sealed: a new one, and one that somebody has emptied or edited.

Nobody books meanwhile, so what our watch remembers of it is exact. Where the watch is too young to remember, every
create that may have been promised is waited out first. The order of the steps is that of docs/ledger.md.
"""

import asyncio
import time
from collections.abc import Callable

import structlog
from msgspec.structs import replace

from webhook.controller.moving import Moving
from webhook.controller.terms import AT_ONCE, Term
from webhook.controller.world import Pods, World
from webhook.ledger.account import Account, NamespaceState
from webhook.ledger.pod_view import PodView
from webhook.ledger.rewrite import rewritten
from webhook.ledger.stored_quotas import StoredQuotas
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
            async with self._moving.alone:
                base = self._base(name, claimed) if self._seconds_under_way(name) <= 0 else None
                if base is not None:
                    await self._list(base)
                    await self._write(claimed, base)
                    return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _claim(self, name: str) -> Version | None:
        """The version with our term; None where it needs no rebuilding."""
        self._moving.claimed()

        def edit(copy: WorkingCopy) -> None:
            if not copy.sealed and not copy.account.newer:
                count = Count(repairing="the ledger of this tenant is being rebuilt")
                status = self._world.status(copy.version, count)
                copy.put(Account(term=self._term.name), sealed=False, changes=status)

        await self._term.change(name, edit)
        found = self._versions.newest(name)
        return found if found and not found.sealed and found.account.term == self._term.name else None

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

    def _base(self, name: str, claimed: Version) -> Account | None:
        """The account without its pods; None while it is not known which namespaces the others have.

        What a TenantQuota that was deleted had promised in another tenant's namespaces moves with them from here.
        """
        remembered = self._versions.remembered(name)
        if remembered is not None and remembered.uid == claimed.quota.uid:
            return replace(remembered.account, term=self._term.name)
        taken: set[str] = set()
        for other in self._versions.names():
            version = self._versions.newest(other)
            if other == name or version is None:
                continue
            if self._may_hold_any(version):
                return None
            taken |= version.account.namespaces.keys()
        wanted = [namespace for namespace, tenant in self._world.wanted().items() if tenant == name]
        before = remembered.account if remembered else Account()
        namespaces: dict[str, NamespaceState] = {each: "closed" for each in before.namespaces if each not in taken}
        namespaces |= {each: "open" for each in wanted if each not in taken}
        pods, reservations = (
            tuple(each for each in holders if each.namespace in namespaces)
            for holders in (before.pods, before.reservations)
        )
        gangs = tuple(each for each in before.gangs if each.namespace in namespaces)
        return Account(term=self._term.name, namespaces=namespaces, pods=pods, reservations=reservations, gangs=gangs)

    def _may_hold_any(self, version: Version) -> bool:
        """Whether nobody knows which namespaces it has: it is not ours yet, or is to be rebuilt from what it was."""
        if version.account.newer or not self._term.bears(version.account):
            return True
        remembered = self._versions.remembered(version.name)
        return not version.sealed and remembered is not None and remembered.uid == version.quota.uid

    async def _list(self, base: Account) -> None:
        """The pods of its namespaces, listed after our claim."""
        for namespace in base.namespaces:
            told = self._view.begin_list()
            try:
                found = await self._pods.list_in(namespace)
            finally:
                self._view.end_list(told)
            self._view.merge(namespace, found, told)

    async def _write(self, claimed: Version, base: Account) -> None:
        def edit(copy: WorkingCopy) -> None:
            if copy.version.quota.uid == claimed.quota.uid and copy.account == claimed.account:
                copy.put(rewritten(base, self._view))

        await self._term.change(claimed.name, edit)
        log.info("ledger rebuilt", tenant=claimed.name)
