"""What a process does beside its reviews: it tells people of refusals and preemptions, and keeps what they look at."""

import asyncio

from webhook.admission.webhook import MODE_LABEL, mode_in
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.controller.backstop_writer import BackstopWriter
from webhook.controller.event_writer import EventWriter
from webhook.controller.kueue_evictions import KueueEvictions
from webhook.controller.kueue_workloads import KueueWorkloads
from webhook.controller.preemption_watch import PreemptionWatch
from webhook.controller.verdict_events import VerdictEvents
from webhook.kube.client import Client
from webhook.objects.pods import OwnerReference
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode
from webhook.readmodel.latest import Latest
from webhook.readmodel.preemptions import MOST_PREEMPTIONS, Preemption
from webhook.readmodel.verdicts import MOST_VERDICTS, VerdictShown
from webhook.server.gpu_seconds import GpuSeconds
from webhook.server.kueue_releases import KueueReleases
from webhook.server.ledgers import RunningLedger
from webhook.server.metrics import Metrics
from webhook.server.preemption_recorder import PreemptionRecorder
from webhook.server.record import Recorder


class Beside:
    """Run `run` as a task, and let reviews tell `recorder`. `verdicts` and `preemptions` are for the page."""

    def __init__(
        self,
        client: Client,
        cluster: LiveCluster,
        in_force: PolicyInForce,
        events: EventWriter,
        charged: RunningLedger,
        metrics: Metrics,
    ) -> None:
        async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
            return await cluster.outermost(namespace, first, in_force.current().kinds)

        self.verdicts: Latest[VerdictShown] = Latest(MOST_VERDICTS)
        self.preemptions: Latest[Preemption] = Latest(MOST_PREEMPTIONS)
        told = VerdictEvents(events, outermost, cluster.tenant_uid)
        preempted = PreemptionRecorder(self.preemptions, metrics, events, outermost)
        watch = PreemptionWatch(
            client, cluster.tenant_name, in_force.current, charged.last_held, charged.leading, preempted
        )
        evictions = KueueEvictions(
            KueueWorkloads(client), lambda: charged.leading() and in_force.current().kueue is not None
        )
        releases = KueueReleases(client, cluster, charged.ledger, in_force.current, evictions.tell)
        self.recorder = Recorder(metrics, told.tell, self.verdicts.add, releases.refused)
        backstop = _backstop(client, cluster, in_force, events, charged)
        gpu_seconds = GpuSeconds(metrics, charged.running, cluster)
        self._parts = told, watch, evictions, backstop, gpu_seconds

    async def run(self) -> None:
        """Until cancelled; a part that dies ends all."""
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts:
                tasks.create_task(part.run())


def _backstop(
    client: Client, cluster: LiveCluster, in_force: PolicyInForce, events: EventWriter, charged: RunningLedger
) -> BackstopWriter:
    def enforced(namespace: Namespace) -> bool:
        return mode_in(in_force.current(), namespace.labels.get(MODE_LABEL, "")) is Mode.Enforce

    writer = BackstopWriter(client, cluster, in_force.current, enforced, charged.leading, events)
    in_force.subscribe(writer.wake)
    return writer
