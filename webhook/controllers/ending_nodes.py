"""Follows nodes, and remembers which of them bear a signal that they will end (policy/saves/node_signals.py)."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from webhook.kube.client import Client, path
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.objects.view import read
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.saves.node_signals import signal_of
from webhook.policy.values.tier_policy import TierPolicy

log = logging.getLogger(__name__)

LOOK = 5.0
"""Seconds between two looks whether nodes have to be followed, and by which table."""
REMEMBERED = 3600.0
"""Seconds for which a signal that comes and goes is the same one: autoscalers mark candidates and change their mind."""


@dataclass(eq=False)
class EndingNodes:
    """Run `run` as a task. `wanted`: whether this replica leads, and trainings can be asked."""

    client: Client
    policy: Callable[[], TierPolicy]
    wanted: Callable[[], bool]
    clock: Callable[[], float] = time.time
    _now: dict[str, str] = field(default_factory=dict)
    _since: dict[tuple[str, str], float] = field(default_factory=dict)

    def signal(self, node: str) -> tuple[str, float] | None:
        """Return the id of the signal on a node, and when it was seen first; None without one."""
        found = self._now.get(node)
        return (found, self._since[node, found]) if found else None

    async def run(self) -> None:
        while True:
            table = self.policy().node_signals
            if self.wanted() and table:
                reflector = Reflector(self.client, Source(path("v1", "nodes")), self._read, self._seen, self._listed)
                async with Reflectors(reflector):
                    while self.wanted() and table is self.policy().node_signals:  # noqa: ASYNC110 - cheap, and nobody calls
                        await asyncio.sleep(LOOK)
                self._now.clear()
            await asyncio.sleep(LOOK)

    async def _read(self, raw: msgspec.Raw) -> str | None:
        found = signal_of(read(raw, SchedulableNode), self.policy().node_signals)
        return found.id if found else None

    def _seen(self, node: str, signal: str | None) -> None:
        if signal is None:
            self._now.pop(node, None)
            return
        if self._now.get(node) != signal:
            log.info("node ends", {"node": node, "signal": signal})
        self._now[node] = signal
        since = self._since.get((node, signal))
        if since is None or self.clock() - since > REMEMBERED:
            self._since[node, signal] = self.clock()

    def _listed(self, found: Mapping[str, str]) -> None:
        for node in [node for node in self._now if node not in found]:
            del self._now[node]
        for node, signal in found.items():
            self._seen(node, signal)
        gone = self.clock() - 2 * REMEMBERED
        self._since = {key: since for key, since in self._since.items() if since > gone or key[0] in self._now}
