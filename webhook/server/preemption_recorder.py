"""What comes of a preemption: a log line, metrics, and an event on the victim's workload, by whoever leads."""

import structlog

from webhook.controller.event_series import Regarding
from webhook.controller.event_writer import EventWriter
from webhook.controller.verdict_events import Outermost
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.readmodel.latest import Latest
from webhook.readmodel.preemptions import EVENT, Preemption
from webhook.server.metric_table import CHECKPOINT_SECONDS, CHECKPOINTS, PREEMPTIONS
from webhook.server.metrics import Metrics

log = structlog.get_logger(__name__)


class PreemptionRecorder:
    """Told of each preemption. `outermost` finds the last of the owners above a pod's controller in a namespace."""

    def __init__(
        self,
        kept: Latest[Preemption],
        metrics: Metrics,
        writer: EventWriter,
        outermost: Outermost,
    ) -> None:
        self._kept = kept
        self._metrics = metrics
        self._writer = writer
        self._outermost = outermost

    async def __call__(self, preemption: Preemption, of: OwnerReference) -> None:
        """Keep it, count it, and say so on the workload."""
        victim = preemption.victim
        self._kept.add(preemption)
        log.info("preempted", outcome=preemption.saved, message=preemption.sentence)
        self._count(preemption)
        try:
            workload = await self._outermost(victim.namespace, of) or of
        except Unreadable:
            workload = of
        about = Regarding.of(workload, victim.namespace)
        self._writer.add(about, EVENT, preemption.sentence)

    def _count(self, preemption: Preemption) -> None:
        victim, by = preemption.victim, preemption.preemptor
        self._metrics.count(PREEMPTIONS, victim.tier, by.tier if by else "", victim.tenant)
        self._metrics.count(CHECKPOINTS, victim.tier, preemption.saved)
        if preemption.save_seconds is not None:
            self._metrics.observe(CHECKPOINT_SECONDS, float(preemption.save_seconds), victim.tier)
