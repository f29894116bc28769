"""The ledger of one process: the same account as in a TenantQuota, made of what this process has seen and promised.

Booking never yields between the look and the write, so it is exact. The pods and workloads that exist are followed, so
usage is right after a restart. Promises are forgotten then, and two processes would each have their own: it is for an
installation of one replica, and for reviews without a cluster. Whose a namespace is is asked at each look, so that a
tenant that is made or changed later counts the pods that are there.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal

from webhook.ledger.account_usage import usage_of, used_of
from webhook.ledger.draft import Draft, NotNow
from webhook.ledger.drafts import Drafts
from webhook.ledger.pod_view import PodView
from webhook.ledger.promises import Promises
from webhook.ledger.protocol import (
    PATIENCE_SECONDS,
    Booked,
    Booking,
    Declared,
    GangBooking,
    Holding,
    TryAgain,
    patience_of,
)
from webhook.ledger.stranded_gangs import stranded_gangs
from webhook.ledger.workload_view import WorkloadView
from webhook.policy.quota.charges import Shortfall
from webhook.policy.quota.gangs import StrandedGang
from webhook.policy.values.tenants import QuotaRow, Tenant


class MemoryLedger:
    """Pods as they are observed, and promises. `clock` gives seconds; `tenant_name` tells whose a namespace is now."""

    def __init__(
        self,
        clock: Callable[[], float],
        tenant_name: Callable[[str], str | None],
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._patience = patience
        self._changed: set[str] = set()
        self._view = PodView(self._changed.add, clock)
        self._promises = Promises(self._view, clock)
        self._drafts = Drafts(self._view, self._promises, tenant_name)
        self._listeners: list[Callable[[], None]] = []
        self._news = asyncio.Event()
        self.workloads = _Workloads(self._view.workloads, self._catch_up)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change. It must be quick."""
        self._listeners.append(listener)

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows, reservations included, `without` those of some ResourceClaims."""
        self._catch_up()
        return usage_of(self._drafts.of(tenant).account, tenant, without)

    def usage_in(self, tenant: Tenant, namespaces: Collection[str]) -> dict[QuotaRow, Decimal]:
        """GPUs on each of the tenant's rows if these namespaces were the tenant's."""
        self._catch_up()
        return usage_of(self._drafts.account(namespaces), tenant)

    def used(self, tenant: Tenant) -> dict[QuotaRow, Decimal]:
        """GPUs on each row that pods hold which were seen to exist."""
        self._catch_up()
        return used_of(self._drafts.of(tenant).account, tenant)

    def stranded(self, tenant: Tenant) -> tuple[StrandedGang, ...]:
        """The tenant's gangs that can't run within its quota."""
        self._catch_up()
        return stranded_gangs(self._drafts.of(tenant).account, tenant, self._view)

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """The tier that a gang was demoted to, "" where it was not; None where no such gang is booked."""
        self._catch_up()
        return next((each.tier for each in self._drafts.of(tenant).account.gangs if each.key == (namespace, uid)), None)

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none; see the protocol. A pod that a controller makes waits for news before a refusal."""
        answer = self._book(booking, dry_run=dry_run)
        give_up = asyncio.get_running_loop().time() + min(patience_of(booking), self._patience)
        while not dry_run and isinstance(answer, Shortfall) and await self._news_by(give_up):
            answer = self._book(booking, dry_run=False)
        return answer

    def last_held(self, uid: str) -> Holding | None:
        """What a pod holds, or held before it ended a short while ago."""
        return self._view.last_held(uid)

    def release(self, holder: str) -> None:
        """The holder is gone, or has succeeded or failed."""
        self._view.release(holder)
        self._catch_up(ended=holder)

    def observe(self, holder: str, holding: Holding) -> None:
        """A pod exists and holds GPUs; it is charged whether or not there was room."""
        self._view.observe(holder, holding)
        self._catch_up()

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        """These pods exist and no others. Bookings whose pods have not been seen yet stay until they lapse."""
        self._view.observe_all(holdings)
        self._catch_up()

    def _book(self, booking: Booking | GangBooking, *, dry_run: bool) -> Booked | Shortfall:
        self._catch_up()
        if isinstance(booking, Booking) and booking.moved_from is None and self._view.get(booking.holder):
            return Booked()
        draft = self._drafts.of(booking.tenant, booking.namespace)
        if dry_run:
            draft = Draft(draft.account, booking.tenant)
        answer = draft.book(booking)
        if isinstance(answer, NotNow):
            raise TryAgain(answer.reason)
        if isinstance(answer, Booked) and not dry_run:
            self._promises.keep(draft.account, booking.holder if isinstance(booking, Booking) else booking.uid)
            self._tell()
        return answer

    def _catch_up(self, ended: str = "") -> None:
        """Drop what is over by now, and the drafts that something has changed in."""
        self._view.drop_overdue()
        changed = self._promises.catch_up(self._changed | self._promises.namespaces_of(ended))
        self._changed.clear()
        if changed:
            self._drafts.drop(changed)
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
        self._news.set()
        self._news = asyncio.Event()

    async def _news_by(self, give_up: float) -> bool:
        """Whether something changes until then."""
        if asyncio.get_running_loop().time() >= give_up:
            return False
        try:
            async with asyncio.timeout_at(give_up):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class _Workloads:
    """Whom a ledger has told what the workloads that exist declare."""

    def __init__(self, view: WorkloadView, catch_up: Callable[[str], None]) -> None:
        self._view = view
        self._catch_up = catch_up

    def release(self, uid: str) -> None:
        """The workload is gone, or has ended."""
        self._view.release(uid)
        self._catch_up(uid)

    def observe(self, uid: str, declared: Declared) -> None:
        """A workload exists and has not ended."""
        self._view.observe(uid, declared)
        self._catch_up("")

    def observe_all(self, kind: str, declared: Mapping[str, Declared]) -> None:
        """These workloads of that kind exist and no others."""
        self._view.observe_all(kind, declared)
        self._catch_up("")
