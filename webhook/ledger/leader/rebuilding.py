"""Rebuilds an account that is not sealed: a new one, and one that somebody has emptied or edited.

Nobody books meanwhile, so the account that our watch remembers is exact. If the watch is too young to remember it, the
leader first waits until no admitted create can be under way. Decisions are made one at a time, and the lists and writes
that follow run at the same time.
"""

import asyncio
import logging
from collections.abc import Collection

from msgspec.structs import replace

from webhook.ledger.account import Account, NamespaceState
from webhook.ledger.kubernetes_store import count_of
from webhook.ledger.leader.moving import Moving
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.leader.terms import AT_ONCE, Leading, Pods
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.tenant_status import Count


class Restoring:
    """The reservations and namespaces with which accounts are rebuilt in one term.

    The namespaces that a write opens are taken until its result is known.
    """

    def __init__(self, leading: Leading) -> None:
        self._term = leading.term
        self._versions = leading.store.versions
        self._world = leading.world
        self._under_way: dict[str, Collection[str]] = {}
        self._waited_for = ""

    def must_wait(self, version: Version) -> bool:
        """Tell whether this account's namespaces are not remembered, and another one may have them."""
        if self._is_remembered(version):
            return False
        names = (self._waited_for, *self._versions.names())  # first the one for which it waited last time
        others = (self._versions.newest(name) for name in names if name != version.name)
        found = next((each for each in others if each is not None and self._may_hold_any(each)), None)
        self._waited_for = found.name if found else ""
        return found is not None

    def begin(self, claimed: Version) -> Account | None:
        """Return the account without its pods. No other account opens its namespaces until `ended`.

        Return None while the namespaces of the others are not known.
        """
        if self.must_wait(claimed):
            return None
        account = self._account(claimed)
        self._under_way[claimed.name] = account.namespaces.keys()
        return account

    def ended(self, name: str) -> None:
        self._under_way.pop(name, None)

    def is_under_way(self, name: str) -> bool:
        """Tell whether a write was begun whose result is not known yet."""
        return name in self._under_way

    def _is_remembered(self, version: Version) -> bool:
        remembered = self._versions.remembered(version.name)
        return remembered is not None and remembered.quota.uid == version.quota.uid

    def _account(self, claimed: Version) -> Account:
        """Return the remembered account; for a new TenantQuota its tenant's namespaces that no other account has.

        A deleted TenantQuota of the same name may have reservations and gangs in namespaces that belong to another
        tenant by now. Such a namespace is closed here, so that they move with it. A namespace without any is dropped.
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
        """Return the namespaces that others have, or open by a write under way. A sealed account has none under way."""
        taken: set[str] = set()
        for other in self._versions.names():
            version = self._versions.newest(other)
            if other != name and version is not None:
                taken |= version.account.namespaces.keys()
                taken |= set() if version.sealed else set(self._under_way.get(other, ()))
        return taken

    def _may_hold_any(self, version: Version) -> bool:
        """Tell whether its namespaces are not known, because it is not ours or will be rebuilt from memory."""
        if version.account.newer or not self._term.bears(version.account):
            return True
        return not version.sealed and self._is_remembered(version)


log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Seconds between two checks whether the other accounts are known."""


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
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def rebuild(self, name: str) -> None:
        """Rebuild one account, from the start at each call. Raises ApiError, TryAgain, Superseded."""
        async with self._slots:
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
                async with self._slots:
                    if await self._done(claimed):
                        return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _claim(self, name: str) -> Version | None:
        """Return the version with our term; None if it needs no rebuilding."""
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
        """Tell whether the account is empty, has our term and waits for no other, and no write to it may still come."""
        version, blank = copy.version, Account(term=self._term.name, revision=copy.account.revision)
        if copy.account != blank or self._restoring.is_under_way(version.name):
            return False
        return self._seconds_under_way(version.name) <= 0 and not self._restoring.must_wait(version)

    async def _until_shown(self, claimed: Version) -> None:
        """Wait until our own watch has shown our claim, and so everything before it."""
        name = claimed.name
        while self._versions.newest(name) == claimed and claimed.newer_than(self._versions.shown(name)):
            await self._versions.news(name).wait()

    def _seconds_under_way(self, name: str) -> float:
        """Return for how many seconds a create may be under way that we don't remember.

        A watch that is older than H, and has shown no account, proves that there is nothing to remember. So does the
        watch of the first leader, until it begins again.
        """
        since = self._versions.watching_since
        known = self._versions.remembered(name) is not None or since == self._nothing_before
        return 0.0 if known else since + self._leading.horizon - self._leading.clock()

    async def _done(self, claimed: Version) -> bool:
        """Write the account, unless others must be known first. Its namespaces are decided before they are listed."""
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
        """List the pods of its namespaces, after our claim."""
        for namespace in account.namespaces:
            seen = self._view.begin_list()
            try:
                found = await self._pods.list_in(namespace)
            finally:
                self._view.end_list(seen)
            self._view.merge(namespace, found, seen)

    async def _write(self, claimed: Version, account: Account) -> None:
        def edit(copy: WorkingCopy) -> None:
            if copy.version.quota.uid == claimed.quota.uid and copy.account == claimed.account:
                whole = rewritten(account, self._view, has_queue=copy.version.active.has_queue)
                count = count_of(whole, copy.version.active, "; ".join(self._pods.problems()))
                copy.put(whole, changes=self._leading.world.status(copy.version, count))

        await self._term.change(claimed.name, edit)
        log.info("ledger rebuilt", {"tenant": claimed.name})
