"""The versions of TenantQuotas that this process knows, a working copy of one, and the last sealed accounts.

Nobody books into an unsealed account, so the last sealed version before it is exact, if the watch of this process has
shown it without a gap. A version from a read or a write is not remembered, because a later sealed one may be missed.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Self

import msgspec
from msgspec import structs

from webhook.ledger.account import Account, read_account
from webhook.ledger.draft import Draft, NotNow
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.slot_sums import booked_of
from webhook.policy.quota.charges import Shortfall
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.quota.tenant_status import Status
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

LONG_AGO = float("-inf")


class Version(msgspec.Struct, frozen=True):
    """One stored version of a TenantQuota.

    `as_of`: it was the newest at some moment after this time of our own clock. `sealed`: bookings into its account are
    allowed. `tenant`: the active quota. For a broken spec it is the last good one, if there was one.
    """

    quota: TenantQuota
    account: Account
    sealed: bool
    tenant: Tenant | None
    as_of: float = LONG_AGO

    @property
    def name(self) -> str:
        return self.quota.name

    @property
    def active(self) -> Tenant:
        """The active quota; without one, a quota that limits nothing."""
        return self.tenant or Tenant(self.name)

    def newer_than(self, other: Self | None) -> bool:
        """Compare resourceVersions, which is allowed within one kind (KEP-5504), also of two objects of one name.

        A watch that lags shows a deleted TenantQuota after this process has read the one that was created again.
        """
        if other is None:
            return True
        mine, others = self.quota.resource_version, other.quota.resource_version
        return not (mine.isdecimal() and others.isdecimal()) or int(mine) > int(others)


class Versions:
    """Fed by the watch of TenantQuotas (`listed`, `changed`), and by reads and writes of this process (`learned`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._newest: dict[str, Version] = {}
        self._shown: dict[str, Version] = {}
        self._remembered: dict[str, Version] = {}
        self._highest: dict[str, Version] = {}
        self._good: dict[str, Tenant] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._news: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.watching_since = float("inf")

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name of each TenantQuota that has changed. It must be quick."""
        self._listeners.append(listener)

    def names(self) -> Iterable[str]:
        return tuple(self._shown)

    def newest(self, name: str) -> Version | None:
        """Return the newest version that is known; None if there is no such TenantQuota."""
        return self._newest.get(name)

    def shown(self, name: str) -> Version | None:
        """Return the latest version that the watch has shown."""
        return self._shown.get(name)

    def remembered(self, name: str) -> Version | None:
        """Return the last sealed version of that name since the watch last listed, also of a deleted TenantQuota."""
        return self._remembered.get(name)

    def news(self, name: str) -> asyncio.Event:
        """Return an event that is set at the next change of a TenantQuota."""
        return self._news[name]

    def listed(self, found: Mapping[str, TenantQuota]) -> None:
        """Begin again with a list of the watch. Forget remembered accounts, because changes may have been missed."""
        self.watching_since = self._clock()
        self._remembered.clear()
        self._highest.clear()
        gone = [name for name in self._newest if name not in found]
        self._shown = {}
        for name, quota in found.items():
            self.changed(name, quota)
        for name in gone:
            self.changed(name, None)

    def changed(self, name: str, quota: TenantQuota | None) -> None:
        """Note a version that the watch has shown; None if the TenantQuota is deleted."""
        if quota is None:
            self._shown.pop(name, None)
            self._newest.pop(name, None)
        else:
            version = self._shown[name] = self._known(quota) or self._read(quota, LONG_AGO, self._remembered.get(name))
            if version.sealed:
                self._remembered[name] = version
            self._keep(version)
        self._news.pop(name, asyncio.Event()).set()
        for listener in self._listeners:
            listener(name)

    def learned(self, quota: TenantQuota, as_of: float) -> Version:
        """Note a version that this process has read or written. Return a newer one if the watch was faster."""
        version = self._read(quota, as_of, self._highest.get(quota.name))
        newest = self._newest.get(version.name)
        if newest is not None and newest.quota.uid == quota.uid and newest.newer_than(version):
            return structs.replace(newest, as_of=max(newest.as_of, as_of))
        self._keep(version)
        return version

    def forget(self, name: str) -> None:
        self._newest.pop(name, None)

    def _read(self, quota: TenantQuota, as_of: float, before: Version | None) -> Version:
        """Read a version. An account whose revision goes back was restored from a copy, and counts as unsealed."""
        if quota.tenant is not None:
            self._good[quota.name] = quota.tenant
        account = read_account(quota.status)
        back = before is not None and before.quota.uid == quota.uid and account.revision < before.account.revision
        sealed = not back and account.is_sealed(quota.uid)
        return Version(quota, account, sealed, self._good.get(quota.name), as_of)

    def _known(self, quota: TenantQuota) -> Version | None:
        """Return the newest version if the watch shows it again, mostly after a write of this process."""
        newest = self._newest.get(quota.name)
        same = newest and (newest.quota.uid, newest.quota.resource_version) == (quota.uid, quota.resource_version)
        return newest if same else None

    def _keep(self, version: Version) -> None:
        if version.newer_than(self._newest.get(version.name)):
            self._newest[version.name] = version
            if version.sealed:
                self._highest[version.name] = version


class WorkingCopy:
    """A copy of a version. A leader replaces its account with `put`, and reviews `book` into it."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.sealed = version.sealed
        self._account = version.account
        self._draft: Draft | None = None
        self._changes: Status = {}

    @property
    def account(self) -> Account:
        return self._draft.account if self._draft is not None else self._account

    @property
    def changes(self) -> Status:
        before = self.version.quota.status
        return {name: value for name, value in self._changes.items() if before.get(name) != value}

    @property
    def changed(self) -> bool:
        return self.account is not self.version.account or bool(self.changes)

    def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        """Book into the account. Return NotNow if it is unsealed or of a later version, or as Draft does."""
        if self._account.newer:
            return NotNow(f"the ledger of tenant {self.version.name} is of a later version of gpu-tiers", soon=False)
        if not self.sealed:
            return NotNow(f"the ledger of tenant {self.version.name} is being rebuilt")
        return self.draft.book(booking)

    @property
    def usage(self) -> Usage:
        """GPUs on each row, with the bookings into this copy."""
        return self.draft.usage

    @property
    def booked(self) -> dict[QuotaRow, Decimal]:
        """The same without GPUs reserved for the queue. A draft has added them up already."""
        return self._draft.booked if self._draft is not None else booked_of(self._account, self.version.active)

    @property
    def draft(self) -> Draft:
        if self._draft is None:
            self._draft = Draft(self._account, self.version.active)
        return self._draft

    def put(self, account: Account, *, sealed: bool = True, changes: Status | None = None) -> None:
        """Replace the account, and change other fields of the status."""
        self._account, self._draft, self.sealed = account, None, sealed
        self._changes |= changes or {}
