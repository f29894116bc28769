"""Updates the accounts and conditions to match the pods that the leader sees.

A write that changes no row of a quota may wait, because it frees no room and shows users nothing new. An example is
a reservation that becomes a pod with the same charge. Each write costs the API server as much as a booking, and delays
one.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import Account, Entry, GangKey, at_tier
from webhook.ledger.kubernetes_store import count_of
from webhook.ledger.leader.expiry import Expiry, Proof
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.leader.terms import Leading, Pods, for_each
from webhook.ledger.protocol import TryAgain
from webhook.ledger.slot_sums import booked_of
from webhook.ledger.versions import Version, Versions, WorkingCopy
from webhook.policy.quota.charges import Charge, StrandedGang, own_gpus
from webhook.policy.quota.tenant_status import Count, Status
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage


class Changes:
    """Collects the names of TenantQuotas and namespaces that the watches show to have changed.

    `generation` counts how often everything has changed.
    """

    def __init__(self) -> None:
        self._tenants: set[str] = set()
        self._namespaces: set[str] = set()
        self._everything = True
        self._woken = asyncio.Event()
        self.generation = 0

    def tenant(self, name: str) -> None:
        """Note that a TenantQuota has another version, or that its last round has failed."""
        self._tenants.add(name)
        self._woken.set()

    def namespace(self, name: str) -> None:
        """Note that a pod of that namespace has changed."""
        self._namespaces.add(name)
        self._woken.set()

    def everything(self) -> None:
        """Note that namespaces, tenants or the policy have changed."""
        self._everything = True
        self.generation += 1
        self._woken.set()

    def take(self, versions: Versions) -> Iterable[str]:
        """Yield the TenantQuotas that may need a write, and begin to collect again."""
        everything, tenants, namespaces = self._everything, self._tenants, self._namespaces
        self._everything, self._tenants, self._namespaces = False, set(), set()
        for name in versions.names():
            version = versions.newest(name)
            if version and (everything or name in tenants or namespaces & version.account.namespaces.keys()):
                yield name

    async def wait(self, seconds: float) -> None:
        """Wait until something has changed since the last call, or for so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()


log = logging.getLogger(__name__)

RECHECK_SECONDS = 5.0
"""Seconds after which a round comes without a change, to repeat failed writes."""

SETTLE_SECONDS = 0.5
"""Seconds for which a write may wait, so that a reservation stays in the account after its pod was seen."""
MOST_SETTLED = 32
"""Most reservations that stay so: each makes the write of every booking longer."""


class Settling:
    """The TenantQuotas whose write waits, and until when."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def may_wait(self, version: Version, account: Account, status: Status) -> bool:
        """Tell whether this account and status need not be written yet."""
        now = self._clock()
        is_written = all(version.quota.status.get(name) == value for name, value in status.items())
        settles = is_written and account != version.account and _counts_alike(version, account)
        if settles and now < self._until.setdefault(version.name, now + SETTLE_SECONDS):
            return True
        self.forget(version.name)
        return is_written and account == version.account

    def forget(self, tenant: str) -> None:
        self._until.pop(tenant, None)

    def due(self) -> float | None:
        """Return the time of the clock at which the next write must wait no longer."""
        return min(self._until.values(), default=None)

    def overdue(self) -> list[str]:
        now = self._clock()
        return [name for name, until in self._until.items() if until <= now]


def _counts_alike(version: Version, account: Account) -> bool:
    before, tenant = version.account, version.active
    if len(before.reserved) - len(account.reserved) >= MOST_SETTLED or _one_by_one(before) != _one_by_one(account):
        return False
    return booked_of(before, tenant) == booked_of(account, tenant)


def _one_by_one(account: Account) -> list[Entry]:
    """Return the seen pods that are listed by themselves. Other pods may take their slots."""
    return [each for each in account.entries if each.is_pod and each.state != "Reserved"]


class Counting:
    """Keeps the accounts equal to what the leader sees, for one term."""

    def __init__(self, leading: Leading, changes: Changes, pods: Pods, proof: Proof) -> None:
        self._leading = leading
        self._versions = leading.store.versions
        self._changes = changes
        self._pods = pods
        self._expiry = Expiry(leading.horizon, proof, leading.clock, leading.view.vacant.now)
        self._settling = Settling(leading.clock)

    async def round(self) -> None:
        """Write the accounts that have changed since the last round. Raises Superseded."""
        self._leading.view.drop_overdue()
        names = {*self._changes.take(self._versions), *self._expiry.aged(), *self._settling.overdue()}
        await for_each(names, self._write)

    def until_due(self) -> float:
        """Return the seconds until a round is due without a change."""
        view = self._leading.view
        due = (self._expiry.due(), self._settling.due(), view.next_end())
        return min([RECHECK_SECONDS, *(max(each - self._leading.clock(), 0.0) for each in due if each is not None)])

    async def _write(self, name: str) -> None:
        version = self._versions.newest(name)
        if version is None or not version.sealed:
            self._settling.forget(name)
            return
        term, view, world = self._leading.term, self._leading.view, self._leading.world
        term.bears(version.account)
        if not version.active.has_queue:  # if it gets one, its vacant slots would count in addition to its newer pods
            view.vacant.forget_all(version.account.namespaces)
        self._expiry.note(name, version.account)
        lapsed = await self._expiry.lapsed(name, version.account)

        def counted(version: Version, before: Account) -> tuple[Account, Count]:
            account = rewritten(before, view, lapsed, has_queue=version.active.has_queue)
            count = count_of(account, version.active, "; ".join(self._pods.problems()))
            stranded = () if count.stale else stranded_gangs(account, version.active, view, world.enforces)
            return account, replace(count, stranded=stranded)

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                account, count = counted(copy.version, copy.account)
                world.tell_stranded(name, count.stranded)
                status = world.status(copy.version, count)
                copy.put(account, changes=status)

        account, count = counted(version, version.account)
        world.tell_stranded(name, count.stranded)
        waits = self._settling.may_wait(version, account, world.status(version, count))
        if waits and not lapsed:  # a lapsed reservation would have to be proved again at the time of a later write
            return
        try:
            await term.change(name, edit)
        except TryAgain as problem:
            log.warning("tenant status not written", {"tenant": name, "error": str(problem)})
            self._changes.tenant(name)


def stranded_gangs(
    account: Account, tenant: Tenant, view: PodView, enforces: Callable[[str], bool]
) -> tuple[StrandedGang, ...]:
    """Return the gangs that use a part of the GPUs that they need, in a tenant that has no room for the rest.

    Such a gang can't run. It was never booked, because it is older than gpu-tiers or was applied while that was down. A
    booked gang always has room for the replacement of a preempted pod. A tenant that demotes has none, because a
    demoted pod may find room at another tier. A namespace whose mode `enforces` no quota has none either.
    """
    if tenant.charged_elsewhere or tenant.on_exceed != "Deny":
        return ()
    found = [each for each in _in_part(account, view) if enforces(each[0].namespace)]
    usage = booked_of(account, tenant) if found else {}
    stranded = (gang for gang, missing in found if not _has_room(missing, tenant.bounds, usage))
    return tuple(sorted(stranded, key=lambda each: (each.namespace, each.name)))


def _in_part(account: Account, view: PodView) -> Iterator[tuple[StrandedGang, tuple[Charge, ...]]]:
    """Yield the gangs that nobody booked and that use or have reserved a part, each with its missing charges."""
    booked, reserved = {uid for _, uid in account.gangs}, defaultdict[GangKey, list[Charge]](list)
    for each in account.reserved:
        reserved[each.gang] += each.wants
    for uid, found in view.workloads.found_in(account.namespaces):
        if uid in booked or not found.charges or found.partly_done:
            continue
        key = found.namespace, uid
        needs, used = at_tier(found.charges, ""), (*view.used_without_claims(key, ()), *reserved[key])
        if 0 < own_gpus(used) < own_gpus(needs):
            gang = StrandedGang(uid, found.kind, found.namespace, found.name, own_gpus(used), own_gpus(needs))
            yield gang, tuple(_missing(needs, used))


def _missing(needs: Collection[Charge], used: Collection[Charge]) -> Iterator[Charge]:
    """Yield the missing charges by tier, because the flavor of a pod is only known when it runs.

    Pods may run at another tier, or at none.
    """
    left = own_gpus(needs) - own_gpus(used)
    for tier in dict.fromkeys(each.tier for each in needs):
        needed, there = (own_gpus(each for each in some if each.tier == tier) for some in (needs, used))
        gpus = min(max(needed - there, Decimal(0)), left)
        left -= gpus
        yield Charge(gpus=gpus, tier=tier)


def _has_room(missing: Collection[Charge], rows: Collection[QuotaRow], usage: Usage) -> bool:
    asked = ((row, own_gpus(each for each in missing if row.counts(each.tier, each.flavor))) for row in rows)
    return all(usage[row] + gpus <= row.hard for row, gpus in asked if gpus)
