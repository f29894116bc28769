"""Says what was refused where people look: on the outermost workload, and on the TenantQuota that has no room.

Kubernetes' own controllers tell of a refused pod on what made it (FailedCreate), and nobody of a refused update.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from webhook.controller.event_series import Regarding
from webhook.controller.event_writer import EventWriter
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable

log = structlog.get_logger(__name__)

MOST_WAITING = 1000
"""Refusals whose owners have not been looked up yet; what comes beyond them is not told."""


Outermost = Callable[[str, OwnerReference], Awaitable[OwnerReference | None]]
"""Finds the last of the owners above a controller in a namespace."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a review refused: a create, or an update of an object that `existing` names.

    `controller` is what made the object. `over_quota_of` names the tenant whose quota has no room for it.
    """

    kind: str
    namespace: str
    sentence: str
    controller: OwnerReference | None = None
    existing: OwnerReference | None = None
    over_quota_of: str | None = None

    @property
    def reason(self) -> str:
        """The event's reason."""
        return "OverQuota" if self.over_quota_of else "Refused"

    @property
    def told_on_controller(self) -> bool:
        """Whether the controller of what was refused says so itself."""
        return self.kind == "Pod" and self.existing is None


class RefusalEvents:
    """`tell` it of refusals, which never waits; run `run` as a task and cancel it.

    `outermost` finds the last of the owners above a controller in a namespace, `tenant_uid` a TenantQuota's UID.
    """

    def __init__(
        self,
        writer: EventWriter,
        outermost: Outermost,
        tenant_uid: Callable[[str], str | None],
    ) -> None:
        self._writer = writer
        self._outermost = outermost
        self._tenant_uid = tenant_uid
        self._told: asyncio.Queue[Refusal] = asyncio.Queue(MOST_WAITING)

    def tell(self, refusal: Refusal) -> None:
        """A review has refused it."""
        with suppress(asyncio.QueueFull):
            self._told.put_nowait(refusal)

    async def run(self) -> None:
        """Look up and write for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._writer.run())
            tasks.create_task(self._look_up())

    async def _look_up(self) -> None:
        while True:
            refusal = await self._told.get()
            try:
                await self._add(refusal)
            except Exception:
                log.exception("event writer broken")

    async def _add(self, refusal: Refusal) -> None:
        workload = await self._workload(refusal)
        if workload and not (refusal.told_on_controller and workload == refusal.controller):
            self._writer.add(Regarding.of(workload, refusal.namespace), refusal.reason, refusal.sentence)
        tenant = refusal.over_quota_of
        uid = self._tenant_uid(tenant) if tenant else None
        if tenant and uid:
            what = f"{workload.kind}/{workload.name}" if workload else refusal.kind
            message = f"{what} in {refusal.namespace}: {refusal.sentence}"
            self._writer.add(Regarding.tenant_quota(tenant, uid), refusal.reason, message)

    async def _workload(self, refusal: Refusal) -> OwnerReference | None:
        """The outermost owner, else the refused object itself if it exists. One that can't be read gets no event."""
        if refusal.controller is None:
            return refusal.existing
        try:
            return await self._outermost(refusal.namespace, refusal.controller) or refusal.existing
        except Unreadable:
            return refusal.existing
