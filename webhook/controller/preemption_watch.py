"""Follows the scheduler's preemptions: who was evicted for whom, and whether that saved.

The scheduler writes an event Preempted on the victim, with the uid of the pod or PodGroup that takes its place in the
message (pkg/scheduler/framework/preemption/executor.go in kubernetes).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import msgspec
import structlog

from webhook.cluster.ending_pod import end_of
from webhook.controller.victim_outcome import victim_outcome
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.ledger.protocol import Holding
from webhook.objects.pods import OwnerReference, Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Refused
from webhook.objects.view import View, read, view
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.checkpoint.outcome import Outcome
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.readmodel.preemptions import PodShown, Preemption, preemption_of

log = structlog.get_logger(__name__)

_BY = re.compile(r"Preempted by pod (?P<uid>\S+) on node ")
READ_AT_ONCE = 10
"""Victims that are read at a time: at once after their eviction, as long as they are there."""
UNDER_WAY = 200
"""Victims whose end is waited for at a time; a watch each. Of those beyond it may be gone before it is their turn."""
_PREEMPTED = Source(
    path("v1", "events"),
    {"fieldSelector": "reason=Preempted,involvedObject.kind=Pod", "timeoutSeconds": "120"},
    key="uid",
)
"""Of Events there are no bookmarks, for the API server has no watch cache of them. So it is asked to end the watch
before its silence is taken for death."""


class _Reference(View, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Event(View, frozen=True):
    involved_object: _Reference = _Reference()
    event_time: str | None = None
    last_timestamp: str | None = None
    message: str = ""

    @property
    def time(self) -> str:
        """When it happened, in RFC 3339."""
        return self.event_time or self.last_timestamp or ""


Told = Callable[[Preemption, OwnerReference], Awaitable[None]]
"""Is handed a preemption that has come to its end, and what the victim is of: its controller, else itself."""


class PreemptionWatch:
    """Run `run` as a task. `tenant_name` tells whose a namespace is, `policy` gives the one in force.

    `last_held` tells by uid what a pod holds or has held; of one that holds no GPUs nobody knows more.
    Only while it is `leading` this process follows victims.
    """

    def __init__(
        self,
        client: Client,
        tenant_name: Callable[[str], str | None],
        policy: Callable[[], TierPolicy],
        last_held: Callable[[str], Holding | None],
        leading: Callable[[], bool],
        told: Told,
    ) -> None:
        self._client = client
        self._tenant_name = tenant_name
        self._policy = policy
        self._last_held = last_held
        self._told = told
        self._leading = leading
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._turns = asyncio.Semaphore(UNDER_WAY)
        self._begun: set[str] = set()

    async def run(self) -> None:
        """Follow them for ever."""
        async with asyncio.TaskGroup() as victims:

            def changed(uid: str, event: _Event | None) -> None:
                if event is None:
                    self._begun.discard(uid)
                elif uid not in self._begun:
                    self._begun.add(uid)
                    victims.create_task(self._followed(event))

            def listed(found: Mapping[str, _Event]) -> None:
                self._begun &= found.keys()
                for uid, event in found.items():
                    changed(uid, event)

            await Reflector(self._client, _PREEMPTED, _event, changed, listed).run()

    async def _followed(self, event: _Event) -> None:
        try:
            if self._leading():
                await self._follow(event)
        except (ApiError, Refused) as error:
            log.warning("preemption not followed", pod=event.involved_object.name, error=str(error))
        except Exception:
            log.exception("preemption not followed", pod=event.involved_object.name)

    async def _follow(self, event: _Event) -> None:
        """Wait for the victim's end. Of one that is gone already no more is known than what it held.

        A pod without a tier and GPUs is nobody's concern.
        """
        who = event.involved_object
        named = _BY.match(event.message)
        preemptor = self._known(named["uid"]) if named else None
        itself = OwnerReference(api_version="v1", kind="Pod", name=who.name, uid=who.uid)
        async with self._reading:
            pod = await self._pod(who)
        victim = self._shown(pod) if pod else self._known(who.uid)
        if victim is None or not (victim.tier or victim.gpus != "0"):
            return
        node = event.message.rpartition(" on node ")[2]
        if pod is None:
            await self._told(preemption_of(event.time, node, victim, preemptor, Outcome("unknown"), None), itself)
            return
        async with self._turns:
            end = await end_of(self._client, who.namespace, who.name, who.uid)
        outcome = await victim_outcome(self._client, pod, end, self._policy())
        told = preemption_of(event.time, node, victim, preemptor, outcome, _seconds_since(event.time))
        await self._told(told, pod.metadata.controller or itself)

    async def _pod(self, reference: _Reference) -> Pod | None:
        """The pod, if it still exists."""
        try:
            found = view(await self._client.get(path("v1", "pods", reference.namespace, reference.name)), Pod)
        except NotFound:
            return None
        return found if found.metadata.uid == reference.uid else None

    def _known(self, uid: str) -> PodShown | None:
        found = self._last_held(uid)
        if found is None:
            return None
        tenant = self._tenant_name(found.namespace) or ""
        gpus = written(found.charge.gpus)
        return PodShown(found.namespace, found.name, uid, tier=found.charge.tier or "", tenant=tenant, gpus=gpus)

    def _shown(self, pod: Pod) -> PodShown:
        metadata = pod.metadata
        return PodShown(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            tier=metadata.labels.get(TIER_LABEL, ""),
            tenant=self._tenant_name(metadata.namespace) or "",
            gpus=written(demand_of(pod, (), self._policy())),
        )


def _seconds_since(time: str) -> float | None:
    """From then till now; None where that is no time. Another machine's clock may be ahead of ours."""
    try:
        began = datetime.fromisoformat(time)
    except ValueError:
        return None
    return max(round((datetime.now(UTC) - began).total_seconds(), 1), 0.0) if began.tzinfo else None


async def _event(raw: msgspec.Raw) -> _Event:
    return read(raw, _Event)
