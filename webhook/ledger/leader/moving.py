"""Moves every namespace into the account of its tenant, so that it is open in at most one account.

A move closes the namespace in the old account, opens it in the new one with its pods and reservations, and then drops
it from the old one. One move ends before the next begins. If a namespace were open in two accounts, both could book for
it, and reservations that were not carried over would be used twice.

Nothing moves before a quorum list of all TenantQuotas, begun after our last claim, has shown our term in every one.
From then on no other process changes the accounts of namespaces.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import Account, Entry, NamespaceState
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.leader.terms import Leading
from webhook.ledger.protocol import TryAgain
from webhook.ledger.versions import Version, WorkingCopy


class Change(msgspec.Struct, frozen=True):
    """Namespaces of one account that get another state; None if they are dropped.

    `carried_from`: the account from which they come, with its reservations for them.
    """

    tenant: str
    state: NamespaceState | None
    namespaces: tuple[str, ...]
    carried_from: str = ""


def next_changes(accounts: Mapping[str, Account], wanted: Mapping[str, str]) -> list[Change]:
    """Return the next step of each namespace. All accounts are sealed. `wanted`: the tenant of each namespace."""
    homes = defaultdict[str, dict[str, NamespaceState]](dict)
    for tenant, account in accounts.items():
        for namespace, state in account.namespaces.items():
            homes[namespace][tenant] = state
    grouped = defaultdict[tuple[str, NamespaceState | None, str], list[str]](list)
    for namespace in sorted({*homes, *wanted}):
        home = wanted.get(namespace)
        for step in _step(namespace, homes.get(namespace, {}), home if home in accounts else None, accounts):
            grouped[step].append(namespace)
    return [Change(tenant, state, tuple(names), source) for (tenant, state, source), names in grouped.items()]


def _step(
    namespace: str, homes: Mapping[str, NamespaceState], wanted: str | None, accounts: Mapping[str, Account]
) -> Iterator[tuple[str, NamespaceState | None, str]]:
    """Yield the account that changes, the namespace's new state in it, and the account from which it comes."""
    if len(homes) > 1:  # the move ends before another begins
        yield from ((home, None, "") for home, state in homes.items() if state == "closed")
        return
    match next(iter(homes.items()), None):
        case None if wanted:
            yield wanted, "open", ""
        case (home, "open") if home != wanted:
            yield home, "closed", ""
        case (home, "closed") if wanted:
            yield wanted, "open", home if home != wanted else ""
        case (home, "closed") if not any(
            each.namespace == namespace and each.is_pod for each in accounts[home].reserved
        ):
            yield home, None, ""


class Moving:
    """The moves of one term. `alone` is the lock of changes to namespaces."""

    def __init__(self, leading: Leading) -> None:
        self._term = leading.term
        self._store = leading.store
        self._view = leading.view
        self._world = leading.world
        self._claims = 0
        self._all_ours = False
        self._at_rest = -1
        self.alone = asyncio.Lock()

    def claimed(self) -> None:
        """Note that we have claimed an account. Only a list that begins later can show that all are ours."""
        self._claims += 1
        self._all_ours = False
        self._at_rest = -1

    async def round(self, generation: int) -> None:
        """Take one step for each namespace in a wrong account. Raises ApiError, TryAgain, Superseded.

        Once all are right, do nothing until the next `generation` of namespaces and tenants.
        """
        if generation == self._at_rest:
            return
        async with self.alone:
            accounts = await self._accounts()
            if accounts is None:
                return
            changes = next_changes(accounts, self._world.wanted())
            for change in changes:
                await self._apply(change)
            if not changes and not any("closed" in each.namespaces.values() for each in accounts.values()):
                self._at_rest = generation

    async def _accounts(self) -> Mapping[str, Account] | None:
        """Return all accounts; None while one is not sealed, or not ours."""
        if not self._all_ours and self._newest() is not None:
            claims, found = self._claims, await self._store.every()
            known = {each.name for each in found} == set(self._store.versions.names())
            self._all_ours = known and claims == self._claims and all(map(self._is_ours, found))
        return self._newest() if self._all_ours else None

    def _newest(self) -> Mapping[str, Account] | None:
        """Return all accounts as this process knows them; None while one is not sealed, or not ours."""
        versions = self._store.versions
        newest = [versions.newest(name) for name in versions.names()]
        if not all(each is not None and self._is_ours(each) for each in newest):
            return None
        return {each.name: each.account for each in newest if each is not None}

    def _is_ours(self, version: Version) -> bool:
        return version.sealed and self._term.bears(version.account)

    async def _apply(self, change: Change) -> None:
        carried = await self._carried(change)

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                copy.put(
                    rewritten(
                        _changed(copy.account, change, carried), self._view, has_queue=copy.version.active.has_queue
                    )
                )

        await self._term.change(change.tenant, edit)

    async def _carried(self, change: Change) -> tuple[Entry, ...]:
        """Return the entries that move with the namespaces. These are closed, so nothing is added any more."""
        if not change.carried_from:
            return ()
        found = await self._store.get(change.carried_from)
        if found is None or not self._is_ours(found):
            raise TryAgain(f"the ledger of tenant {change.carried_from} can't be read")
        # Existing pods are counted again there, and a queue's reservation stays behind.
        moving = (each for each in found.account.entries if each.is_gang or each.state in ("Reserved", "Vacant"))
        return tuple(each for each in moving if each.namespace in change.namespaces)


def _changed(account: Account, change: Change, carried: tuple[Entry, ...]) -> Account:
    namespaces: dict[str, NamespaceState] = {**account.namespaces}
    for namespace in change.namespaces:
        if change.state is None:
            namespaces.pop(namespace, None)
        else:
            namespaces[namespace] = change.state
    known, gangs = {each.key for each in account.entries}, account.gangs
    more = (each for each in carried if each.key not in known and not (each.is_gang and each.gang in gangs))
    return replace(account, namespaces=namespaces, entries=(*account.entries, *more))
