"""Keeps the ResourceQuotas of tenants that ask for a backstop: made, brought into step, and removed.

One is ours if it bears our labels and its controller is a TenantQuota; any other is left alone, whatever its name is.
Where a TenantQuota itself is deleted, Kubernetes' garbage collection removes them as well.
"""

import time
from collections.abc import Callable, Iterator, Mapping

import msgspec
import structlog

from webhook.cluster.live import LiveCluster
from webhook.controller.event_series import Regarding
from webhook.controller.event_writer import EventWriter
from webhook.controller.rendered_quotas import (
    SELECTOR,
    Place,
    RenderedFor,
    Tree,
    manifest,
    place_of,
    problem_of_writing,
    rendered_for,
)
from webhook.controller.rounds import Rounds
from webhook.kube.client import Client
from webhook.kube.errors import ApiError
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.policy.quota.backstop import backstop
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import TierPolicy

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between two rounds at least."""
RECHECK = 10.0
"""Seconds after which what is stored is read again: somebody may have changed it, or a write may work now."""
REASON = "BackstopNotRendered"


class BackstopWriter:
    """`wake` it where the policy changes; changes in the cluster wake it by themselves. Run `run` as a task.

    `enforced` tells whether quotas are enforced in a namespace: elsewhere none are rendered. `leading`: whether this
    replica is the one that writes.
    """

    def __init__(
        self,
        client: Client,
        cluster: LiveCluster,
        policy: Callable[[], TierPolicy],
        enforced: Callable[[Namespace], bool],
        leading: Callable[[], bool],
        events: EventWriter,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._policy = policy
        self._enforced = enforced
        self._leading = leading
        self._events = events
        self._rounds = Rounds(INTERVAL, RECHECK)
        self._done: Mapping[Place, Tree] | None = None
        self._stale_at = 0.0
        self._failing: dict[RenderedFor | None, str] = {}
        cluster.subscribe(self.wake)

    def wake(self) -> None:
        """Something has changed."""
        self._rounds.wake()

    async def run(self) -> None:
        """Write for ever, once everything has been read."""
        await self._cluster.wait_synced()
        await self._rounds.run(self._round)

    async def _round(self) -> None:
        """While what is wanted stays, nothing is asked for but every now and then."""
        if not self._leading():
            return
        wanted = dict(self._wanted())
        at_rest = not wanted and not self._failing
        if wanted == self._done and (at_rest or time.monotonic() < self._stale_at):
            return
        before, self._failing = self._failing, {}
        try:
            await self._bring_about(wanted, await self._rendered())
        except ApiError as error:
            self._failing[None] = f"ResourceQuotas can't be listed: {error}"
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
        unread = {each.name for each in self._cluster.tenant_quotas() if each.tenant is None}
        found: dict[Place, Tree] = {}
        pages = self._client.list_pages(path("v1", "resourcequotas"), {"labelSelector": SELECTOR})
        async for raw in listed_objects(pages):
            tree = msgspec.json.decode(raw)
            owner = rendered_for(tree)
            if owner is not None and owner.name not in unread:
                found[place_of(tree)] = tree
        return found

    async def _bring_about(self, wanted: Mapping[Place, Tree], there: Mapping[Place, Tree]) -> None:
        for place in there.keys() - wanted.keys():
            await self._written(place, there[place], None)
        for place, tree in wanted.items():
            await self._written(place, there.get(place), tree)

    async def _written(self, place: Place, there: Tree | None, wanted: Tree | None) -> None:
        sentence = await problem_of_writing(self._client, place, there, wanted)
        if sentence is not None:
            self._failing[rendered_for(wanted or there or {})] = sentence

    def _tell(self, before: Mapping[RenderedFor | None, str]) -> None:
        for owner, sentence in self._failing.items():
            if before.get(owner) != sentence:
                log.warning("backstop not rendered", tenant=owner.name if owner else "", error=sentence)
            if owner is not None:
                about = Regarding.tenant_quota(owner.name, owner.uid)
                self._events.add(about, REASON, sentence)
