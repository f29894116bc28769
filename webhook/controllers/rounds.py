"""Rounds of the leader that follow changes in the cluster: the active policy, the ceilings, and labels of namespaces.

The active policy is published in a ConfigMap, and events on the policy file's ConfigMap say if it was not taken.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from webhook.cluster.watched import Watched
from webhook.config.active_policy import ActivePolicy
from webhook.config.errors import ConfigError
from webhook.config.published import Published, active_map_of
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.kube.client import METADATA, Client, path
from webhook.kube.errors import ApiError, NotFound
from webhook.objects.times import rfc3339
from webhook.policy.metadata_keys import namespace_warnings
from webhook.policy.quota.native_quotas import ceilings
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Rounds(ABC):
    """Runs a round after changes in the cluster, and now and then without a change. Run `run` as a task.

    Call `wake` when something outside the cluster changes. `leading` tells whether this replica leads.
    """

    interval: ClassVar[float]
    """Least seconds between two rounds."""
    recheck: ClassVar[float]
    """Seconds after `interval` at which a round runs without a change."""

    cluster: Watched
    leading: Callable[[], bool]

    def __post_init__(self) -> None:
        self._woken = asyncio.Event()
        self.cluster.subscribe(self.wake)

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Run rounds for ever, once everything has been read."""
        await self.cluster.wait_synced()
        while True:
            self._woken.clear()
            await self._round()
            await asyncio.sleep(self.interval)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self.recheck)

    @abstractmethod
    async def _round(self) -> None: ...


LOOK_FOR_MAP = 10.0
"""Seconds between two checks whether the policy file's ConfigMap still exists."""
STALE = 30.0
"""Seconds after which a ConfigMap and its event are written again. Somebody may have changed it, and events expire."""
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
            # A mounted copy of the policy file's ConfigMap stays when that is deleted. If the second ConfigMap does not
            # exist either, there never was one.
            with suppress(ApiError):  # the last known source problem stays
                is_lost = not await self._is_there(self.map.place) and await self._is_there(self.map.published)
                place = f"{self.map.namespace}/{self.map.name}"
                lost = f"ConfigMap {place} does not exist, so no new replica can start"
                self.active.lost_source = lost if is_lost else ""
        if not self.leading():
            self._written = None
            return
        try:
            before = self._written or Published.read(await self.client.get(self.map.published))
            now, since = self.active, rfc3339(self.active.since)
            # An unchanged policy keeps its time, whichever process published it.
            same = before.since if before and before.digest == now.digest else ""
            wanted = Published(now.text, now.digest, same or since, now.problem)
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

    async def _is_there(self, place: str) -> bool:
        try:
            await self.client.get(place, accept=METADATA)
        except NotFound:
            return False
        return True


@dataclass(eq=False)
class CeilingsWriter(Rounds):
    """Writes the ceilings of tenants into the existing ConfigMap of a ValidatingAdmissionPolicy, at path `place`."""

    interval = 0.2
    recheck = 1.0
    """This replica may lead by then, or a write may work."""

    client: Client
    policy: Callable[[], TierPolicy]
    place: str
    _written: Mapping[str, str] = field(default_factory=dict)
    _stale_at: float = 0.0
    _problem: str = ""

    async def _round(self) -> None:
        if not self.leading():
            self._written = {}
            return
        wanted = ceilings(self.cluster.tenants(), self.policy().tiers, self.cluster.classes().values())
        if wanted == self._written and time.monotonic() < self._stale_at:
            return
        try:
            await self.client.patch(self.place, {"data": wanted})
        except ApiError as error:
            if str(error) != self._problem:
                about = {"place": self.place, "error": str(error)}
                log.error("ceilings not written: the API server holds those written last", about)  # noqa: TRY400
            self._problem = str(error)
            return
        self._written, self._problem = wanted, ""
        self._stale_at = time.monotonic() + STALE


NAMESPACE_LABEL = "NamespaceLabel"


@dataclass(eq=False)
class NamespaceEvents(Rounds):
    """Writes an event for each mistake in the labels of a namespace, once, because only its author gets warnings."""

    interval = 5.0
    recheck = 60.0
    """This replica may lead by then."""

    policy: Callable[[], TierPolicy]
    events: EventWriter
    _reported: Mapping[str, str] = field(default_factory=dict)

    async def _round(self) -> None:
        if not self.leading():
            return
        policy, tenants = self.policy(), self.cluster.tenants()
        found: dict[str, str] = {}
        for each in self.cluster.namespaces():
            problems = "; ".join(map(sentence, namespace_warnings(each.labels, policy, tenants)))
            if problems and problems != self._reported.get(each.name):
                self.events.add(Regarding("v1", "Namespace", each.name, each.uid, each.name), NAMESPACE_LABEL, problems)
            found |= {each.name: problems} if problems else {}
        self._reported = found
