"""Rebuilds an account that is not sealed: a new one, and one that somebody has emptied or edited.

Nobody books meanwhile, so what our watch remembers of it is exact. Where the watch is too young to remember, every
create that may have been promised is waited out first. Decisions are made one at a time; the lists and writes that
follow run side by side.
"""

import asyncio
import logging
from collections.abc import Collection

from msgspec.structs import replace

from webhook.ledger.account import Account, NamespaceState
from webhook.ledger.kubernetes_store import count_of
from webhook.ledger.leader.moving import Moving
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.leader.terms import AT_ONCE
from webhook.ledger.leader.world import Leading, Pods
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.tenant_status import Count


class Restoring:
    """What accounts are rebuilt with in one term: their promises, and the namespaces that they open.

    Until it is known how a write has ended, the namespaces that it opens are taken.
    """

    def __init__(self, leading: Leading) -> None:
        self._term = leading.term
        self._versions = leading.store.versions
        self._world = leading.world
        self._under_way: dict[str, Collection[str]] = {}
        self._waited_for = ""

    def must_wait(self, version: Version) -> bool:
        """Whether another account may hold any namespace, and this one does not remember its own."""
        if self._is_remembered(version):
            return False
        names = (self._waited_for, *self._versions.names())  # mostly it is still the same one
        others = (self._versions.newest(name) for name in names if name != version.name)
        found = next((each for each in others if each is not None and self._may_hold_any(each)), None)
        self._waited_for = found.name if found else ""
        return found is not None

    def begin(self, claimed: Version) -> Account | None:
        """The account without its pods, whose namespaces nobody else opens until it has `ended`.

        None while it is not known which namespaces the others have.
        """
        if self.must_wait(claimed):
            return None
        account = self._account(claimed)
        self._under_way[claimed.name] = account.namespaces.keys()
        return account

    def ended(self, name: str) -> None:
        self._under_way.pop(name, None)

    def is_under_way(self, name: str) -> bool:
        """Whether a write was begun, and nobody has looked yet how it has ended."""
        return name in self._under_way

    def _is_remembered(self, version: Version) -> bool:
        remembered = self._versions.remembered(version.name)
        return remembered is not None and remembered.uid == version.quota.uid

    def _account(self, claimed: Version) -> Account:
        """What it was; for a new TenantQuota the namespaces that are its tenant's by now and in no other account.

        What one of its name, now deleted, had promised in another tenant's namespaces moves with them from here, and so
        do its gangs there. Where it had none the namespace is not its own any more: its pods count nothing here.
        """
        remembered = self._versions.remembered(claimed.name)
        before = remembered.account if remembered else Account()
        if self._is_remembered(claimed):
            return replace(before, term=self._term.name)
        taken = self._taken(claimed.name)
        wanted = [namespace for namespace, tenant in self._world.wanted().items() if tenant == claimed.name]
        moves = {each.namespace for each in before.entries if each.state == "Reserved" or each.is_gang}
        namespaces: dict[str, NamespaceState] = {
            each: "closed" for each in before.namespaces if each in moves and each not in taken
        }
        namespaces |= {each: "open" for each in wanted if each not in taken}
        entries = tuple(each for each in before.entries if each.namespace in namespaces)
        return Account(term=self._term.name, namespaces=namespaces, entries=entries)

    def _taken(self, name: str) -> set[str]:
        """The namespaces that others have, or open by a write under way; a seal tells that theirs has ended."""
        taken: set[str] = set()
        for other in self._versions.names():
            version = self._versions.newest(other)
            if other != name and version is not None:
                taken |= version.account.namespaces.keys()
                taken |= set() if version.sealed else set(self._under_way.get(other, ()))
        return taken

    def _may_hold_any(self, version: Version) -> bool:
        """Whether nobody knows which namespaces it has: it is not ours yet, or is to be rebuilt from what it was."""
        if version.account.newer or not self._term.bears(version.account):
            return True
        return not version.sealed and self._is_remembered(version)


log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Between two looks at whether the other accounts are known."""


class Rebuilding:
    """The rebuilds of one term. `first`: nobody has led before, so there was no account to remember."""

    def __init__(self, leading: Leading, pods: Pods, moving: Moving, *, first: bool) -> None:
        self._leading = leading
        self._term, self._view = leading.term, leading.view
        self._versions = leading.store.versions
        self._pods = pods
        self._moving = moving
        self._nothing_before = self._versions.watching_since if first else None
        self._restoring = Restoring(leading)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def rebuild(self, name: str) -> None:
        """Rebuild one account. Raises ApiError, TryAgain, Superseded; what was begun is begun anew the next time."""
        async with self._turns:
            claimed = await self._claim(name)
        if claimed is None:
            return
        await self._until_shown(claimed)
        if self._seconds_under_way(name) > 0:
            log.warning(
                "ledger rebuilt from nothing", {"tenant": name, "after_seconds": round(self._seconds_under_way(name))}
            )
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
                status = self._leading.world.status(copy.version, count)
                copy.put(Account(term=self._term.name), sealed=False, changes=status)

        await self._term.change(name, edit)
        self._restoring.ended(name)
        found = self._versions.newest(name)
        return found if found and not found.sealed and found.account.term == self._term.name else None

    def _is_claimed(self, copy: WorkingCopy) -> bool:
        """Whether it bears our term, waits for nothing that its status should tell, and no write may still come."""
        version, blank = copy.version, Account(term=self._term.name, revision=copy.account.revision)
        if copy.account != blank or self._restoring.is_under_way(version.name):
            return False
        return self._seconds_under_way(version.name) <= 0 and not self._restoring.must_wait(version)

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
        return 0.0 if known else since + self._leading.horizon - self._leading.clock()

    async def _done(self, claimed: Version) -> bool:
        """Write the account, unless others must be known first. What it opens is decided before it is listed."""
        async with self._moving.alone:
            known = self._seconds_under_way(claimed.name) <= 0
            account = self._restoring.begin(claimed) if known else None
        if account is None:
            return False
        await self._list(account)
        await self._write(claimed, account)
        self._restoring.ended(claimed.name)
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
                whole = rewritten(account, self._view, has_queue=copy.version.active.has_queue)
                count = count_of(whole, copy.version.active, "; ".join(self._pods.problems()))
                copy.put(whole, changes=self._leading.world.status(copy.version, count))

        await self._term.change(claimed.name, edit)
        log.info("ledger rebuilt", {"tenant": claimed.name})
