"""Tenants as their TenantQuotas show them: each row's limit and usage, and the problems."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.objects.quantities import written_gpus
from webhook.objects.view import listed, mapped
from webhook.policy.quota.budgets import HOUR, Status, granted, is_used_up, note_of, noted, state_of
from webhook.policy.quota.queue_status import hold_order_phrase
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tenants import Tenant, row_name
from webhook.policy.values.tier_policy import Flavor
from webhook.report.shown import Gpus, Shown, as_number
from webhook.sentences.sentence import sentence

_CONDITIONS = ("Ready", "Exact", "GangsWhole")


class RowShown(Shown, frozen=True):
    """A row of a quota, in GPUs. `left` is what its pods may still use, here and in rows that count them too.

    `left` does not say whether GPUs of the cluster are free.

    `reserved` is booked for pods that are not seen yet, and `reserved_for_queue` only for the head of the queue.

    `pending` is the part of `used` of pods without a node, as of ten to twenty seconds ago.

    `on_exceed` is the action above this row; "" if it is that of the other rows.

    `active`: the policy has its tier and flavor. Otherwise the row limits nothing.

    `closed_by` is the budget that is used up and leaves nothing here; "" for none.
    """

    subject: str
    hard: Gpus
    used: Gpus
    reserved: Gpus
    left: Gpus
    on_exceed: str = ""
    pending: Gpus = 0
    reserved_for_queue: Gpus = 0
    active: bool = True
    closed_by: str = ""

    @property
    def numbers(self) -> tuple[str, ...]:
        left = f"{self.left} ({self.closed})" if self.closed else self.left
        limits = (self.hard, left) if self.active else ("-", "-")
        return tuple(map(str, (self.used, self.reserved, self.reserved_for_queue, *limits)))

    @property
    def is_full(self) -> bool:
        """Tell whether nothing is left, although the row allows some."""
        return bool(self.hard) and not self.left and self.active

    @property
    def closed(self) -> str:
        """Return the words for a row in which GPUs may be free and no hours are left; "" for any other row."""
        return "hours used up" if self.closed_by else ""

    @property
    def shares(self) -> tuple[float, ...]:
        """Return the shares of pods on nodes, of the other pods, and of the reservations for pods and for the queue.

        Each is a share of the limit.
        """
        pending = min(self.pending, self.used)
        parts = self.used - pending, pending, self.reserved, self.reserved_for_queue
        hard = self.hard if self.active else 0
        return tuple(each / hard if hard else 0.0 for each in parts)


class QueuedShown(Shown, frozen=True):
    """A queued workload. `uid` is the uid of its pods' owner, and `nth` its position.

    `short` is a row without room for it, or a used up budget if it waits `for_hours`; "" for none. `per` is how often
    that budget has new hours, and `behind` the position of the workload that it may not pass, 0 for none.
    """

    nth: int
    namespace: str
    workload: str
    uid: str
    tier: str
    pods: int
    gpus: Gpus
    since: str
    short: str
    for_hours: bool = False
    per: str = ""
    behind: int = 0

    @property
    def waits_for(self) -> str:
        if self.for_hours:
            return f"new {self.short}" if self.per else "the end of the budget"
        return f"room in {self.short}" if self.short else "the queue"


class QueueShown(Shown, frozen=True):
    """The queue of a tenant: the numbers of its pods and workloads, and the first workloads in order."""

    pods: int = 0
    gpus: Gpus = 0
    workloads: int = 0
    entries: tuple[QueuedShown, ...] = ()

    @property
    def sentence(self) -> str:
        gpus = written_gpus(Decimal(str(self.gpus)))
        pods = f"{self.pods} {'pods wait' if self.pods > 1 else 'pod waits'}, for {gpus} in all"
        more = self.workloads - len(self.entries)
        return pods + (f"; {more} more workloads come after those that are shown" if more > 0 else "")


class BudgetShown(Shown, frozen=True):
    """A budget of GPU-hours of a tier or flavor in its period, and the words for it. `row` is its name where pods wait.

    Times are in RFC 3339. `per` is how often there are new hours, "" for a budget between two times. `begins` and
    `until` are those of the period, and `runs_out` is when the hours are used up if running pods go on; "" for never.
    """

    of: str
    row: str
    per: str
    gpu_hours: Gpus
    used_hours: Gpus
    used_up: bool
    begins: str = msgspec.field(name="from")
    until: str
    runs_out: str
    sentence: str


class TenantShown(Shown, frozen=True):
    """A tenant. `problems` are sentences on what is wrong with it, and `queue_order` on its queue, "" without one.

    `grants` are sentences on the grants that apply now.

    `not_ready` is reason and message of the condition Ready, if its quota is not or only partly active.
    """

    name: str
    rows: tuple[RowShown, ...]
    on_exceed: str
    problems: tuple[str, ...] = ()
    queue: QueueShown = QueueShown()
    queue_order: str = ""
    not_ready: str = ""
    budgets: tuple[BudgetShown, ...] = ()
    grants: tuple[str, ...] = ()


def above_quota(on_exceed: str, rows: Iterable[RowShown]) -> str:
    """Return the action above a quota, with the rows that have another one: "Deny, for gpu-batch Hold"."""
    return ", ".join((on_exceed, *(f"for {row.subject} {row.on_exceed}" for row in rows if row.on_exceed)))


def tenant_shown(found: TenantQuota, flavors: Iterable[Flavor] = ()) -> TenantShown:
    """Return a TenantQuota by its own status. Before the leader's first count it has no rows.

    `flavors` have the prices of GPU-hours.
    """
    status = found.status
    waiting = _trees(mapped(status.get("pending")).get("rows"))
    pending = {str(each.get("row")): as_number(_gpus(each.get("gpus"))) for each in waiting}
    elsewhere = found.tenant is not None and found.tenant.charged_elsewhere
    budgets = {each.row.label: each.per or "" for each in found.tenant.budgets} if found.tenant else {}
    return TenantShown(
        name=found.name,
        rows=tuple(_rows(_trees(status.get("usage")), pending, found.tenant)),
        on_exceed="charged elsewhere" if elsewhere else found.tenant.on_exceed if found.tenant else "-",
        problems=tuple(dict.fromkeys(_problems(found))),
        queue=_queue(mapped(status.get("queue")), budgets),
        queue_order=sentence(hold_order_phrase(found.tenant)) if found.tenant and found.tenant.has_queue else "",
        not_ready=not_ready(found),
        budgets=tuple(_budgets(found.tenant, status, flavors)) if found.tenant else (),
        grants=tuple(map(sentence, granted(status))),
    )


def _budgets(tenant: Tenant, status: Status, flavors: Iterable[Flavor]) -> Iterator[BudgetShown]:
    of_hour = {each.name: each.price for each in flavors if each.price is not None}
    for budget in tenant.budgets:
        if used := noted(status, budget):
            note = note_of(budget, used)
            begins, until, runs_out = note["from"], note.get("until", ""), note.get("runsOut", "")
            gpu_hours, used_hours = as_number(budget.gpu_hours), as_number(Decimal(note["usedHours"]))
            words = sentence(state_of(budget, used))
            if budget.flavor in of_hour:
                words += f"; they cost {used.gpu_seconds / HOUR * of_hour[budget.flavor]:,.2f}"
            of, row, used_up = (
                row_name(budget.tier, budget.flavor) or "total",
                budget.row.label,
                is_used_up(budget, used),
            )
            yield BudgetShown(of, row, budget.per or "", gpu_hours, used_hours, used_up, begins, until, runs_out, words)


def not_ready(found: TenantQuota) -> str:
    """Return reason and message of a false condition Ready, so the quota is not or only partly active; "" otherwise."""
    ready = next((each for each in _trees(found.status.get("conditions")) if each.get("type") == "Ready"), {})
    is_false = ready.get("status") == "False"
    return f"{ready.get('reason', 'NotReady')}: {ready.get('message', '')}" if is_false else ""


def _queue(status: dict[str, Any], budgets: Mapping[str, str]) -> QueueShown:
    shown = []
    for nth, entry in enumerate(_trees(status.get("entries")), 1):
        namespace, workload, uid, tier, since, short = (
            str(entry.get(name) or "") for name in ("namespace", "workload", "uid", "tier", "since", "short")
        )
        pods, gpus = _number(entry.get("pods")), as_number(_gpus(entry.get("gpus")))
        behind = _number(entry.get("behind"))
        of_it = QueuedShown(nth, namespace, workload, uid, tier, pods, gpus, since, short)
        of_it = replace(of_it, for_hours=short in budgets, per=budgets.get(short, ""), behind=behind)
        shown.append(of_it)
    gpus = as_number(sum((_gpus(each.get("gpus")) for each in _trees(status.get("tiers"))), Decimal(0)))
    return QueueShown(_number(status.get("pods")), gpus, _number(status.get("workloads")), tuple(shown))


def _trees(value: object) -> list[dict[str, Any]]:
    return [each for each in listed(value) if isinstance(each, dict)]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _rows(usage: list[dict[str, Any]], pending: dict[str, Gpus], tenant: Tenant | None) -> Iterator[RowShown]:
    """Yield the rows. A row has no more left than the total, or any other row that counts all of its pods.

    While GPUs are reserved for the queue, the status says what is left, because a row of a higher tier may use them.

    If a used up budget counts its pods, nothing is left, and the budget's action applies to further pods.
    """
    holds = frozenset(row.label for row in tenant.rows if row.has_queue) if tenant else frozenset[str]()
    rows = [(each, _row(each, holds, pending)) for each in usage]
    for own, row in rows:
        lefts = (
            other.left
            for its, other in rows
            if other.active and all(its.get(key) in (None, "", own.get(key)) for key in ("tier", "resourceFlavor"))
        )
        counted = own.get("tier"), own.get("resourceFlavor")
        closing = (each for each in (tenant.bounds if tenant else ()) if each.spent and each.counts(*counted))
        budget = next(closing, None)
        if tenant is None or budget is None:
            left = as_number(_gpus(own["left"])) if "left" in own else min((row.left, *lefts), key=float)
            yield replace(row, left=left)
            continue
        beyond = "Hold" if tenant.holds_on(*counted) else tenant.action(budget)
        other = "" if beyond == tenant.on_exceed else beyond
        yield replace(row, left=0, closed_by=budget.label, on_exceed=other)


def _row(usage: dict[str, Any], holds: frozenset[str], pending: dict[str, Gpus]) -> RowShown:
    named = [str(usage[key]) for key in ("tier", "resourceFlavor") if usage.get(key)]
    keys = "hard", "used", "reserved", "reservedForQueue"
    hard, used, reserved, for_queue = (_gpus(usage.get(key)) for key in keys)
    left = max(hard - used - reserved - for_queue, Decimal(0))
    subject = " on ".join(named) or "total"
    on_exceed, waiting = "Hold" if subject in holds else "", pending.get(subject, 0)
    numbers = as_number(hard), as_number(used), as_number(reserved), as_number(left)
    return RowShown(subject, *numbers, on_exceed, waiting, as_number(for_queue), usage.get("active") is not False)


def _gpus(text: object) -> Decimal:
    """Return the number of GPUs; 0 if the text is not a finite number, because anybody may have written it."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return Decimal(0)
    return number if number.is_finite() else Decimal(0)


def _problems(found: TenantQuota) -> Iterator[str]:
    if found.problem is not None:
        yield sentence(found.problem)
    if found.tenant is not None and found.tenant.allowed_tiers == ():
        yield "NoTier: allowedTiers is empty, so pods that would get a tier are refused"
    by_type = {each.get("type"): each for each in _trees(found.status.get("conditions"))}
    if "Ready" not in by_type:
        yield "NotCounted: no replica of gpu-tiers that leads has looked at it yet"
    for kind in _CONDITIONS:
        each = by_type.get(kind, {})
        is_odd = each.get("status") != "True" or each.get("reason") == "OverQuota"
        if is_odd and each.get("message"):
            yield f"{each.get('reason', kind)}: {each['message']}"
