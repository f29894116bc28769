"""Publishes the active policy in a ConfigMap, and writes events on the policy file's ConfigMap if it was not taken."""

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from webhook.config.active_policy import ActivePolicy
from webhook.config.errors import ConfigError
from webhook.config.published import Published, active_map_of
from webhook.controllers.backstop_writer import Rounds
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.kube.client import METADATA, RFC_3339, Client, path
from webhook.kube.errors import ApiError, NotFound

log = logging.getLogger(__name__)

LOOK_FOR_MAP = 10.0
"""Seconds between two checks whether the policy file's ConfigMap still exists."""
STALE = 30.0
"""Seconds after which the policy and its event are written again. Somebody may have changed it, and events expire."""
NOT_TAKEN, TAKEN = "PolicyNotTaken", "PolicyTaken"


class PolicyMap(msgspec.Struct, frozen=True):
    """The ConfigMap of the policy file. The active policy is published in a second one."""

    namespace: str
    name: str

    @property
    def place(self) -> str:
        """The path of the policy file's ConfigMap."""
        return path("v1", "configmaps", self.namespace, self.name)

    @property
    def published(self) -> str:
        """The path of the ConfigMap with the active policy."""
        return path("v1", "configmaps", self.namespace, active_map_of(self.name))


async def last_published(client: Client, policy: PolicyMap) -> str:
    """Return the policy text that was published last; "" if there is none, or it can't be read."""
    try:
        found = Published.read(await client.get(policy.published))
    except ApiError as error:
        log.warning("active policy not read: a broken policy file would end this start", {"error": str(error)})
        return ""
    return found.text if found else ""


async def tell_of_no_policy(client: Client, policy: PolicyMap, problem: ConfigError) -> None:
    """Write the event of a start that fails, because the file is broken and no policy was published before."""
    events = EventWriter(client)
    said = f"The policy file was not taken, and no policy is active: {'; '.join(problem.problems)}"
    events.add(await _regarding(client, policy), NOT_TAKEN, said)
    await events.write_next()


async def _regarding(client: Client, policy: PolicyMap) -> Regarding:
    """Return the policy file's ConfigMap, with the uid by which kubectl describe finds its events."""
    try:
        metadata = (await client.get(policy.place, accept=METADATA))["metadata"]
    except ApiError:
        metadata = {}
    return Regarding("v1", "ConfigMap", policy.name, str(metadata.get("uid") or ""), policy.namespace)


@dataclass(eq=False)
class PolicyPublisher(Rounds):
    """Writes the active policy while this replica leads, into a ConfigMap that the chart creates."""

    interval = 0.5
    recheck = 2.0
    """The file may have been read again by then, or this replica may lead."""

    client: Client
    active: ActivePolicy
    map: PolicyMap
    events: EventWriter
    _written: Published | None = None
    _stale_at: float = 0.0
    _look_at: float = 0.0
    _failing: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.active.subscribe(self.wake)

    async def _round(self) -> None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_FOR_MAP
            with suppress(ApiError):  # the last known source problem stays
                await self._look_for_map()
        if not self.leading():
            self._written = None
            return
        try:
            before = self._written or Published.read(await self.client.get(self.map.published))
            wanted = self._wanted(before)
            if wanted == self._written and time.monotonic() < self._stale_at:
                return
            await self.client.patch(self.map.published, {"data": wanted.data()})
        except ApiError as error:
            if str(error) != self._failing:
                log.warning("active policy not published", {"place": self.map.published, "error": str(error)})
            self._failing = str(error)
            return
        self._written, self._failing = wanted, ""
        self._stale_at = time.monotonic() + STALE
        if wanted.problem:
            said = f"The policy file was not taken, and the policy of {wanted.since} stays active"
            if self.active.taken:
                said = f"The policy of {wanted.since} is active, but not as it should be"
            self.events.add(await _regarding(self.client, self.map), NOT_TAKEN, f"{said}: {wanted.problem}")
        elif before and before.problem:
            self.events.add(await _regarding(self.client, self.map), TAKEN, "The policy file is active again.")

    async def _look_for_map(self) -> None:
        """Look whether the policy file's ConfigMap was deleted, because a mounted copy of it stays.

        If the second ConfigMap does not exist either, there never was one.
        """
        is_lost = not await self._is_there(self.map.place) and await self._is_there(self.map.published)
        place = f"{self.map.namespace}/{self.map.name}"
        self.active.lost_source = f"ConfigMap {place} does not exist, so no new replica can start" if is_lost else ""

    async def _is_there(self, place: str) -> bool:
        try:
            await self.client.get(place, accept=METADATA)
        except NotFound:
            return False
        return True

    def _wanted(self, before: Published | None) -> Published:
        """Return the policy to publish. An unchanged policy keeps its time, whichever process published it."""
        now = self.active
        since = datetime.fromtimestamp(now.since, UTC).strftime(RFC_3339)
        same = before is not None and before.digest == now.digest and before.since
        return Published(now.text, now.digest, same or since, now.problem)
