"""What a leader writes, under its term: every change first looks whether the account still bears it."""

from uuid import uuid4

from msgspec.structs import replace

from webhook.ledger.account import Account
from webhook.ledger.account_writer import Edit
from webhook.ledger.kubernetes import KubernetesLedger
from webhook.ledger.working_copy import WorkingCopy


class Superseded(Exception):  # noqa: N818 - what has happened
    """Another process has led since: our view may be older than what it wrote."""


class Term:
    """The time in which one process leads."""

    def __init__(self, ledger: KubernetesLedger, identity: str) -> None:
        self.name = f"{identity}/{uuid4().hex[:8]}"
        self._ledger = ledger

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

        await self._ledger.writer(tenant).change(edit)

    async def change(self, tenant: str, edit: Edit[None]) -> None:
        """Change an account. Raises Superseded where another process has led since, and TryAgain."""

        def fenced(copy: WorkingCopy) -> None:
            self.bears(copy.account)
            edit(copy)

        await self._ledger.writer(tenant).change(fenced, fresh=False)
