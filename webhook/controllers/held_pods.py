"""Says on pods that wait for their turn what they wait for, and once on the workload, where people look.

The API server writes into the condition PodScheduled of such a pod that gates block it, and names no cause. The message
may be another; the reason stays, for autoscalers know it and buy no nodes. Each message costs a write, so that only the
first pod of what waits as one gets one, and it is not kept up to date: TenantQuotas have the line as it is.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice

import msgspec

from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.verdict_events import Outermost
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.kube.paths import path
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.line_entry import InLine
from webhook.objects.phrase import Phrase
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import together
from webhook.policy.quota.held import HeldLine, NoRoom, why_held
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

REASON = "Held"
MOST = 20
"""Pods of a tenant that are told at once, those whose turn comes first; the others when the line is looked at next."""
PAUSE = 0.05
"""Seconds between two of them."""
MOST_KEPT = 10_000
"""Pods and workloads that were told and are remembered."""


class ToTell(msgspec.Struct, frozen=True):
    """A pod, and what it is to be told."""

    pod: GatedPod
    sentence: str


class HeldPods:
    """`show` it each line, which never waits; run `run` as a task and cancel it."""

    def __init__(self, client: Client, events: EventWriter, outermost: Outermost, pause: float = PAUSE) -> None:
        self._client = client
        self._events = events
        self._outermost = outermost
        self._pause = pause
        self._due: dict[str, list[ToTell]] = {}
        self._woken = asyncio.Event()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._failing = False

    def show(self, tenant: str, line: HeldLine, waiting: Sequence[tuple[int, InLine]]) -> None:
        """This is a tenant's line now, and the place of each that waits."""
        untold = ((nth, each) for nth, each in waiting if not self._is_told(each.waiting.first))
        found = [ToTell(each.waiting.first, _told_at(tenant, line, nth, each)) for nth, each in islice(untold, MOST)]
        self._due[tenant] = found
        if found:
            self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            for tenant in [*self._due]:
                for each in self._due.pop(tenant, ()):
                    try:
                        await self._tell(each)
                    except Exception:
                        log.exception("held pod not told")
                    await asyncio.sleep(self._pause)

    def _is_told(self, pod: GatedPod) -> bool:
        return pod.uid in self._told or pod.holding.gated is None or pod.holding.gated.told

    async def _tell(self, each: ToTell) -> None:
        """What has changed meanwhile is looked at again with the next line."""
        holding = each.pod.holding
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": each.sentence}
        at = {"uid": each.pod.uid, "resourceVersion": holding.gated.version if holding.gated else ""}
        where = f"{path('v1', 'pods', holding.namespace, holding.name)}/status"
        try:
            patch = {"metadata": at, "status": {"conditions": [gated]}}
            metadata = view(await self._client.patch(where, patch, strategic=True), Named).metadata
        except (Conflict, NotFound):
            return
        except ApiError as error:
            if not self._failing:
                log.warning("held pod not told", {"pod": holding.name, "error": str(error)})
            self._failing = True
            return
        self._failing = False
        self._keep(each.pod.uid)
        await self._tell_workload(metadata, each.sentence)

    async def _tell_workload(self, pod: Metadata, told: str) -> None:
        regarding = Regarding("v1", "Pod", pod.name, pod.uid, pod.namespace)
        if (controller := pod.controller) is not None:
            try:
                workload = await self._outermost(pod.namespace, controller) or controller
            except Unreadable:
                workload = controller
            regarding = Regarding.of(workload, pod.namespace)
        if regarding.kind == "Pod" or regarding.uid not in self._told:
            self._keep(regarding.uid)
            self._events.add(regarding, REASON, told)

    def _keep(self, uid: str) -> None:
        self._told[uid] = None
        if len(self._told) > MOST_KEPT:
            self._told.popitem(last=False)


def _told_at(tenant: str, line: HeldLine, nth: int, each: InLine) -> str:
    """What it waits for, and its place: places change, so that it says of when that was."""
    short = NoRoom.of(each.short) if each.short else None
    why = why_held(together(each.waiting.charges), tenant, short, line.before(nth), (nth, len(line.places)))
    return sentence(Phrase("held-when-it-came", why=why, tenant=tenant))
