"""A ledger over accounts in memory, with a leader that counts at once all that it is told of pods and workloads."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import EntryKey, NamespaceState
from webhook.ledger.accounts import Accounts
from webhook.ledger.leader.counting import stranded_gangs
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.memory import MemoryStore
from webhook.ledger.protocol import PATIENCE_SECONDS, Booked, Booking, Declared, GangBooking, Holding
from webhook.policy.quota.charges import Shortfall, StrandedGang
from webhook.policy.values.tenants import Tenant, Usage

RESERVATION_SECONDS = 60.0
"""After so long this leader takes a reservation for void; a real one asks the API server first."""


class CountedLedger(Accounts):
    """Accounts that are counted again before each answer and after each observation.

    `tenant_name` returns the tenant of a namespace now. A reservation lapses by its age alone, after
    RESERVATION_SECONDS.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        tenant_name: Callable[[str], str | None],
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.store = MemoryStore()
        super().__init__(self.store, patience=patience)
        self._now = clock
        self._tenant_name = tenant_name
        self._view = PodView(lambda _: None, clock)
        self._tenants: dict[str, Tenant] = {}
        self._seen: dict[str, dict[EntryKey, float]] = {}
        self.workloads = CountedWorkloads(self._view.workloads, self._count_all)

    def usage(self, tenant: Tenant, without: tuple[str, ...] = ()) -> dict[object, Decimal]:  # type: ignore[override]
        self._count(tenant)
        return dict(super().usage(tenant, without))

    def used(self, tenant: Tenant) -> Usage:  # type: ignore[override]
        self._count(tenant)
        return super().used(tenant)

    def stranded(self, tenant: Tenant) -> tuple[StrandedGang, ...]:
        self._count(tenant)
        return stranded_gangs(self.store.newest(tenant.name).account, tenant, self._view, lambda _: True)

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        self._count(booking.tenant)
        self.store.open(booking.tenant, booking.namespace)
        answer = await super().book(booking, dry_run=dry_run)
        self._count(booking.tenant)
        return answer

    async def has_room(self, booking: Booking) -> bool:
        self._count(booking.tenant)
        self.store.open(booking.tenant, booking.namespace)
        return await super().has_room(booking)

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        self._count(tenant)
        return await super().gang_tier(tenant, namespace, uid)

    def last_used(self, uid: str) -> Holding | None:
        return self._view.last_used(uid)

    def release(self, holder: str) -> None:
        self._view.release(holder)
        self._count_all()

    def observe(self, holder: str, holding: Holding) -> None:
        self._view.observe(holder, holding)
        self._count_all()

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        self._view.observe_all(holdings)
        self._count_all()

    def _count_all(self) -> None:
        for tenant in self._tenants.values():
            self._count(tenant)

    def _count(self, tenant: Tenant) -> None:
        """Rewrite an account by the observed pods and workloads, as a leader does, and record new reservations."""
        self._tenants[tenant.name] = tenant
        self._view.drop_overdue()
        version = self.store.newest(tenant.name)
        known = {*self._view.namespaces(), *version.account.namespaces}
        theirs = [each for each in sorted(known) if self._tenant_name(each) == tenant.name]
        namespaces: dict[str, NamespaceState] = dict.fromkeys(theirs, "open")
        seen, now = self._seen.get(tenant.name, {}), self._now()
        lapsed = [key for key, since in seen.items() if now - since >= RESERVATION_SECONDS]
        before = replace(
            version.account,
            namespaces=namespaces,
            entries=tuple(each for each in version.account.entries if each.namespace in {"", *namespaces}),
        )
        account = rewritten(before, self._view, lapsed, has_queue=tenant.has_queue)
        self._seen[tenant.name] = {each.key: seen.get(each.key, now) for each in account.reserved}
        if account != version.account or tenant != version.tenant:
            self.store.set(tenant, account)


class CountedWorkloads:
    """A view of workloads, after each change of which the accounts are counted."""

    def __init__(self, view: WorkloadView, counted: Callable[[], None]) -> None:
        self._view = view
        self._counted = counted

    def release(self, uid: str) -> None:
        self._view.release(uid)
        self._counted()

    def observe(self, uid: str, declared: Declared) -> None:
        self._view.observe(uid, declared)
        self._counted()

    def observe_all(self, kind: str, declared: Mapping[str, Declared]) -> None:
        self._view.observe_all(kind, declared)
        self._counted()
