"""One version of a TenantQuota with the changes of one batch, before they are written."""

from webhook.ledger.account import Account
from webhook.ledger.draft import Draft, NotNow
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.versions import Version
from webhook.policy.quota.charges import Shortfall
from webhook.policy.quota.usage_status import Status


class WorkingCopy:
    """What a leader puts in place of the account, and then what reviews book into it."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.sealed = version.sealed
        self._account = version.account
        self._draft: Draft | None = None
        self._changes: Status = {}

    @property
    def account(self) -> Account:
        """The account as it has become."""
        return self._draft.account if self._draft is not None else self._account

    @property
    def changes(self) -> Status:
        """Fields of the status that have become others."""
        before = self.version.quota.status
        return {name: value for name, value in self._changes.items() if before.get(name) != value}

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return self.account is not self.version.account or bool(self.changes)

    def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        """Book into the account; NotNow where it is not sealed, or does not hold the namespace."""
        if self._account.newer:
            return NotNow(f"the ledger of tenant {self.version.name} is of a later version of gpu-tiers", soon=False)
        if not self.sealed:
            return NotNow(f"the ledger of tenant {self.version.name} is being rebuilt")
        if self._draft is None:
            self._draft = Draft(self._account, self.version.in_force)
        return self._draft.book(booking)

    def put(self, account: Account, *, sealed: bool = True, changes: Status | None = None) -> None:
        """Another account in its place, and other fields of the status."""
        self._account, self._draft, self.sealed = account, None, sealed
        self._changes |= changes or {}
