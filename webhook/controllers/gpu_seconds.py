"""Counts GPU-seconds for chargeback: what the pods on nodes hold, times how long they held it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from webhook.cluster.watched import Watched
from webhook.ledger.protocol import Holding

INTERVAL = 10.0
"""Seconds between two looks. A pod that begins or ends in between is right to half of that on average."""

Series = tuple[str, str, str]
"""Tenant, tier and flavor."""


class GpuSeconds:
    """`running` tells what the pods on nodes hold: nothing where this replica does not lead, so that one counts.

    `add` adds GPU-seconds to a series, `forget` ends those of all counters about other tenants than these.
    """

    def __init__(
        self,
        add: Callable[[float, Series], None],
        forget: Callable[[Collection[str]], None],
        running: Callable[[], Iterable[Holding]],
        tenants: Watched,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._add = add
        self._forget = forget
        self._running = running
        self._tenants = tenants
        self._clock = clock
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
        for series, gpus in self._held().items():
            self._add(gpus * seconds, series)
        self._forget({tenant.name for tenant in self._tenants.tenants()})

    def _held(self) -> dict[Series, float]:
        held: defaultdict[Series, float] = defaultdict(float)
        claims: set[tuple[str, str]] = set()
        for holding in self._running():
            charge = holding.charge
            tenant = self._tenants.tenant_name(holding.namespace) or ""
            shared_before = {claim for claim in charge.shared if (holding.namespace, claim) in claims}
            claims |= {(holding.namespace, claim) for claim in charge.shared}
            gpus = charge.gpus - sum(charge.shared[claim] for claim in shared_before)
            held[tenant, charge.tier or "", charge.flavor or ""] += float(gpus)
        return held
