"""Counts GPU-seconds for chargeback: what the pods on nodes hold, times how long they held it.

Also the GPUs of each tenant whose pods have no node yet: they use quota, and nothing runs on them. A pod counts from
the second look at which it has none, so that pods which are being bound change nothing. The number stands in the
TenantQuota's status beside the account: no decision reads it, and it costs one write for each look after which it is
another.
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
"""Seconds between two looks. A pod that begins or ends in between is right to half of that on average."""

Series = tuple[str, str, str]
"""Tenant, tier and flavor."""


@dataclass(eq=False)
class GpuSeconds:
    """`running` tells what the pods on nodes hold: nothing where this replica does not lead, so that one counts.

    `add` adds GPU-seconds to a series, `forget` ends those of all counters about other tenants than these, and `told`
    is told what is held at each look.
    """

    add: Callable[[float, Series], None]
    forget: Callable[[Collection[str]], None]
    running: Callable[[], Iterable[tuple[str, Holding]]]
    tenants: Watched
    clock: Callable[[], float] = time.monotonic
    told: Callable[[Mapping[Series, float]], None] = lambda _: None

    def __post_init__(self) -> None:
        self._counted = self.clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.count()

    def count(self) -> None:
        """Add the time since the last look. Of a process that stood still another may have counted that time.

        Then the series of all counters end that are about tenants which are no more.
        """
        now = self.clock()
        seconds, self._counted = min(now - self._counted, 2 * INTERVAL), now
        held: defaultdict[Series, float] = defaultdict(float)
        for _, holding, gpus in counted_once(self.running()):
            tenant = self.tenants.tenant_name(holding.namespace) or ""
            held[tenant, holding.charge.tier or "", holding.charge.flavor or ""] += float(gpus)
        for series, gpu_count in held.items():
            self.add(gpu_count * seconds, series)
        self.told(held)
        self.forget({each.name for each in self.tenants.tenants()})


def counted_once(
    running: Iterable[tuple[str, Holding]], claims: set[tuple[str, str]] | None = None
) -> Iterator[OnNode]:
    """With the GPUs of each, those of a claim that pods share only at the first; `claims` has those that were met."""
    claims = set() if claims is None else claims
    for node, holding in running:
        shared = holding.charge.shared
        before = {claim for claim in shared if (holding.namespace, claim) in claims}
        claims |= {(holding.namespace, claim) for claim in shared}
        yield node, holding, holding.charge.gpus - sum((shared[claim] for claim in before), Decimal(0))


LOOK = 10.0
"""Seconds between two looks: what is shown is one to two of them old."""
NOTHING = Decimal(0)


class Pending(msgspec.Struct, frozen=True):
    """The pods of a tenant that have no node, their GPUs, and what they use of each row."""

    pods: int = 0
    gpus: Decimal = NOTHING
    rows: Mapping[QuotaRow, Decimal] = msgspec.field(default_factory=dict)


NONE = Pending()


@dataclass(eq=False)
class PendingGpus:
    """Run `run` as a task. `unplaced` tells the pods that hold GPUs and have no node, `running` those on nodes.

    `knows`: whether this replica leads and has seen all pods. `changed` is called with each tenant whose number is
    another.
    """

    unplaced: Callable[[], Iterable[tuple[str, Holding]]]
    running: Callable[[], Iterable[tuple[str, Holding]]]
    tenants: Watched
    knows: Callable[[], bool]
    changed: Callable[[str], None]
    _before: frozenset[str] | None = None
    _shown: dict[str, Pending] = field(default_factory=dict)

    def begin(self) -> None:
        """A new term: nothing is known of any pod yet."""
        self._before, self._shown = None, {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.look()

    def look(self) -> None:
        """Count those that had no node at the last look either."""
        if not self.knows():
            self.begin()
            return
        found = dict(self.unplaced())
        before, self._before = self._before, frozenset(found)
        if before is None:
            return
        counted = dict(self._counted([each for uid, each in found.items() if uid in before]))
        for tenant in self.tenants.tenants():
            pending = counted.get(tenant.name, NONE)
            if pending != self._shown.get(tenant.name):
                self._shown[tenant.name] = pending
                self.changed(tenant.name)

    def status(self, tenant: str, before: Status) -> Status:
        """What its status says of them. Nothing while that is not known, and of tenants that never had any."""
        pending = self._shown.get(tenant)
        if pending is None or not (pending.pods or "pending" in before):
            return {}
        rows = [{"row": row.label, "gpus": written(gpus)} for row, gpus in pending.rows.items() if gpus]
        return {"pending": {"pods": pending.pods, "gpus": written(pending.gpus), "rows": rows}}

    def rows(self) -> Iterator[tuple[str, QuotaRow, Decimal]]:
        """Each row of each tenant with its GPUs."""
        for tenant in self.tenants.tenants():
            if (pending := self._shown.get(tenant.name)) is not None:
                yield from ((tenant.name, row, pending.rows.get(row, NOTHING)) for row in tenant.rows)

    def _counted(self, lasting: list[Holding]) -> Iterator[tuple[str, Pending]]:
        """By tenant. A claim that a pod on a node holds too is in use there."""
        claims = set[tuple[str, str]]()
        if any(each.charge.shared for each in lasting):
            for _ in counted_once(self.running(), claims):
                pass
        mine = defaultdict[str, list[tuple[Holding, Decimal]]](list)
        for _, holding, gpus in counted_once((("", each) for each in lasting), claims):
            mine[self.tenants.tenant_name(holding.namespace) or ""].append((holding, gpus))
        for tenant in self.tenants.tenants():
            if tenant.name in mine and not tenant.charged_elsewhere:
                rows = defaultdict[QuotaRow, Decimal](Decimal)
                for holding, gpus in mine[tenant.name]:
                    for row in holding.charge.rows(tenant):
                        rows[row] += gpus
                found = mine[tenant.name]
                yield tenant.name, Pending(len(found), sum((gpus for _, gpus in found), NOTHING), dict(rows))
