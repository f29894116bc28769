"""The term of a leader: every change first checks that the account is still under this term."""

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
"""TenantQuotas that are written at once."""


class Superseded(Exception):  # noqa: N818 - what has happened
    """Another process has led since, so our view may be older than its writes."""


class Term:
    """The time in which one process leads."""

    def __init__(self, ledger: Accounts, identity: str) -> None:
        self.name = f"{identity}/{uuid4().hex[:8]}"
        self.ledger = ledger

    def bears(self, account: Account) -> bool:
        """Tell whether an account is under this term. Raises Superseded if it is under another."""
        if account.term not in ("", self.name):
            raise Superseded(f"an account is under the term {account.term}")
        return account.term == self.name

    async def claim(self, tenant: str) -> None:
        """Put an account under this term. Empty it if it is not sealed, because it will be rebuilt."""

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                copy.put(replace(copy.account, term=self.name))
            elif not copy.account.newer:
                copy.put(Account(term=self.name), sealed=False)

        await self.ledger.writer(tenant).change(edit)

    async def claim_all(self, store: KubernetesStore) -> None:
        """Claim all accounts. Raises ApiError if they can't be listed.

        One that can't be written is tried again and ends no term. The next leader would meet the same error, and
        nothing would be counted while the API server is slow.
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
        """Change an account. Raises Superseded if another process has led since, and TryAgain."""

        def fenced(copy: WorkingCopy) -> None:
            self.bears(copy.account)
            edit(copy)

        await self.ledger.writer(tenant).change(fenced, fresh=False)


async def for_each(names: Iterable[str], do: Callable[[str], Awaitable[None]]) -> None:
    """Do something for each TenantQuota, for some of them at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_slot(name: str) -> None:
        async with slots:
            await do(name)

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(in_slot(name))
