"""Integrates the GPU-hours of budgets, and notes in the TenantQuotas' statuses what is used and which grants apply.

The sum is a pod's GPUs times the seconds from its binding, as the API server noted it, until its end. A running leader
adds as pods come and go. A new leader goes on from the time of the last note: pods that exist have their times, and the
kubelet has noted the end of pods that ended meanwhile and still exist. Pods that are gone count for half of the time in
which nobody looked, and the note says so.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

from webhook.cluster.watched import Watched
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.pods_on_nodes import Placed
from webhook.kube.errors import ApiError
from webhook.objects.refusal import Phrase
from webhook.objects.times import date_text
from webhook.policy.quota import budgets
from webhook.policy.quota.budgets import HOUR, NOTHING, Status, Used, noted
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tenants import Budget, Tenant, row_name
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two looks at what is used up, begins or ends."""
NOTED_SECONDS = 60.0
"""Seconds after which the use of a budget with running pods is noted again."""


def _times(gpus: Decimal, seconds: float) -> Decimal:
    """Return GPU-seconds, to the millisecond, because sums of floats would differ by their order."""
    return gpus * Decimal(round(max(seconds, 0.0) * 1000)) / 1000


class Meter:
    """The use of one budget in its period. A ResourceClaim that pods share counts once, as long as one of them does."""

    def __init__(self, budget: Budget, used: Used | None, now: float) -> None:
        self.budget, self.row = budget, budget.row
        self.span = budgets.span_at(budget, now)
        self.at = self.counted_from = max(used.until if used is not None else now, self.span.begins)
        self.since, self.seconds, self.unsure = self.at, NOTHING, NOTHING
        if used is not None and used.until >= self.span.begins:  # it is of this period, maybe in another time zone
            self.since = max(used.since, self.span.begins)
            self.seconds, self.unsure = used.gpu_seconds, used.unsure
        self.gpus = NOTHING
        self._holders: dict[str, tuple[int, Decimal]] = {}

    @property
    def used(self) -> Used:
        return Used(self.span, self.since, self.at, self.seconds, self.gpus, self.unsure)

    def advance(self, now: float) -> None:
        """Add what is in use until now, and begin again at the end of a period."""
        while self.budget.per and self.span.until is not None and now >= self.span.until:
            self.span = budgets.span_at(self.budget, self.span.until)
            self.seconds = self.unsure = NOTHING
            self.at = self.since = self.span.begins
        self.add(self.gpus, self.at, now)
        self.at = max(self.at, now)

    def add(self, gpus: Decimal, begins: float, ends: float) -> None:
        """Add GPUs that were in use between two times, cut to the period and to the time since `counted_from`."""
        begins = max(begins, self.span.begins, self.counted_from)
        self.seconds += _times(gpus, min(ends, self.span.until or ends) - begins)

    def hold(self, charge: Charge, uid: str, bound: float) -> None:
        """Count a pod since it was bound. Call `advance` first."""
        for key, gpus in _parts(charge, uid):
            count, _ = self._holders.get(key, (0, gpus))
            if not count:
                self.gpus += gpus
                self.add(gpus, bound, self.at)
            self._holders[key] = count + 1, gpus

    def release(self, charge: Charge, uid: str) -> None:
        """Count a pod no more. Call `advance` first."""
        for key, gpus in _parts(charge, uid):
            count, own = self._holders.pop(key, (0, gpus))
            if count > 1:
                self._holders[key] = count - 1, own
            elif count:
                self.gpus -= own


def _parts(charge: Charge, uid: str) -> Iterator[tuple[str, Decimal]]:
    if charge.own:
        yield uid, charge.own
    for claim, gpus in charge.shared.items():
        yield f"claim {claim}", gpus


EndedPods = Callable[[float], Awaitable[Iterable[tuple[str, Placed]]]]
"""Returns the pods that still exist and have ended after a time, by uid. Raises ApiError."""


@dataclass(eq=False)
class BudgetMeters:
    """The meters of all tenants with budgets, while this replica leads. Run `run` as a task.

    `placed` returns the pods on nodes, by uid, and `ended` those that have ended. `knows`: whether this replica leads
    and has seen all pods. `changed` is called with a tenant when its note has changed.
    """

    tenants: Watched
    placed: Callable[[], Iterable[tuple[str, Placed]]]
    ended: EndedPods
    knows: Callable[[], bool]
    now: Callable[[], float]
    changed: Callable[[str], None]
    events: EventWriter
    _meters: dict[str, list[Meter]] = field(default_factory=dict)
    _counted: dict[str, tuple[str, Placed]] = field(default_factory=dict)
    _before: dict[str, Mapping[str, object]] = field(default_factory=dict)
    """The last status with notes of each TenantQuota by its name, also of those that were deleted."""
    _notes: dict[str, Status] = field(default_factory=dict)
    _reported: set[object] = field(default_factory=set)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _stale: bool = True
    _sure: float = 0.0
    """When this leader was last sure to have seen all pods; 0 in a new term."""

    def __post_init__(self) -> None:
        self.tenants.subscribe(self._tenants_changed)
        self.tenants.quotas.follow(self._quota_changed, self._quotas_listed)
        self._quotas_listed(self.tenants.quotas.objects)

    def begin(self) -> None:
        """Begin a new term, in which nothing is known but the notes."""
        self._meters, self._counted, self._notes, self._reported = {}, {}, {}, set()
        self._stale, self._sure = True, 0.0

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), LOOK)
            self._woken.clear()
            await self.look()

    async def look(self) -> None:
        """Note what has changed since the last look, if this replica leads and knows all pods."""
        if self._stale and self.knows():
            await self._count_again()
        if self._stale or not self.knows():
            return
        self._sure = self.now()
        for tenant in self.tenants.tenants():
            try:
                self._look(tenant)
            except Exception:  # what one TenantQuota has wrong must not stop the leader
                log.exception("GPU-hours not noted", {"tenant": tenant.name})

    def pod_changed(self, uid: str, found: Placed | None) -> None:
        """Note that a pod is on a node, or is there no more."""
        if self._stale or not self._meters:
            return  # nothing is counted, or all are in a moment
        now, before = self.now(), self._counted.get(uid)
        tenant = self.tenants.tenant_name(found.holding.namespace) if found else None
        if found and before and (before[0], before[1].holding.charge) == (tenant, found.holding.charge):
            return
        if before is not None:
            of, earlier = self._counted.pop(uid)
            for meter in self._counting(of, earlier.holding.charge):
                meter.advance(now)
                meter.release(earlier.holding.charge, uid)
            self._notes.pop(of, None)  # the write that frees its room notes what it used
        if found is not None and tenant and self._meters.get(tenant):
            self._hold(uid, tenant, found, now if before else found.bound, now)
            self._notes.pop(tenant, None)
            self.changed(tenant)  # the next leader has to know what was in use

    def count_again(self) -> None:
        """Note that all pods have to be counted again, because they were listed, or belong to other tenants."""
        self._stale = True
        self._woken.set()

    def status(self, tenant: Tenant, before: Status) -> Status:
        """Return the status fields of budgets and grants; {} for a tenant that never had any, or before a count."""
        noted_before = any(before.get(name) for name in ("budgets", "grants"))
        if self._stale or not (tenant.budgets or tenant.grants or noted_before):
            return {}
        return self._notes.get(tenant.name) or self._note(tenant)

    # --- counting

    def _hold(self, uid: str, tenant: str, found: Placed, bound: float, now: float) -> None:
        self._counted[uid] = tenant, found
        for meter in self._counting(tenant, found.holding.charge):
            meter.advance(now)
            meter.hold(found.holding.charge, uid, bound)

    def _counting(self, tenant: str, charge: Charge) -> Iterator[Meter]:
        return (each for each in self._meters.get(tenant, ()) if each.row.counts(charge.tier, charge.flavor))

    async def _count_again(self) -> None:
        """Count from the last note, or the last sure look, by the times of the pods that exist and have ended."""
        # 1. The pods that ended meanwhile.
        known = {each.name: each for each in self.tenants.tenants() if each.budgets}
        since = [used.until for each in known.values() for used in self._noted(each) if used]
        try:
            away = since and min(since) < self.now() - 2 * LOOK
            ended = dict(await self.ended(min(since))) if away else {}
        except ApiError as error:
            log.warning("ended pods not read", {"error": str(error)})
            return
        if not self.knows():
            return

        # 2. Those that exist, from when they were bound, but not from before the note.
        now, before = self.now(), {name: self._noted(tenant) for name, tenant in known.items()}
        self._meters = {
            name: [Meter(each, used, now) for each, used in zip(tenant.budgets, before[name], strict=True)]
            for name, tenant in known.items()
        }
        self._counted, self._notes, self._stale = {}, {}, False
        there = defaultdict[str, list[tuple[str, Placed]]](list)
        for uid, found in (*self.placed(), *ended.items()):
            there[self.tenants.tenant_name(found.holding.namespace) or ""].append((uid, found))
        for name, meters in self._meters.items():
            for meter, used in zip(meters, before[name], strict=True):
                self._catch_up(meter, used, there[name], now)
            for uid, found in there[name]:
                if found.ended is None:
                    self._hold(uid, name, found, now, now)

    def _catch_up(self, meter: Meter, used: Used | None, there: Iterable[tuple[str, Placed]], now: float) -> None:
        """Add what was used between the note and now. Pods that share a claim use it from the first to the last."""
        spans, noted_then = dict[str, tuple[Decimal, float, float]](), dict[str, Decimal]()
        for uid, found in there:
            charge = found.holding.charge
            if not meter.row.counts(charge.tier, charge.flavor):
                continue
            ends = now if found.ended is None else found.ended
            for key, gpus in _parts(charge, uid):
                _, first, last = spans.get(key, (gpus, found.bound, ends))
                spans[key] = gpus, min(first, found.bound), max(last, ends)
                if used is not None and found.bound <= used.until:
                    noted_then[key] = gpus
        for gpus, begins, ends in spans.values():
            meter.add(gpus, begins, ends)
        gone = used.gpus - sum(noted_then.values(), NOTHING) if used is not None else NOTHING
        if gone > 0 and used is not None:
            half = _times(gone, now - max(meter.counted_from, meter.span.begins)) / 2
            meter.seconds, meter.unsure = meter.seconds + half, meter.unsure + half
        meter.at = max(meter.at, now)

    def _noted(self, tenant: Tenant) -> list[Used | None]:
        """Return what is known of each budget: what this leader has counted, or what the last one has noted."""
        counted = {each.budget: each for each in self._meters.get(tenant.name, ())}
        for each in counted.values():
            each.advance(max(self._sure, each.at))
        status = self._before.get(tenant.name, {})
        return [counted[each].used if each in counted else noted(status, each) for each in tenant.budgets]

    def _tenants_changed(self) -> None:
        """Count again if a tenant has other budgets or namespaces."""
        if self._stale:
            return
        wanted = {each.name: list(each.budgets) for each in self.tenants.tenants() if each.budgets}
        moved = any(self.tenants.tenant_name(each.holding.namespace) != name for name, each in self._counted.values())
        if moved or wanted != {name: [each.budget for each in meters] for name, meters in self._meters.items()}:
            self.count_again()

    def _quota_changed(self, name: str, found: TenantQuota | None) -> None:
        """Remember the notes by the name, so that a TenantQuota that is made again goes on with its hours.

        Its first status has none, because its account is built before its pods are counted.
        """
        if found is not None and "budgets" in found.status:
            self._before[name] = found.status

    def _quotas_listed(self, found: Mapping[str, TenantQuota]) -> None:
        for name, each in found.items():
            self._quota_changed(name, each)

    # --- what people see

    def _look(self, tenant: Tenant) -> None:
        """Note grants that begin or end, and a tenant's use: each minute with GPUs in use, and at each of `_marks`.

        Add an event a day before a grant ends.
        """
        if not tenant.budgets and not tenant.grants:
            return
        now, before = self.now(), self._notes.get(tenant.name)
        due = before is None
        for meter in self._meters.get(tenant.name, ()):
            meter.advance(now)
            was, on = noted(before or {}, meter.budget), meter.used.is_on(now)
            if was is None or not on:
                due = due or on or was is not None  # it begins or ends
                continue
            passed = any(was.gpu_seconds < mark <= meter.seconds for mark in _marks(meter.budget))
            old = meter.gpus > 0 and now >= was.until + NOTED_SECONDS
            due = due or passed or old or was.span != meter.span
        due = due or budgets.noted_grants(before or {}) != budgets.grants_at(tenant, now)
        for each in tenant.grants:
            if each.begins <= now and each.until - budgets.SOON_SECONDS <= now < each.until:
                row = row_name(each.tier, each.flavor) or "the total"
                ends = Phrase("grant-ends", gpus=each.gpus, row=row, until=date_text(each.until, "UTC"))
                self._tell_once(tenant.name, each, "GrantEnds", ends)
        if due:
            self._note(tenant)
            self.changed(tenant.name)

    def _note(self, tenant: Tenant) -> Status:
        now, found = self.now(), list[tuple[Budget, Used]]()
        for meter in self._meters.get(tenant.name, ()):
            meter.advance(now)
            if meter.used.is_on(now):
                found.append((meter.budget, meter.used))
        grants = [budgets.note_of_grant(each) for each in budgets.grants_at(tenant, now)]
        notes = [budgets.note_of(*each) for each in found]
        status = {"budgets": notes, "grants": grants, "hours": budgets.hours_summary(found)}
        before = self._before.get(tenant.name, {})
        for budget, used in found:
            was = noted(before, budget)
            earlier = was.gpu_seconds if was is not None and was.span == used.span else NOTHING
            passed = [mark for mark in _marks(budget) if earlier < mark <= used.gpu_seconds]
            if passed:
                reason = "BudgetUsedUp" if budgets.is_used_up(budget, used) else "BudgetNearlyUsed"
                self._tell_once(tenant.name, (budget, used.span, passed[-1]), reason, budgets.state_of(budget, used))
        self._notes[tenant.name] = status
        return status

    def _tell_once(self, tenant: str, subject: object, reason: str, said: Phrase) -> None:
        """Add an event on a TenantQuota, once in a term for each subject: a mark in a period, or the end of a grant."""
        uid = self.tenants.tenant_uid(tenant)
        if uid is not None and (tenant, subject) not in self._reported:
            self._reported.add((tenant, subject))
            self.events.add(Regarding.tenant_quota(tenant, uid), reason, sentence(said))


def _marks(budget: Budget) -> list[Decimal]:
    """Return the GPU-seconds at which an event is due, the last of them the end."""
    whole = budget.gpu_hours * HOUR
    return [*(part * whole for part in budgets.WARNED_AT), whole]
