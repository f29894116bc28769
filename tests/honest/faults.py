"""Faults of a history: leaders and replicas that go, creates that others refuse after us, watches that lag."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from tests.honest.asks import Lost
from tests.honest.objects import KINDS, PODS, created_at, gpus_of
from tests.honest.oracle import LOST_SECONDS, Oracle
from tests.honest.replica import Replica
from tests.honest.requests import ApiServer
from tests.ledger.virtual_time import loop

Action = dict[str, Any]
LEASE_SECONDS = 15
"""After a crash nobody leads for so long."""
UNSEEN_SECONDS = 3
"""A leader may not have seen a pod that is younger than this."""


class Faults:
    """A method for each fault. `pass_seconds` lets time pass in the cluster, `start_replica` adds a replica."""

    def __init__(
        self,
        replicas: list[Replica],
        server: ApiServer,
        oracle: Oracle,
        pass_seconds: Callable[[float], Awaitable[None]],
        start_replica: Callable[[], Awaitable[None]],
    ) -> None:
        self._replicas = replicas
        self._server = server
        self._oracle = oracle
        self._pass = pass_seconds
        self._start_replica = start_replica

    def do_lose(self, _: Action) -> None:
        """Another webhook refuses the next create that we admit."""
        self._server.lose_next = 1

    def do_quota_full(self, action: Action) -> None:
        """A ResourceQuota refuses the pods of a namespace for a while."""
        self._server.full_until[action["ns"]] = loop().time() + action["s"]

    async def do_leader(self, action: Action) -> None:
        """The leader loses the Lease, or crashes."""
        self._prolong_lost()
        before = next((each for each in self._replicas if each.leads), None)
        if before is not None:
            await before.stop_leading()
        if action.get("crash"):
            await self._without_leader()
        if not any(each.leads for each in self._replicas):
            alive = [each for each in self._replicas if each.alive]
            next((each for each in alive if each is not before), alive[0]).lead()
        calm = self._oracle.calm
        calm.leaderless_until = max(calm.leaderless_until, loop().time() + 2)

    async def do_replica(self, action: Action) -> None:
        """A replica goes, and another one comes."""
        self._prolong_lost()
        alive = [each for each in self._replicas if each.alive]
        lost = alive[action["i"] % len(alive)]
        led = lost.leads
        await lost.stop()
        await self._start_replica()
        if led:
            await self._without_leader()
            if not any(each.leads for each in self._replicas if each.alive):
                next(each for each in self._replicas if each.alive).lead()
            self._oracle.calm.leaderless_until = loop().time() + 2

    async def _without_leader(self) -> None:
        self._oracle.calm.leaderless_until = loop().time() + LEASE_SECONDS
        await self._pass(LEASE_SECONDS)

    def _prolong_lost(self) -> None:
        """A new leader's clocks start at zero."""
        until, expected = loop().time() + LEASE_SECONDS + LOST_SECONDS, self._oracle.expected
        expected.leads_since = until - LOST_SECONDS
        expected.lost = [replace(each, until=max(each.until, until)) for each in expected.lost]
        for pod in self._oracle.expected.api.all(PODS):  # the next leader may find them ended, and never see them run
            if created_at(pod) > loop().time() - UNSEEN_SECONDS and gpus_of(pod):
                lost = Lost(until, pod["metadata"]["namespace"], expected.ask_of(pod), is_over=True)
                expected.lost.append(lost)

    def do_blind(self, action: Action) -> None:
        """The watch of a kind brings nothing for a while."""
        for each in self._replicas:
            if each.alive:
                view = each.client.view(KINDS[action["kind"]])
                view.hold()
                loop().call_later(action["s"], view.flow)

    def do_watch_ends(self, action: Action) -> None:
        for each in self._replicas:
            if each.alive:
                each.client.view(KINDS[action["kind"]]).break_off()
