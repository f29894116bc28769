"""Keeps what the API server itself holds tenants to: the ResourceQuotas of a backstop, and the ceilings of tenants.

A ResourceQuota is ours if it bears our labels and its controller is a TenantQuota; any other is left alone, whatever
its name is. Where a TenantQuota itself is deleted, Kubernetes' garbage collection removes them as well.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from webhook.cluster.watched import Watched
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.rendered_quotas import (
    SELECTOR,
    Place,
    RenderedFor,
    manifest,
    place_of,
    problem_of_writing,
    rendered_for,
)
from webhook.kube.client import Client
from webhook.kube.errors import ApiError
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.view import Tree
from webhook.policy.quota.native_quotas import backstop, ceilings
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import TierPolicy

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two rounds at least."""
RECHECK = 10.0
"""Seconds after which what is stored is read again: somebody may have changed it, or a write may work now."""
REASON = "BackstopNotRendered"

CEILINGS_INTERVAL = 0.2
"""Seconds between two rounds at least."""
CEILINGS_RECHECK = 1.0
"""Seconds after which a round comes unasked: this replica may lead now, or a write may work."""
CEILINGS_STALE = 30.0
"""Seconds after which they are written again: somebody may have changed them."""


class Rounds(ABC):
    """Does something again whenever the cluster changes, not too often, and now and then unasked.

    Changes in the cluster wake it by themselves; `wake` it where something else changes. Run `run` as a task.

    `interval`: seconds between two rounds at least. `recheck`: after so many one comes unasked.
    """

    def __init__(self, cluster: Watched, interval: float, recheck: float) -> None:
        self._cluster = cluster
        self._interval = interval
        self._recheck = recheck
        self._woken = asyncio.Event()
        cluster.subscribe(self.wake)

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """For ever, once everything has been read."""
        await self._cluster.wait_synced()
        while True:
            self._woken.clear()
            await self._round()
            await asyncio.sleep(self._interval)
            try:
                await asyncio.wait_for(self._woken.wait(), self._recheck)
            except TimeoutError:
                continue

    @abstractmethod
    async def _round(self) -> None: ...


class BackstopWriter(Rounds):
    """Writes the ResourceQuotas. `enforced` tells whether quotas are enforced in a namespace: elsewhere none are.

    `leading`: whether this replica is the one that writes.
    """

    def __init__(
        self,
        client: Client,
        cluster: Watched,
        policy: Callable[[], TierPolicy],
        enforced: Callable[[Namespace], bool],
        leading: Callable[[], bool],
        events: EventWriter,
    ) -> None:
        super().__init__(cluster, INTERVAL, RECHECK)
        self._client = client
        self._policy = policy
        self._leading = leading
        self._enforced = enforced
        self._events = events
        self._done: Mapping[Place, Tree] | None = None
        self._stale_at = 0.0
        self._failing: set[tuple[RenderedFor | None, str]] = set()

    async def _round(self) -> None:
        """While what is wanted stays, nothing is asked for but every now and then."""
        if not self._leading():
            return
        wanted = dict(self._wanted())
        at_rest = not wanted and not self._failing
        if wanted == self._done and (at_rest or time.monotonic() < self._stale_at):
            return
        before, self._failing = self._failing, set()
        try:
            there = await self._rendered()
            for place in there.keys() - wanted.keys():
                await self._written(place, there[place], None)
            for place, tree in wanted.items():
                await self._written(place, there.get(place), tree)
        except ApiError as error:
            self._failing.add((None, f"ResourceQuotas can't be listed: {error}"))
        self._done = wanted
        self._stale_at = time.monotonic() + RECHECK
        self._tell(before)

    def _wanted(self) -> Iterator[tuple[Place, Tree]]:
        policy = self._policy()
        specs = {
            each.name: (RenderedFor(each.name, each.uid), backstop(each.tenant, policy))
            for each in self._cluster.tenant_quotas()
            if each.tenant and each.tenant.backstop
        }
        for namespace in self._cluster.namespaces() if specs else ():
            found = specs.get(self._cluster.tenant_name(namespace.name) or "")
            if found is not None and self._enforced(namespace):
                owner, quotas = found
                for name, spec in quotas.items():
                    place = Place(namespace.name, name)
                    yield place, manifest(place, owner, spec)

    async def _rendered(self) -> dict[Place, Tree]:
        """Ours as they are stored; but those of a TenantQuota that can't be read stay as they are."""
        broken = {each.name for each in self._cluster.tenant_quotas() if each.tenant is None}
        found: dict[Place, Tree] = {}
        pages = self._client.list_pages(path("v1", "resourcequotas"), {"labelSelector": SELECTOR})
        async for raw in listed_objects(pages):
            tree = msgspec.json.decode(raw)
            owner = rendered_for(tree)
            if owner is not None and owner.name not in broken:
                found[place_of(tree)] = tree
        return found

    async def _written(self, place: Place, there: Tree | None, wanted: Tree | None) -> None:
        sentence = await problem_of_writing(self._client, place, there, wanted)
        if sentence is not None:
            self._failing.add((rendered_for(wanted or there or {}), sentence))

    def _tell(self, before: Collection[tuple[RenderedFor | None, str]]) -> None:
        for owner, sentence in self._failing:
            if (owner, sentence) not in before:
                log.warning("backstop not rendered", {"tenant": owner.name if owner else "", "error": sentence})
            if owner is not None:  # told again and again: an event that nobody renews is gone after an hour
                about = Regarding.tenant_quota(owner.name, owner.uid)
                self._events.add(about, REASON, sentence)


class CeilingsWriter(Rounds):
    """Writes the ceilings of tenants into the ConfigMap of a ValidatingAdmissionPolicy, which is there already.

    `place` is its path. `leading`: whether this replica writes it.
    """

    def __init__(
        self,
        client: Client,
        cluster: Watched,
        policy: Callable[[], TierPolicy],
        leading: Callable[[], bool],
        place: str,
    ) -> None:
        super().__init__(cluster, CEILINGS_INTERVAL, CEILINGS_RECHECK)
        self._client = client
        self._policy = policy
        self._leading = leading
        self._place = place
        self._written: Mapping[str, str] = {}
        self._stale_at = 0.0
        self._problem = ""

    async def _round(self) -> None:
        if not self._leading():
            self._written = {}
            return
        wanted = ceilings(self._cluster.tenants(), self._policy().tiers, self._cluster.classes().values())
        if wanted == self._written and time.monotonic() < self._stale_at:
            return
        try:
            await self._client.patch(self._place, {"data": wanted})
        except ApiError as error:
            self._tell(str(error))
            return
        self._written, self._problem = wanted, ""
        self._stale_at = time.monotonic() + CEILINGS_STALE

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            log.error(
                "ceilings not written: the API server holds those written last",
                {"place": self._place, "error": problem},
            )
        self._problem = problem
