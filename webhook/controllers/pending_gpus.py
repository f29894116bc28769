"""Counts the GPUs of each tenant whose pods have no node yet: they use quota, and nothing runs on them.

A pod counts from the second look at which it has none, so that pods which are being bound change nothing. The number
stands in the TenantQuota's status beside the account: no decision reads it, and it costs one write for each look after
which it is another.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

import msgspec

from webhook.cluster.watched import Watched
from webhook.controllers.gpu_seconds import counted_once
from webhook.ledger.protocol import Holding
from webhook.objects.quantities import written
from webhook.policy.quota.tenant_status import Status
from webhook.policy.values.tenants import QuotaRow

LOOK = 10.0
"""Seconds between two looks: what is shown is one to two of them old."""
NOTHING = Decimal(0)


class Pending(msgspec.Struct, frozen=True):
    """The pods of a tenant that have no node, their GPUs, and what they use of each row."""

    pods: int = 0
    gpus: Decimal = NOTHING
    rows: Mapping[QuotaRow, Decimal] = msgspec.field(default_factory=dict)

    def status(self) -> Status:
        """What a TenantQuota's status says of it."""
        rows = [{"row": row.label, "gpus": written(gpus)} for row, gpus in self.rows.items() if gpus]
        return {"pods": self.pods, "gpus": written(self.gpus), "rows": rows}


NONE = Pending()


class PendingGpus:
    """Run `run` as a task. `unplaced` tells the pods that hold GPUs and have no node, `running` those on nodes.

    `knows`: whether this replica leads and has seen all pods. `changed` is called with each tenant whose number is
    another.
    """

    def __init__(
        self,
        unplaced: Callable[[], Iterable[tuple[str, Holding]]],
        running: Callable[[], Iterable[tuple[str, Holding]]],
        tenants: Watched,
        knows: Callable[[], bool],
        changed: Callable[[str], None],
    ) -> None:
        self._unplaced = unplaced
        self._running = running
        self._tenants = tenants
        self._knows = knows
        self._changed = changed
        self._before: frozenset[str] | None = None
        self._shown: dict[str, Pending] = {}

    def begin(self) -> None:
        """A new term: nothing is known of any pod yet."""
        self._before, self._shown = None, {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.look()

    def look(self) -> None:
        """Count those that had no node at the last look either."""
        if not self._knows():
            self.begin()
            return
        found = dict(self._unplaced())
        before, self._before = self._before, frozenset(found)
        if before is None:
            return
        counted = dict(self._counted([each for uid, each in found.items() if uid in before]))
        for tenant in self._tenants.tenants():
            pending = counted.get(tenant.name, NONE)
            if pending != self._shown.get(tenant.name):
                self._shown[tenant.name] = pending
                self._changed(tenant.name)

    def status(self, tenant: str, before: Status) -> Status:
        """What its status says of them. Nothing while that is not known, and of tenants that never had any."""
        pending = self._shown.get(tenant)
        if pending is None or not (pending.pods or "pending" in before):
            return {}
        return {"pending": pending.status()}

    def rows(self) -> Iterator[tuple[str, QuotaRow, Decimal]]:
        """Each row of each tenant with its GPUs."""
        for tenant in self._tenants.tenants():
            if (pending := self._shown.get(tenant.name)) is not None:
                yield from ((tenant.name, row, pending.rows.get(row, NOTHING)) for row in tenant.rows)

    def _counted(self, lasting: list[Holding]) -> Iterator[tuple[str, Pending]]:
        """By tenant. A claim that a pod on a node holds too is in use there."""
        claims = set[tuple[str, str]]()
        if any(each.charge.shared for each in lasting):
            for _ in counted_once(self._running(), claims):
                pass
        mine = defaultdict[str, list[tuple[Holding, Decimal]]](list)
        for _, holding, gpus in counted_once((("", each) for each in lasting), claims):
            mine[self._tenants.tenant_name(holding.namespace) or ""].append((holding, gpus))
        for tenant in self._tenants.tenants():
            if tenant.name in mine and not tenant.charged_elsewhere:
                rows = defaultdict[QuotaRow, Decimal](Decimal)
                for holding, gpus in mine[tenant.name]:
                    for row in holding.charge.rows(tenant):
                        rows[row] += gpus
                found = mine[tenant.name]
                yield tenant.name, Pending(len(found), sum((gpus for _, gpus in found), NOTHING), dict(rows))
