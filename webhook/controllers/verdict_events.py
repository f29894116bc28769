"""Says what was refused, preempted, or let in otherwise than it asked, where people look: on the outermost workload.

And on the TenantQuota that has no room. Kubernetes' own controllers tell of a refused pod on what made it
(FailedCreate), and nobody of a refused update; the warnings of what is let in are read by whoever sent it alone.
What the labels of a namespace say wrongly stands in its own events, for the same reason.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from webhook.controllers.backstop_writer import Rounds
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.metadata_keys import namespace_warnings
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.latest import EVENT, Preemption
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Notices whose owners have not been looked up yet; what comes beyond them is not told."""


Outermost = Callable[[str, OwnerReference], Awaitable[OwnerReference | None]]
"""Finds the last of the owners above a controller in a namespace."""


EventReason = Literal["OverQuota", "Refused", "UpdateRefused", "Demoted", "GuessTooWeak"]


class Notice(msgspec.Struct, frozen=True):
    """What a person should know of a verdict on an object of that kind.

    `existing` is the object, unless its create was refused, and `controller` what made it. `over_quota_of` names the
    tenant whose quota has no room for it.
    """

    reason: EventReason
    kind: str
    namespace: str
    name: str
    sentence: str
    controller: OwnerReference | None = None
    existing: OwnerReference | None = None
    over_quota_of: str | None = None


class VerdictEvents(msgspec.Struct, frozen=True):
    """`tell` it what there is to know, which never waits; run `run` as a task and cancel it.

    `outermost` finds the last of the owners above a controller in a namespace, `tenant_uid` a TenantQuota's UID.
    """

    writer: EventWriter
    outermost: Outermost
    tenant_uid: Callable[[str], str | None]
    told: asyncio.Queue[Notice] = msgspec.field(default_factory=lambda: asyncio.Queue(MOST_WAITING))

    def tell(self, notice: Notice) -> None:
        with suppress(asyncio.QueueFull):
            self.told.put_nowait(notice)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.writer.run())
            tasks.create_task(self._look_up())

    async def _look_up(self) -> None:
        while True:
            notice = await self.told.get()
            try:
                await self._add(notice)
            except Exception:
                log.exception("notice not told")

    async def _add(self, notice: Notice) -> None:
        # The outermost owner, else the object itself if it exists. One that can't be read gets no event.
        workload = notice.existing
        if notice.controller is not None:
            with suppress(Unreadable):
                workload = await self.outermost(notice.namespace, notice.controller) or notice.existing
        # the controller of a pod that was refused says so itself
        told_there = notice.kind == "Pod" and notice.existing is None and workload == notice.controller
        if workload and not told_there:
            self.writer.add(Regarding.of(workload, notice.namespace), notice.reason, notice.sentence)
        tenant = notice.over_quota_of
        uid = self.tenant_uid(tenant) if tenant else None
        if tenant and uid:
            named = workload or notice
            message = f"{named.kind}/{named.name} in {notice.namespace}: {notice.sentence}"
            self.writer.add(Regarding.tenant_quota(tenant, uid), notice.reason, message)


class PreemptionRecorder(msgspec.Struct, frozen=True):
    """Told of each preemption, and hands it on to `count`.

    `outermost` finds the last of the owners above a pod's controller in a namespace.
    """

    kept: deque[Preemption]  # the latest first
    count: Callable[[Preemption], None]
    writer: EventWriter
    outermost: Outermost

    async def __call__(self, preemption: Preemption, of: OwnerReference) -> None:
        """Keep it, count it, and say so on the workload; returns once that is written."""
        victim = preemption.victim
        self.kept.appendleft(preemption)
        log.info("preempted", {"outcome": preemption.saved, "message": preemption.sentence})
        self.count(preemption)
        try:
            workload = await self.outermost(victim.namespace, of) or of
        except Unreadable:
            workload = of
        about = Regarding.of(workload, victim.namespace)
        related = Regarding("v1", "Pod", victim.name, victim.uid, victim.namespace)
        self.writer.add(about, EVENT, preemption.sentence, related)
        await self.writer.written(about, EVENT, related)


NAMESPACE_LABEL = "NamespaceLabel"


@dataclass(eq=False)
class NamespaceEvents(Rounds):
    """Tells of each mistake in the labels of a namespace once."""

    interval = 5.0
    recheck = 60.0
    """This replica may lead then."""

    policy: Callable[[], TierPolicy]
    events: EventWriter
    _told: Mapping[str, str] = field(default_factory=dict)

    async def _round(self) -> None:
        if not self.leading():
            return
        policy, tenants = self.policy(), self.cluster.tenants()
        found: dict[str, str] = {}
        for each in self.cluster.namespaces():
            problems = "; ".join(map(sentence, namespace_warnings(each.labels, policy, tenants)))
            if problems and problems != self._told.get(each.name):
                self.events.add(Regarding("v1", "Namespace", each.name, each.uid, each.name), NAMESPACE_LABEL, problems)
            found |= {each.name: problems} if problems else {}
        self._told = found
