"""Wires and runs the background work: events about refusals and preemptions, and the data of the page."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence

import msgspec

from webhook.cluster.live import LiveCluster
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.backstop_writer import BackstopWriter, CeilingsWriter
from webhook.controllers.device_preemption import DevicePreemption
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.evicted_pods import EvictedPods
from webhook.controllers.gpu_seconds import GpuSeconds, Series
from webhook.controllers.policy_publisher import PolicyMap, PolicyPublisher
from webhook.controllers.preemption_watch import PreemptionWatch
from webhook.controllers.stuck_pods import StuckPods
from webhook.controllers.verdict_events import NamespaceEvents, PreemptionRecorder, VerdictEvents
from webhook.controllers.work_at_risk import SCHEDULERS, EvictionCosts, Scheduler, WorkAtRisk
from webhook.kube.client import path
from webhook.policy.checkpoint.work_lost import LastSave
from webhook.policy.preemption.reservation import ReservationEnd
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode
from webhook.report.gpus_now import UseOverTime
from webhook.report.latest import MOST_PREEMPTIONS, Preemption, VerdictGroups
from webhook.server import metric_table
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.running_ledger import RunningLedger, outermost_by
from webhook.server.settings import Settings


class BackgroundWork(msgspec.Struct, frozen=True):
    """The background work. Run `run` as a task. Reviews call `recorder`; all fields but `parts` are for the page."""

    recorder: Recorder
    verdicts: VerdictGroups
    preemptions: deque[Preemption]
    use: UseOverTime
    at_risk: WorkAtRisk
    parts: Sequence[Callable[[], Coroutine[None, None, None]]]

    async def run(self) -> None:
        """Run all parts until cancelled. A part that dies ends all."""
        async with asyncio.TaskGroup() as tasks:
            for part in self.parts:
                tasks.create_task(part())


def background_work(
    settings: Settings,
    cluster: LiveCluster,
    active: ActivePolicy,
    events: EventWriter,
    charged: RunningLedger,
    metrics: Metrics,
    last_save: Callable[[str], LastSave | None],
) -> BackgroundWork:
    """Wire the background work. `last_save` returns the last reported save of a pod, by its uid."""
    client, outermost = cluster.client, outermost_by(cluster, active)
    verdicts = VerdictGroups()
    preemptions = deque[Preemption](maxlen=MOST_PREEMPTIONS)
    notices = VerdictEvents(events, outermost, cluster.known.tenant_uid)

    def evicted(preemption: Preemption) -> None:
        charged.placements.evicted(preemption)
        _count(metrics, preemption)

    preempted = PreemptionRecorder(preemptions, evicted, events, outermost)
    pods = EvictedPods(client, cluster.known.tenant_name, active.current, charged.pods.last_used, last_save)
    watch = PreemptionWatch(client, pods, lambda: charged.pods.synced, preempted)
    at_risk = WorkAtRisk(charged.pods.working, cluster.known.tenant_name, last_save)
    metrics.sample(metric_table.AT_RISK, at_risk.samples)
    recorder = Recorder(metrics, notices.tell, verdicts.add)

    def enforced(namespace: Namespace) -> bool:
        return active.current().mode_in(namespace.labels) is Mode.Enforce

    backstop = BackstopWriter(cluster.known, charged.leading, client, active.current, enforced, events)
    active.subscribe(backstop.wake)
    ceilings = path("v1", "configmaps", settings.namespace, settings.ceilings)
    bounds = CeilingsWriter(cluster.known, charged.leading, client, active.current, ceilings)
    active.subscribe(bounds.wake)
    labels = NamespaceEvents(cluster.known, charged.leading, active.current, events)
    active.subscribe(labels.wake)
    policy = PolicyMap(settings.namespace, settings.config_map)
    publisher = PolicyPublisher(cluster.known, charged.leading, client, active, policy, events)
    use = UseOverTime()

    def looked(used: Mapping[Series, float]) -> None:
        if charged.knows_pods():
            use.add(used)
        else:
            use.forget()

    gpu_seconds = GpuSeconds(
        lambda seconds, series: metrics.add(metric_table.GPU_SECONDS, seconds, *series),
        metrics.forget_tenants,
        charged.pods.running,
        cluster.known,
        report=looked,
    )
    stuck = StuckPods(client, active.current, charged.pods.waiting, charged.pods.running)
    metrics.sample(metric_table.INVERTED, stuck.inversions)
    metrics.sample(metric_table.STRANDED, stuck.stranded)

    def tells(scheduler: Scheduler) -> EvictionCosts:
        return EvictionCosts(
            client,
            scheduler,
            active.current,
            charged.knows_pods,
            at_risk.pods,
            lambda outcome: metrics.count(metric_table.EVICTION_COST_WRITES, scheduler.name, outcome),
        )

    preempting = DevicePreemption(
        client,
        cluster.known,
        active.current,
        charged.knows_pods,
        at_risk.pods,
        events,
        frozenset(settings.exempt_namespaces or ()),
        lambda tier, how: metrics.count(metric_table.RESERVATIONS, tier, how),
    )
    metrics.sample(metric_table.RESERVED_NODES, preempting.samples)
    if active.current().device_preemption == "On":
        for tier in active.current().tiers:
            metrics.start(metric_table.RESERVATIONS, tier.name, ReservationEnd.FAILED)
    writers = [each.run for each in (backstop, bounds, labels, publisher)] + [tells(each).run for each in SCHEDULERS]
    parts = [
        preempting.run,
        stuck.run,
        notices.run,
        watch.run,
        gpu_seconds.run,
        charged.queued.run,
        charged.pending.run,
    ]
    return BackgroundWork(recorder, verdicts, preemptions, use, at_risk, [*writers, *parts])


def _count(metrics: Metrics, preemption: Preemption) -> None:
    victim, by = preemption.victim, preemption.preemptor
    labels = victim.tier, by.tier if by else "", victim.tenant, preemption.saved
    metrics.count(metric_table.PREEMPTIONS, *labels)
    if lost := preemption.lost:
        metrics.add(metric_table.LOST_GPU_SECONDS, lost.gpu_seconds, *labels, str(lost.exact).lower())
    metrics.count(metric_table.CHECKPOINTS, victim.tier, preemption.saved)
    if preemption.save_seconds is not None:
        metrics.observe(metric_table.CHECKPOINT_SECONDS, float(preemption.save_seconds), victim.tier)
