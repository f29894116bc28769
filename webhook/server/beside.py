"""What a process does beside its reviews: it tells people of refusals and preemptions, and keeps what they look at."""

import asyncio
from collections.abc import Callable, Mapping

from webhook.cluster.live import LiveCluster
from webhook.cluster.watched import Watched
from webhook.config.in_force import PolicyInForce
from webhook.controllers.backstop_writer import BackstopWriter, CeilingsWriter
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.evicted_pods import EvictedPods
from webhook.controllers.eviction_costs import SCHEDULERS, EvictionCosts, Scheduler
from webhook.controllers.gpu_seconds import GpuSeconds, Series
from webhook.controllers.policy_publisher import PolicyMap, PolicyPublisher
from webhook.controllers.preemption_watch import PreemptionWatch
from webhook.controllers.verdict_events import NamespaceEvents, PreemptionRecorder, VerdictEvents
from webhook.controllers.waits_in_vain import WaitsInVain
from webhook.controllers.work_at_risk import WorkAtRisk
from webhook.kube.client import Client
from webhook.objects.pods import OwnerReference
from webhook.policy.checkpoint.work_lost import LastSave
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode
from webhook.report.gpus_now import UseOverTime
from webhook.report.latest import MOST_PREEMPTIONS, Latest, Preemption, VerdictGroups
from webhook.server.metric_table import (
    AT_RISK,
    CHECKPOINT_SECONDS,
    CHECKPOINTS,
    EVICTION_COST_WRITES,
    GPU_SECONDS,
    INVERTED,
    LOST_GPU_SECONDS,
    PREEMPTIONS,
    STRANDED,
)
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.running_ledger import RunningLedger


class Beside:
    """Run `run` as a task, and let reviews tell `recorder`. The rest is for the page: `verdicts`, `preemptions`, `use`
    and `at_risk`. `last_save` tells by a pod's uid when it has saved last, where that was reported.

    `ceilings` is the path of the ConfigMap for the ceilings of tenants, `policy` the ConfigMap with the policy.
    """

    def __init__(
        self,
        client: Client,
        cluster: LiveCluster,
        in_force: PolicyInForce,
        events: EventWriter,
        charged: RunningLedger,
        metrics: Metrics,
        ceilings: str,
        policy: PolicyMap,
        last_save: Callable[[str], LastSave | None],
    ) -> None:
        async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
            return await cluster.lookups.owners.outermost(namespace, first, in_force.current().kinds)

        self.verdicts = VerdictGroups()
        self.preemptions: Latest[Preemption] = Latest(MOST_PREEMPTIONS)
        told = VerdictEvents(events, outermost, cluster.known.tenant_uid)

        def evicted(preemption: Preemption) -> None:
            charged.placements.evicted(preemption)
            _count(metrics, preemption)

        preempted = PreemptionRecorder(self.preemptions, evicted, events, outermost)
        pods = EvictedPods(client, cluster.known.tenant_name, in_force.current, charged.last_held, last_save)
        watch = PreemptionWatch(client, pods, charged.knows_pods, preempted)
        self.at_risk = WorkAtRisk(charged.working, cluster.known.tenant_name, last_save)
        metrics.sample(AT_RISK, self.at_risk.samples)
        self.recorder = Recorder(metrics, told.tell, self.verdicts.add)
        backstop = _backstop(client, cluster.known, in_force, events, charged)
        bounds = CeilingsWriter(client, cluster.known, in_force.current, charged.leading, ceilings)
        in_force.subscribe(bounds.wake)
        labels = NamespaceEvents(cluster.known, in_force.current, charged.leading, events)
        in_force.subscribe(labels.wake)
        publisher = PolicyPublisher(client, cluster.known, in_force, charged.leading, policy, events)
        self.use = UseOverTime()

        def looked(held: Mapping[Series, float]) -> None:
            if charged.leading() and charged.knows_pods():
                self.use.add(held)
            else:
                self.use.forget()

        gpu_seconds = GpuSeconds(
            lambda seconds, series: metrics.add(GPU_SECONDS, seconds, *series),
            metrics.forget_tenants,
            charged.running,
            cluster.known,
            told=looked,
        )
        in_vain = WaitsInVain(client, in_force.current, charged.waiting, charged.running)
        metrics.sample(INVERTED, in_vain.inversions)
        metrics.sample(STRANDED, in_vain.stranded)

        def tells(scheduler: Scheduler) -> EvictionCosts:
            return EvictionCosts(
                client,
                scheduler,
                in_force.current,
                lambda: charged.leading() and charged.knows_pods(),
                self.at_risk.pods,
                lambda outcome: metrics.count(EVICTION_COST_WRITES, scheduler.name, outcome),
            )

        kueue, volcano = map(tells, SCHEDULERS)
        writers = backstop, bounds, labels, publisher, kueue, volcano
        self._parts = *writers, in_vain, told, watch, gpu_seconds, charged.held, charged.pending

    async def run(self) -> None:
        """Until cancelled; a part that dies ends all."""
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts:
                tasks.create_task(part.run())


def _backstop(
    client: Client, cluster: Watched, in_force: PolicyInForce, events: EventWriter, charged: RunningLedger
) -> BackstopWriter:
    def enforced(namespace: Namespace) -> bool:
        return in_force.current().mode_in(namespace.labels) is Mode.Enforce

    writer = BackstopWriter(client, cluster, in_force.current, enforced, charged.leading, events)
    in_force.subscribe(writer.wake)
    return writer


def _count(metrics: Metrics, preemption: Preemption) -> None:
    victim, by = preemption.victim, preemption.preemptor
    labels = victim.tier, by.tier if by else "", victim.tenant, preemption.saved
    metrics.count(PREEMPTIONS, *labels)
    if lost := preemption.lost:
        metrics.add(LOST_GPU_SECONDS, lost.gpu_seconds, *labels, str(lost.exact).lower())
    metrics.count(CHECKPOINTS, victim.tier, preemption.saved)
    if preemption.save_seconds is not None:
        metrics.observe(CHECKPOINT_SECONDS, float(preemption.save_seconds), victim.tier)
