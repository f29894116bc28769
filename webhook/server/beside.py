"""Runs the work beside the reviews: it tells people of refusals and preemptions, and keeps what they look at."""

import asyncio
from collections.abc import Callable, Mapping

from webhook.cluster.live import LiveCluster
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
from webhook.kube.paths import path
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
from webhook.server.running_ledger import RunningLedger, outermost_by
from webhook.server.settings import Settings


class Beside:
    """Run `run` as a task, and let reviews tell `recorder`. The rest is for the page: `verdicts`, `preemptions`, `use`
    and `at_risk`. `last_save` tells by a pod's uid when it has saved last, where that was reported.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: LiveCluster,
        in_force: PolicyInForce,
        events: EventWriter,
        charged: RunningLedger,
        metrics: Metrics,
        last_save: Callable[[str], LastSave | None],
    ) -> None:
        client, outermost = cluster.client, outermost_by(cluster, in_force)
        self.verdicts = VerdictGroups()
        self.preemptions: Latest[Preemption] = Latest(MOST_PREEMPTIONS)
        told = VerdictEvents(events, outermost, cluster.known.tenant_uid)

        def evicted(preemption: Preemption) -> None:
            charged.placements.evicted(preemption)
            _count(metrics, preemption)

        preempted = PreemptionRecorder(self.preemptions, evicted, events, outermost)
        pods = EvictedPods(client, cluster.known.tenant_name, in_force.current, charged.pods.last_held, last_save)
        watch = PreemptionWatch(client, pods, lambda: charged.pods.synced, preempted)
        self.at_risk = WorkAtRisk(charged.pods.working, cluster.known.tenant_name, last_save)
        metrics.sample(AT_RISK, self.at_risk.samples)
        self.recorder = Recorder(metrics, told.tell, self.verdicts.add)

        def enforced(namespace: Namespace) -> bool:
            return in_force.current().mode_in(namespace.labels) is Mode.Enforce

        backstop = BackstopWriter(client, cluster.known, in_force.current, enforced, charged.leading, events)
        in_force.subscribe(backstop.wake)
        ceilings = path("v1", "configmaps", settings.namespace, settings.ceilings)
        bounds = CeilingsWriter(client, cluster.known, in_force.current, charged.leading, ceilings)
        in_force.subscribe(bounds.wake)
        labels = NamespaceEvents(cluster.known, in_force.current, charged.leading, events)
        in_force.subscribe(labels.wake)
        policy = PolicyMap(settings.namespace, settings.config_map)
        publisher = PolicyPublisher(client, cluster.known, in_force, charged.leading, policy, events)
        self.use = UseOverTime()

        def looked(held: Mapping[Series, float]) -> None:
            if charged.knows_pods():
                self.use.add(held)
            else:
                self.use.forget()

        gpu_seconds = GpuSeconds(
            lambda seconds, series: metrics.add(GPU_SECONDS, seconds, *series),
            metrics.forget_tenants,
            charged.pods.running,
            cluster.known,
            told=looked,
        )
        in_vain = WaitsInVain(client, in_force.current, charged.pods.waiting, charged.pods.running)
        metrics.sample(INVERTED, in_vain.inversions)
        metrics.sample(STRANDED, in_vain.stranded)

        def tells(scheduler: Scheduler) -> EvictionCosts:
            return EvictionCosts(
                client,
                scheduler,
                in_force.current,
                charged.knows_pods,
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


def _count(metrics: Metrics, preemption: Preemption) -> None:
    victim, by = preemption.victim, preemption.preemptor
    labels = victim.tier, by.tier if by else "", victim.tenant, preemption.saved
    metrics.count(PREEMPTIONS, *labels)
    if lost := preemption.lost:
        metrics.add(LOST_GPU_SECONDS, lost.gpu_seconds, *labels, str(lost.exact).lower())
    metrics.count(CHECKPOINTS, victim.tier, preemption.saved)
    if preemption.save_seconds is not None:
        metrics.observe(CHECKPOINT_SECONDS, float(preemption.save_seconds), victim.tier)
