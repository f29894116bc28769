"""The ledger of one process that ends with it: for reviews without a cluster, the demo, benchmarks and tests.

It books into the same accounts by the same rules as the ledger that replicas share, but has no leader. A namespace is
open as soon as something is booked in it, and a reservation stays for ever.
"""

from collections.abc import Callable

from msgspec import structs

from webhook.kube.errors import Conflict
from webhook.ledger.account import Account, NamespaceState
from webhook.ledger.accounts import Accounts
from webhook.ledger.draft import NotNow
from webhook.ledger.protocol import Booked, Booking, GangBooking, TryAgain
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import Shortfall
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tenants import Tenant

ALWAYS = float("inf")
"""Nobody else writes here, so the known version is always the newest."""


class MemoryStore:
    """Accounts by the names of their tenants. An account that is not there yet is created empty."""

    def __init__(self) -> None:
        self._versions: dict[str, Version] = {}
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def newest(self, name: str) -> Version:
        if name not in self._versions:
            self._versions[name] = Version(
                TenantQuota(name, 1, None), Account(), sealed=True, tenant=None, as_of=ALWAYS
            )
        return self._versions[name]

    async def get(self, name: str) -> Version:
        return self.newest(name)

    async def put(self, copy: WorkingCopy) -> Version:
        if self.newest(copy.version.name) is not copy.version:
            raise Conflict(f"the account of tenant {copy.version.name} has another version", 409)
        return self._keep(structs.replace(copy.version, account=copy.account))

    def set(self, tenant: Tenant, account: Account) -> None:
        self._keep(structs.replace(self.newest(tenant.name), tenant=tenant, account=account))

    def open(self, tenant: Tenant, namespace: str) -> None:
        """Open a namespace in the account of its tenant."""
        found = self.newest(tenant.name)
        if found.tenant != tenant or namespace not in found.account.namespaces:
            account = found.account
            namespaces: dict[str, NamespaceState] = {**account.namespaces, namespace: "open"}
            self.set(tenant, structs.replace(account, namespaces=namespaces))

    def _keep(self, version: Version) -> Version:
        self._versions[version.name] = version
        for listener in self._listeners:
            listener(version.name)
        return version


class MemoryLedger(Accounts):
    """Accounts in memory, under the quotas that their bookings name."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        super().__init__(self.store)

    async def has_room(self, booking: Booking) -> bool:
        return isinstance(await self.book(booking, dry_run=True), Booked)

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book at once, because no other process shares a write or frees room. Raises TryAgain."""
        self.store.open(booking.tenant, booking.namespace)
        copy = WorkingCopy(self.store.newest(booking.tenant.name))
        answer = copy.book(booking)
        if isinstance(answer, NotNow):
            raise TryAgain(answer.reason)
        if copy.changed and not dry_run:
            await self.store.put(copy)
        return answer
