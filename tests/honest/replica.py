"""A replica of gpu-tiers, whose ledger webhook.server.running_ledger puts together.

Admission, look-ups, informers, ledger, leader, queue and opening of gates are the real ones. HTTP, the election and the
writer of events are left out: the history says who leads.
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.honest.api import Api, ReplicaClient
from tests.honest.clocks import VirtualDatetime
from tests.honest.objects import FLAVOR_LABEL
from webhook.admission.webhook import Webhooks
from webhook.cluster import live
from webhook.cluster.live import live_cluster
from webhook.config.active_policy import ActivePolicy
from webhook.controllers import event_writer, observed_pods, observed_world, placements, queued_pods
from webhook.ledger.accounts import Accounts, HandOver
from webhook.policy.values.tier_policy import TierPolicy
from webhook.server.metrics import Metrics
from webhook.server.running_ledger import ReplicaLedger

for _module in (event_writer, queued_pods, observed_pods, observed_world, placements, live):
    _module.datetime = VirtualDatetime  # type: ignore[attr-defined]

H = 75.0
"""createTimeoutSeconds."""
_terms = itertools.count(1)


def policy_text(flavors: Any = (), **more: Any) -> str:
    tree: dict[str, Any] = {
        "apiVersion": "config.gpu-tiers.dev/v1alpha1",
        "kind": "TierPolicy",
        "mode": "Enforce",
        "preset": "four-tier",
    }
    if flavors:
        tree["resourceFlavors"] = [{"name": each, "nodeLabels": {FLAVOR_LABEL: each}} for each in flavors]
    return yaml.safe_dump({**tree, **more}, sort_keys=False)


class _NoEvents:
    def add(self, *_: object, **__: object) -> None:
        """Events are not judged."""


class Replica:
    """Answers reviews from `start` to `stop`, and leads from `lead` to `stop_leading`. `peers`: all replicas."""

    def __init__(self, client: ReplicaClient, name: str, policy: str, peers: "list[Replica]") -> None:
        self.client = client
        self.name = name
        self.peers = peers
        self.alive = False
        self._policy_file = Path(tempfile.mkdtemp(prefix="honest-policy-")) / "policy.yaml"
        self._policy_file.write_text(policy)
        self._leading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._context = live_cluster(self.client)  # type: ignore[arg-type]
        cluster = await self._context.__aenter__()
        known = cluster.known
        await known.wait_synced()
        self._active = ActivePolicy(self._policy_file, lambda _: [], lambda _: [], lambda _: None)
        self._active.start("")

        def follow() -> None:
            known.nodes.follow({key for flavor in self._active.current().flavors for key in flavor.node_labels})

        follow()
        self._active.subscribe(follow)
        if self._active.current().flavors:
            await known.nodes.wait_synced()
        await known.device_classes.follow(self._active.tell_classes)
        await known.device_classes.wait_synced()
        self._parts = ReplicaLedger(
            cluster,
            self._active,
            _NoEvents(),  # type: ignore[arg-type]
            HandOver(self._way_to_leader),
            lambda: self.leads,
            Metrics(),
        )
        self.webhooks = Webhooks(cluster, self.ledger, self._active.current, lambda *_: None)
        self._writing = asyncio.gather(self._parts.queued.run(), self._parts.pending.run(), self._parts.hours.run())
        self.alive = True

    def _way_to_leader(self) -> Any:
        leader = next((each for each in self.peers if each.alive and each.leads), None)
        if leader is None or leader is self:
            return None

        @asynccontextmanager
        async def way(booking: Any) -> AsyncIterator[Awaitable[bool]]:
            yield asyncio.ensure_future(leader.ledger.take(booking))

        return way

    @property
    def ledger(self) -> Accounts:
        return self._parts.ledger

    @property
    def policy(self) -> TierPolicy:
        return self._active.current()

    @property
    def leads(self) -> bool:
        return self._leading is not None and not self._leading.done()

    def lead(self, *, first: bool = False) -> None:
        """Get the Lease. `first`: nobody had it before."""
        identity = f"{self.name}_{next(_terms)}"
        self._leading = asyncio.create_task(self._parts.make_leader(identity, H).lead(first))

    async def stop_leading(self) -> None:
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)

    @property
    def problem(self) -> BaseException | None:
        """The error that ended the leading."""
        if self._leading is None or not self._leading.done() or self._leading.cancelled():
            return None
        return self._leading.exception()

    async def stop(self) -> None:
        self.alive = False
        await self.stop_leading()
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)
        await self.ledger.close()
        await self._context.__aexit__(None, None, None)

    def reload(self, policy: str) -> None:
        self._policy_file.write_text(policy)
        self._active.look()


async def started(api: Api, name: str, policy: str, peers: list[Replica], latency: float, lag: float) -> Replica:
    replica = Replica(ReplicaClient(api, latency, lag), name, policy, peers)
    peers.append(replica)
    await replica.start()
    return replica
