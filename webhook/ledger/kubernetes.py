"""The ledger that any number of replicas share: a TenantQuota's status is the account.

Why compare-and-swap, and what the rules are: docs/decisions/compare-and-swap.md and docs/ledger.md.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from decimal import Decimal

from webhook.kube.errors import ApiError
from webhook.ledger.account import GangKey
from webhook.ledger.account_usage import usage_of, used_of
from webhook.ledger.account_writer import AccountWriter
from webhook.ledger.draft import NotNow
from webhook.ledger.protocol import Booked, Booking, GangBooking, TryAgain, patience_of
from webhook.ledger.stored_quotas import StoredQuotas
from webhook.ledger.versions import Version
from webhook.policy.quota.charges import Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant


class KubernetesLedger:
    """One replica's way to the accounts. Close it at the end."""

    def __init__(self, stored: StoredQuotas, clock: Callable[[], float] = time.monotonic) -> None:
        self._stored = stored
        self._clock = clock
        self._writers: dict[str, AccountWriter] = {}
        stored.versions.subscribe(self._changed)

    def writer(self, tenant: str) -> AccountWriter:
        """The writer of a tenant's account; one for all of this process."""
        if tenant not in self._writers:
            self._writers[tenant] = AccountWriter(tenant, self._stored, self._clock)
        return self._writers[tenant]

    async def close(self) -> None:
        """End what is under way."""
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        """As the newest version says that this process knows; nothing where there is no account yet."""
        found = self._stored.versions.newest(tenant.name)
        return usage_of(found.account, tenant, without) if found and found.sealed else {}

    def usage_in(self, tenant: Tenant, namespaces: Collection[str]) -> dict[QuotaRow, Decimal]:  # noqa: ARG002
        """That of the account as it is: what other namespaces hold is not known before they are the tenant's."""
        return self.usage(tenant)

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """Without reservations."""
        found = self._stored.versions.newest(tenant.name)
        return used_of(found.account, tenant) if found and found.sealed else {}

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """As the newest version says, or where that doesn't know it, as it is stored."""
        key = namespace, uid
        tier = _tier_of(key, self._stored.versions.newest(tenant.name))
        if tier is not None:
            return tier
        try:
            return _tier_of(key, await self._stored.get(tenant.name))
        except ApiError as error:
            raise TryAgain(str(error)) from error

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book by compare-and-swap. Raises TryAgain where the account can't be read or written in time.

        A dry run does not wait: what can't be told is let in, for nothing rests on it.
        """
        writer = self.writer(booking.tenant.name)
        if dry_run:
            return await writer.change(lambda copy: _told(copy.book(booking)), dry=True)
        return await writer.change(lambda copy: copy.book(booking), patience=patience_of(booking))

    def _changed(self, tenant: str) -> None:
        if tenant in self._writers:
            self._writers[tenant].wake()


def _tier_of(key: GangKey, version: Version | None) -> str | None:
    gangs = version.account.gangs if version else ()
    return next((each.tier for each in gangs if each.key == key), None)


def _told(answer: Booked | Shortfall | NotNow) -> Booked | Shortfall:
    return Booked() if isinstance(answer, NotNow) else answer
