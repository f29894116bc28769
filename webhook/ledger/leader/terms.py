"""What a leader writes, under its term: every change first looks whether the account still bears it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from uuid import uuid4

from msgspec.structs import replace

from webhook.ledger.account import Account
from webhook.ledger.account_writer import Edit
from webhook.ledger.accounts import Accounts
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.protocol import TryAgain
from webhook.ledger.versions import WorkingCopy

log = logging.getLogger(__name__)

AT_ONCE = 16
"""TenantQuotas that are written side by side."""


class Superseded(Exception):  # noqa: N818 - what has happened
    """Another process has led since: our view may be older than what it wrote."""


class Term:
    """The time in which one process leads."""

    def __init__(self, ledger: Accounts, identity: str) -> None:
        self.name = f"{identity}/{uuid4().hex[:8]}"
        self.ledger = ledger

    def bears(self, account: Account) -> bool:
        """Whether an account is under this term. Raises Superseded where it is under another."""
        if account.term not in ("", self.name):
            raise Superseded(f"an account is under the term {account.term}")
        return account.term == self.name

    async def claim(self, tenant: str) -> None:
        """Put an account under this term, whoever led before. One that is not sealed is emptied: it will be rebuilt."""

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                copy.put(replace(copy.account, term=self.name))
            elif not copy.account.newer:
                copy.put(Account(term=self.name), sealed=False)

        await self.ledger.writer(tenant).change(edit)

    async def claim_all(self, store: KubernetesStore) -> None:
        """Claim all that there are. Raises ApiError where they can't be listed.

        One that can't be written now is tried again and ends no term: whoever led next would find the same, and nothing
        would be counted for as long as the API server is slow.
        """
        claimed: set[str] = set()

        async def claim(name: str) -> None:
            try:
                await self.claim(name)
                claimed.add(name)
            except TryAgain as problem:
                log.warning("ledger not claimed", {"tenant": name, "error": str(problem)})

        names = {version.name for version in await store.every()}
        while names:
            await for_each(names, claim)
            names = {name for name in names - claimed if store.versions.newest(name)}

    async def change(self, tenant: str, edit: Edit[None]) -> None:
        """Change an account. Raises Superseded where another process has led since, and TryAgain."""

        def fenced(copy: WorkingCopy) -> None:
            self.bears(copy.account)
            edit(copy)

        await self.ledger.writer(tenant).change(fenced, fresh=False)


async def for_each(names: Iterable[str], do: Callable[[str], Awaitable[None]]) -> None:
    """Do something for each TenantQuota, some of them side by side."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(name: str) -> None:
        async with turns:
            await do(name)

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(in_turn(name))
