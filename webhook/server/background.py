"""Wires and runs the controllers, most of which work only in the leader, and gathers data for the page."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from webhook.cluster.live import LiveCluster
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.asked_saves import AskedSaves, EndingNodes, SaveReports
from webhook.controllers.backstop_writer import BackstopWriter
from webhook.controllers.device_preemption import DevicePreemption
from webhook.controllers.event_writer import EventWriter, PreemptionRecorder, VerdictEvents
from webhook.controllers.evicted_pods import EvictedPods, PreemptionWatch
from webhook.controllers.gpu_seconds import GpuSeconds, Series
from webhook.controllers.placements import StuckPods
from webhook.controllers.rounds import CeilingsWriter, NamespaceEvents, PolicyMap, PolicyPublisher
from webhook.controllers.work_at_risk import SCHEDULERS, EvictionCosts, Scheduler, WorkAtRisk
from webhook.kube.client import path
from webhook.policy.preemption.reservation import ReservationEnd
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode
from webhook.report.gpus_now import UseOverTime
from webhook.report.latest import MOST_PREEMPTIONS, Preemption, VerdictGroups
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.running_ledger import RunningLedger, outermost_by
from webhook.server.settings import Settings


class Part(Protocol):
    """A part of the background work."""

    async def run(self) -> None: ...


class BackgroundWork(msgspec.Struct, frozen=True):
    """The background work. Run `run` as a task. Reviews call `recorder`, and the page reads the others but `parts`."""

    recorder: Recorder
    verdicts: VerdictGroups
    preemptions: deque[Preemption]
    use: UseOverTime
    at_risk: WorkAtRisk
    parts: Sequence[Part]

    async def run(self) -> None:
        """Run all parts until cancelled. A part that raises ends all parts."""
        async with asyncio.TaskGroup() as tasks:
            for part in self.parts:
                tasks.create_task(part.run())


def background_work(
    settings: Settings,
    cluster: LiveCluster,
    active: ActivePolicy,
    events: EventWriter,
    ledger: RunningLedger,
    metrics: Metrics,
    reports: SaveReports,
) -> BackgroundWork:
    """Wire the background work, and its metrics. `reports` has what trainings report."""
    client, known, outermost = cluster.client, cluster.known, outermost_by(cluster, active)
    current, knows, tenant_name = active.current, ledger.knows_pods, known.tenant_name
    verdicts = VerdictGroups()
    preemptions = deque[Preemption](maxlen=MOST_PREEMPTIONS)
    notices = VerdictEvents(events, outermost, known.tenant_uid)

    def evicted(preemption: Preemption) -> None:
        ledger.placements.note_eviction(preemption)
        _count(metrics, preemption)

    preempted = PreemptionRecorder(preemptions, evicted, events, outermost)
    pods = EvictedPods(client, tenant_name, current, ledger.pods.last_used, reports.last_save)
    watch = PreemptionWatch(client, pods, lambda: ledger.pods.known_for, preempted)
    at_risk = WorkAtRisk(ledger.pods.working, tenant_name, reports.last_save)
    metrics.sample("gpu_tiers_at_risk_gpu_seconds", at_risk.samples)
    recorder = Recorder(metrics, notices.tell, verdicts.add)

    def enforced(namespace: Namespace) -> bool:
        return current().mode_in(namespace.labels) is Mode.Enforce

    backstop = BackstopWriter(known, ledger.leading, client, current, enforced, events)
    active.subscribe(backstop.wake)
    ceilings = path("v1", "configmaps", settings.namespace, settings.ceilings)
    bounds = CeilingsWriter(known, ledger.leading, client, current, ceilings)
    active.subscribe(bounds.wake)
    labels = NamespaceEvents(known, ledger.leading, current, events)
    active.subscribe(labels.wake)
    policy = PolicyMap(settings.namespace, settings.config_map)
    publisher = PolicyPublisher(known, ledger.leading, client, active, policy, events)
    use = UseOverTime()

    def looked(used: Mapping[Series, float]) -> None:
        if knows():
            use.add(used)
        else:
            use.forget()

    def used(seconds: float, series: Series) -> None:
        metrics.add("gpu_tiers_gpu_seconds_total", seconds, *series)

    gpu_seconds = GpuSeconds(used, metrics.forget_tenants, ledger.pods.running, known, report=looked)
    stuck = StuckPods(client, current, ledger.pods.waiting, ledger.pods.running)
    metrics.sample("gpu_tiers_inverted_seconds", stuck.inversions)
    metrics.sample("gpu_tiers_stranded_gpus", stuck.stranded)

    def tells(scheduler: Scheduler) -> EvictionCosts:
        count = partial(metrics.count, "gpu_tiers_eviction_cost_writes_total", scheduler.name)
        return EvictionCosts(client, scheduler, current, knows, at_risk.pods, count)

    exempt, ended = frozenset(settings.exempt_namespaces or ()), partial(metrics.count, "gpu_tiers_reservations_total")
    preempting = DevicePreemption(
        client, known, current, knows, at_risk.pods, lambda: saves.unsaved_since, events, exempt, ended
    )
    metrics.sample("gpu_tiers_reserved_nodes", preempting.samples)
    if current().device_preemption == "On":
        for tier in current().tiers:
            metrics.start("gpu_tiers_reservations_total", tier.name, ReservationEnd.FAILED)

    def asked(tier: str, cause: str, outcome: str, seconds: float | None) -> None:
        metrics.count("gpu_tiers_save_requests_total", tier, cause, outcome)
        if seconds is not None:
            metrics.observe("gpu_tiers_save_seconds", seconds, tier)

    ending = EndingNodes(client, current, lambda: ledger.leading() and current().reports is not None)
    saves = AskedSaves(
        reports, current, knows, at_risk.pods, tenant_name, ending.signal, lambda: preempting.saving, events, asked
    )
    metrics.sample("gpu_tiers_saves_under_way", lambda: [((), float(saves.under_way))])
    metrics.sample("gpu_tiers_over_max_at_risk_pods", saves.samples)
    costs = [tells(each) for each in SCHEDULERS]
    watching = preempting, saves, ending, stuck, notices, watch, gpu_seconds
    parts: tuple[Part, ...] = (backstop, bounds, labels, publisher, *costs, *watching)
    written = ledger.queued, ledger.pending, ledger.hours
    return BackgroundWork(recorder, verdicts, preemptions, use, at_risk, (*parts, *written))


def _count(metrics: Metrics, preemption: Preemption) -> None:
    victim, by = preemption.victim, preemption.preemptor
    labels = victim.tier, by.tier if by else "", victim.tenant, preemption.saved
    metrics.count("gpu_tiers_preemptions_total", *labels)
    if lost := preemption.lost:
        metrics.add(
            "gpu_tiers_lost_gpu_seconds_total", lost.gpu_seconds, *labels, str(lost.exact).lower(), victim.flavor
        )
    metrics.count("gpu_tiers_checkpoints_total", victim.tier, preemption.saved)
    if preemption.save_seconds is not None:
        metrics.observe("gpu_tiers_checkpoint_seconds", float(preemption.save_seconds), victim.tier)
