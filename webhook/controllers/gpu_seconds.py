"""Counts GPU-seconds for chargeback: the GPUs of pods on nodes, times the seconds for which they use them.

It also counts the GPUs of pods without a node, by tenant, because they use quota and nothing runs on them. A pod counts
from the second look at which it has no node, so that pods which are being bound don't count. The number is in the
TenantQuota's status. No decision reads it, and it is written after each look at which it has changed.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from webhook.cluster.watched import Watched
from webhook.ledger.protocol import Holding
from webhook.objects.quantities import written
from webhook.policy.quota.tenant_status import Status
from webhook.policy.values.tenants import QuotaRow
from webhook.report.gpus_now import OnNode

INTERVAL = 10.0
"""Seconds between two looks. A pod that begins or ends in between is wrong by half of that on average."""

Series = tuple[str, str, str]
"""Tenant, tier and flavor."""


@dataclass(eq=False)
class GpuSeconds:
    """Adds up GPU-seconds. `running` returns the pods on nodes; none if this replica does not lead: only one counts.

    `add` adds GPU-seconds to a series, `forget` ends the series of all tenants except those given, and `report` gets
    the GPUs in use at each look.
    """

    add: Callable[[float, Series], None]
    forget: Callable[[Collection[str]], None]
    running: Callable[[], Iterable[tuple[str, Holding]]]
    tenants: Watched
    clock: Callable[[], float] = time.monotonic
    report: Callable[[Mapping[Series, float]], None] = lambda _: None

    def __post_init__(self) -> None:
        self._counted = self.clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.count()

    def count(self) -> None:
        """Add the time since the last look, and end the series of tenants that are gone.

        If this process stood still, another leader may have counted that time, so it adds at most two intervals.
        """
        now = self.clock()
        seconds, self._counted = min(now - self._counted, 2 * INTERVAL), now
        used: defaultdict[Series, float] = defaultdict(float)
        for _, holding, gpus in counted_once(self.running()):
            tenant = self.tenants.tenant_name(holding.namespace) or ""
            used[tenant, holding.charge.tier or "", holding.charge.flavor or ""] += float(gpus)
        for series, gpu_count in used.items():
            self.add(gpu_count * seconds, series)
        self.report(used)
        self.forget({each.name for each in self.tenants.tenants()})


def counted_once(
    running: Iterable[tuple[str, Holding]], claims: set[tuple[str, str]] | None = None
) -> Iterator[OnNode]:
    """Yield each pod with its GPUs. GPUs of a shared claim count for its first pod only; `claims` were seen before."""
    claims = set() if claims is None else claims
    for node, holding in running:
        shared = holding.charge.shared
        before = {claim for claim in shared if (holding.namespace, claim) in claims}
        claims |= {(holding.namespace, claim) for claim in shared}
        yield node, holding, holding.charge.gpus - sum((shared[claim] for claim in before), Decimal(0))


LOOK = 10.0
"""Seconds between two looks. The shown number is one to two of them old."""
NOTHING = Decimal(0)


class Pending(msgspec.Struct, frozen=True):
    """The pods of a tenant that have no node, their GPUs, and their GPUs on each row."""

    pods: int = 0
    gpus: Decimal = NOTHING
    rows: Mapping[QuotaRow, Decimal] = msgspec.field(default_factory=dict)


@dataclass(eq=False)
class PendingGpus:
    """Counts the GPUs of pods without a node. Run `run` as a task.

    `unplaced` returns the GPU pods without a node, and `running` those on nodes. `knows`: whether this replica leads
    and has seen all pods. `changed` is called with a tenant when its number has changed.
    """

    unplaced: Callable[[], Iterable[tuple[str, Holding]]]
    running: Callable[[], Iterable[tuple[str, Holding]]]
    tenants: Watched
    knows: Callable[[], bool]
    changed: Callable[[str], None]
    _before: frozenset[str] | None = None
    _shown: dict[str, Pending] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin a new term, in which no pod is known yet."""
        self._before, self._shown = None, {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.look()

    def look(self) -> None:
        """Count the pods that have no node now and had none at the last look."""
        if not self.knows():
            self.begin()
            return
        found = dict(self.unplaced())
        before, self._before = self._before, frozenset(found)
        if before is None:
            return
        lasting = [each for uid, each in found.items() if uid in before]
        claims = set[tuple[str, str]]()
        if any(each.charge.shared for each in lasting):
            for _ in counted_once(self.running(), claims):
                pass  # claims that a pod on a node uses too are not pending
        counted = defaultdict[str, list[tuple[Holding, Decimal]]](list)
        for _, holding, gpus in counted_once((("", each) for each in lasting), claims):
            counted[self.tenants.tenant_name(holding.namespace) or ""].append((holding, gpus))
        for tenant in self.tenants.tenants():
            mine = [] if tenant.charged_elsewhere else counted[tenant.name]
            rows = defaultdict[QuotaRow, Decimal](Decimal)
            for holding, gpus in mine:
                for row in holding.charge.rows(tenant):
                    rows[row] += gpus
            pending = Pending(len(mine), sum((gpus for _, gpus in mine), NOTHING), dict(rows))
            if pending != self._shown.get(tenant.name):
                self._shown[tenant.name] = pending
                self.changed(tenant.name)

    def status(self, tenant: str, before: Status) -> Status:
        """Return the status field of pending pods; {} while it is not known, and for tenants that never had any."""
        pending = self._shown.get(tenant)
        if pending is None or not (pending.pods or "pending" in before):
            return {}
        rows = [{"row": row.label, "gpus": written(gpus)} for row, gpus in pending.rows.items() if gpus]
        return {"pending": {"pods": pending.pods, "gpus": written(pending.gpus), "rows": rows}}

    def rows(self) -> Iterator[tuple[str, QuotaRow, Decimal]]:
        """Yield each row of each tenant with its pending GPUs."""
        for tenant in self.tenants.tenants():
            if (pending := self._shown.get(tenant.name)) is not None:
                yield from ((tenant.name, row, pending.rows.get(row, NOTHING)) for row in tenant.rows)
