"""Publishes the policy in force beside the policy file's ConfigMap, and tells on that of a file that was not taken."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from webhook.cluster.watched import Watched
from webhook.config.errors import ConfigError
from webhook.config.in_force import PolicyInForce
from webhook.config.published import Published, place_beside
from webhook.controllers.backstop_writer import Rounds
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.kube.client import METADATA, Client
from webhook.kube.errors import ApiError, NotFound
from webhook.kube.paths import path
from webhook.kube.wire import RFC_3339

log = logging.getLogger(__name__)

INTERVAL = 0.5
"""Seconds between two rounds at least."""
RECHECK = 2.0
"""Seconds after which a round comes unasked: the file may have been looked at, or this replica may lead now."""
LOOK_FOR_MAP = 10.0
"""Seconds between two looks whether the policy file's ConfigMap is there still."""
STALE = 30.0
"""Seconds after which it is written and told again: somebody may have changed it, and events end after an hour."""
NOT_TAKEN, TAKEN = "PolicyNotTaken", "PolicyTaken"


class PolicyMap(msgspec.Struct, frozen=True):
    """The ConfigMap that the policy file comes from, and its neighbour with the policy in force."""

    namespace: str
    name: str

    @property
    def place(self) -> str:
        """Its path."""
        return path("v1", "configmaps", self.namespace, self.name)

    @property
    def published(self) -> str:
        """The path of its neighbour."""
        return path("v1", "configmaps", self.namespace, place_beside(self.name))


async def last_published(client: Client, policy: PolicyMap) -> str:
    """The text that was published last; "" where there is none, or it can't be read."""
    try:
        found = Published.read(await client.get(policy.published))
    except ApiError as error:
        log.warning("policy in force not read: a broken policy file would end this start", {"error": str(error)})
        return ""
    return found.text if found else ""


async def tell_of_no_policy(client: Client, policy: PolicyMap, problem: ConfigError) -> None:
    """The event of a start that ends: the file is broken, and nothing was published to go on with."""
    events = EventWriter(client)
    said = f"The policy file was not taken, and no policy is in force: {'; '.join(problem.problems)}"
    events.add(await _regarding(client, policy), NOT_TAKEN, said)
    await events.write_next()


async def _regarding(client: Client, policy: PolicyMap) -> Regarding:
    """The policy file's ConfigMap; kubectl describe finds its events by the uid."""
    try:
        metadata = (await client.get(policy.place, accept=METADATA))["metadata"]
    except ApiError:
        metadata = {}
    return Regarding("v1", "ConfigMap", policy.name, str(metadata.get("uid") or ""), policy.namespace)


class PolicyPublisher(Rounds):
    """Writes what is in force while this replica leads. The ConfigMap is there already: the chart makes it."""

    def __init__(
        self,
        client: Client,
        cluster: Watched,
        in_force: PolicyInForce,
        leading: Callable[[], bool],
        policy: PolicyMap,
        events: EventWriter,
    ) -> None:
        super().__init__(cluster, INTERVAL, RECHECK)
        self._client = client
        self._in_force = in_force
        self._leading = leading
        self._map = policy
        self._events = events
        self._written: Published | None = None
        self._stale_at = self._look_at = 0.0
        self._failing = ""
        in_force.subscribe(self.wake)

    async def _round(self) -> None:
        if time.monotonic() >= self._look_at:
            await self._look_for_map()
        if not self._leading():
            self._written = None
            return
        try:
            before = self._written or Published.read(await self._client.get(self._map.published))
            wanted = self._wanted(before)
            if wanted == self._written and time.monotonic() < self._stale_at:
                return
            await self._client.patch(self._map.published, {"data": wanted.data()})
        except ApiError as error:
            self._complain(str(error))
            return
        self._written, self._failing = wanted, ""
        self._stale_at = time.monotonic() + STALE
        if wanted.problem:
            self._events.add(await _regarding(self._client, self._map), NOT_TAKEN, self._said(wanted))
        elif before and before.problem:
            self._events.add(await _regarding(self._client, self._map), TAKEN, "The policy file is in force again.")

    async def _look_for_map(self) -> None:
        """What was mounted from it stays when it goes. Where there is no neighbour either, there never was one."""
        self._look_at = time.monotonic() + LOOK_FOR_MAP
        try:
            is_lost = not await self._is_there(self._map.place) and await self._is_there(self._map.published)
        except ApiError:
            return  # what was told before stays
        place = f"{self._map.namespace}/{self._map.name}"
        self._in_force.tell_source(f"ConfigMap {place} does not exist, so no new replica can start" if is_lost else "")

    async def _is_there(self, place: str) -> bool:
        try:
            await self._client.get(place, accept=METADATA)
        except NotFound:
            return False
        return True

    def _said(self, found: Published) -> str:
        """What the event says."""
        if self._in_force.taken:
            return f"The policy of {found.since} is in force, but not as it should be: {found.problem}"
        return f"The policy file was not taken, and the policy of {found.since} stays in force: {found.problem}"

    def _wanted(self, before: Published | None) -> Published:
        """A policy that another replica, or this one before a restart, has published keeps its time."""
        now = self._in_force
        since = datetime.fromtimestamp(now.since, UTC).strftime(RFC_3339)
        same = before is not None and before.digest == now.digest and before.since
        return Published(now.text, now.digest, same or since, now.problem)

    def _complain(self, problem: str) -> None:
        if problem != self._failing:
            log.warning("policy in force not published", {"place": self._map.published, "error": problem})
        self._failing = problem
