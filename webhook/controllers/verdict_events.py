"""Writes events about refusals, preemptions and changed requests on the outermost workload, where users look.

A refusal for quota is written on the TenantQuota too. Kubernetes' own controllers report a refused pod only on its
controller (FailedCreate), and a refused update nowhere. Warnings of an admitted object reach only its sender. Mistakes
in the labels of a namespace are written as events in that namespace, for the same reason.
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
"""Most notices whose owners have not been looked up yet. Those beyond them are dropped."""


Outermost = Callable[[str, OwnerReference], Awaitable[OwnerReference | None]]
"""Finds the outermost owner above a controller in a namespace."""


EventReason = Literal["OverQuota", "Refused", "UpdateRefused", "Demoted", "GuessTooWeak"]


class Notice(msgspec.Struct, frozen=True):
    """A report of a verdict on an object of that kind.

    `existing` is the object, unless its create was refused, and `controller` its controller. `over_quota_of` names the
    tenant that has no room for it in its quota.
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
    """Writes notices as events. `tell` never waits; run `run` as a task and cancel it.

    `outermost` finds the outermost owner above a controller in a namespace, and `tenant_uid` a TenantQuota's UID.
    """

    writer: EventWriter
    outermost: Outermost
    tenant_uid: Callable[[str], str | None]
    notices: asyncio.Queue[Notice] = msgspec.field(default_factory=lambda: asyncio.Queue(MOST_WAITING))

    def tell(self, notice: Notice) -> None:
        with suppress(asyncio.QueueFull):
            self.notices.put_nowait(notice)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.writer.run())
            tasks.create_task(self._look_up())

    async def _look_up(self) -> None:
        while True:
            notice = await self.notices.get()
            try:
                await self._add(notice)
            except Exception:
                log.exception("notice not told")

    async def _add(self, notice: Notice) -> None:
        # The outermost owner, or the object itself if it exists. An owner that can't be read gets no event.
        workload = notice.existing
        if notice.controller is not None:
            with suppress(Unreadable):
                workload = await self.outermost(notice.namespace, notice.controller) or notice.existing
        # the controller of a refused pod reports that itself
        is_reported = notice.kind == "Pod" and notice.existing is None and workload == notice.controller
        if workload and not is_reported:
            # a pod of it may be refused an update too
            of_another = notice.reason == "UpdateRefused" and workload != notice.existing
            message = f"{notice.kind}/{notice.name}: {notice.sentence}" if of_another else notice.sentence
            self.writer.add(Regarding.of(workload, notice.namespace), notice.reason, message)
        tenant = notice.over_quota_of
        uid = self.tenant_uid(tenant) if tenant else None
        if tenant and uid:
            named = workload or notice
            message = f"{named.kind}/{named.name} in {notice.namespace}: {notice.sentence}"
            self.writer.add(Regarding.tenant_quota(tenant, uid), "OverQuota", message)


class PreemptionRecorder(msgspec.Struct, frozen=True):
    """Records each preemption, and passes it to `count`.

    `outermost` finds the outermost owner above a pod's controller in a namespace.
    """

    latest: deque[Preemption]  # the latest first
    count: Callable[[Preemption], None]
    writer: EventWriter
    outermost: Outermost

    async def __call__(self, preemption: Preemption, of: OwnerReference) -> None:
        """Record a preemption, count it, and write an event on its workload. Return once that is written."""
        victim = preemption.victim
        self.latest.appendleft(preemption)
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
    """Writes an event for each mistake in the labels of a namespace, once."""

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
