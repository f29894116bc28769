"""Counts GPU-seconds for chargeback: what the pods on nodes hold, times how long they held it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal

from webhook.cluster.watched import Watched
from webhook.ledger.protocol import Holding
from webhook.report.gpus_now import OnNode

INTERVAL = 10.0
"""Seconds between two looks. A pod that begins or ends in between is right to half of that on average."""

Series = tuple[str, str, str]
"""Tenant, tier and flavor."""


class GpuSeconds:
    """`running` tells what the pods on nodes hold: nothing where this replica does not lead, so that one counts.

    `add` adds GPU-seconds to a series, `forget` ends those of all counters about other tenants than these, and `told`
    is told what is held at each look.
    """

    def __init__(
        self,
        add: Callable[[float, Series], None],
        forget: Callable[[Collection[str]], None],
        running: Callable[[], Iterable[tuple[str, Holding]]],
        tenants: Watched,
        clock: Callable[[], float] = time.monotonic,
        told: Callable[[Mapping[Series, float]], None] = lambda _: None,
    ) -> None:
        self._add = add
        self._forget = forget
        self._running = running
        self._tenants = tenants
        self._clock = clock
        self._told = told
        self._counted = clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.count()

    def count(self) -> None:
        """Add the time since the last look. Of a process that stood still another may have counted that time.

        Then the series of all counters end that are about tenants which are no more.
        """
        now = self._clock()
        seconds, self._counted = min(now - self._counted, 2 * INTERVAL), now
        held: defaultdict[Series, float] = defaultdict(float)
        for _, holding, gpus in counted_once(self._running()):
            tenant = self._tenants.tenant_name(holding.namespace) or ""
            held[tenant, holding.charge.tier or "", holding.charge.flavor or ""] += float(gpus)
        for series, gpu_count in held.items():
            self._add(gpu_count * seconds, series)
        self._told(held)
        self._forget({each.name for each in self._tenants.tenants()})


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
