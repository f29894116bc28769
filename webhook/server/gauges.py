"""Feeds the gauges: each reads a part of the running process at a scrape."""

import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from itertools import product
from typing import Literal, get_args

from certs.configurations import WebhookConfigurations
from webhook.cluster.watched import Watched
from webhook.cluster.webhook_configurations import KINDS
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.placements import seconds_between
from webhook.ledger.protocol import Ledger
from webhook.policy.checkpoint.work_lost import Saved
from webhook.policy.quota.tenant_status import NOTHING
from webhook.policy.values.tenants import Tenant, Usage
from webhook.server import metric_table
from webhook.server.metrics import Metrics, Sample
from webhook.server.running_ledger import RunningLedger


def of_policy(metrics: Metrics, active: ActivePolicy) -> None:
    """Show the policy's mode and adoption, and since when it is active. Each of its tiers begins with no checkpoint."""

    def changed() -> None:
        for tier, outcome in product(active.current().tiers, get_args(Saved)):
            metrics.start(metric_table.CHECKPOINTS, tier.name, outcome)

    changed()
    active.subscribe(changed)

    def info() -> Iterator[Sample]:
        policy = active.current()
        yield (policy.mode.name, str(policy.adoption).lower(), active.digest), 1

    metrics.sample(metric_table.POLICY_INFO, info)
    metrics.sample(metric_table.POLICY_LOADED, lambda: [((), active.since)])
    metrics.sample(metric_table.POLICY_TAKEN, lambda: [((), float(not active.problem))])


def of_leader(metrics: Metrics, active: ActivePolicy, charged: RunningLedger) -> None:
    """Show whether this process leads, when it last counted, and while it leads, which GPUs wait for a node."""

    def counted() -> Iterator[Sample]:
        if (last := charged.counted()) is not None:
            yield (), last

    def oldest() -> Iterator[Sample]:
        """Yield how long the oldest waiting pod of each tier has waited."""
        if not charged.knows_pods():
            return
        since, now = {tier.name: "" for tier in active.current().tiers}, datetime.now(UTC).isoformat()
        for pod in charged.pods.waiting():
            since[pod.tier] = min(since.get(pod.tier) or pod.since, pod.since)
        yield from (((tier,), seconds_between(time, now) or 0.0) for tier, time in since.items())

    def pending() -> Iterator[Sample]:
        for tenant, row, gpus in charged.pending.rows():
            yield (tenant, row.tier or "", row.flavor or ""), float(gpus)

    metrics.sample(metric_table.LEADING, lambda: [((), float(charged.leading()))])
    metrics.sample(metric_table.LEDGER_ROUND, counted)
    metrics.sample(metric_table.PENDING_OLDEST, oldest)
    metrics.sample(metric_table.PENDING_GPUS, pending)


def of_queues(metrics: Metrics, cluster: Watched, charged: RunningLedger) -> None:
    """Show the pods that are queued while this process leads, and how long the heads of the queues have waited."""

    def queued(number: Literal[0, 1]) -> Iterator[Sample]:
        for tenant, queue in charged.queues.queues() if charged.leading() else ():
            for tier, found in queue.by_tier().items():
                yield (tenant, tier), float(found[number])

    def heads() -> Iterator[Sample]:
        if charged.leading():
            yield from (((tenant,), seconds) for tenant, seconds in charged.queues.heads())

    def with_room() -> Iterator[Sample]:
        longest = dict(charged.queues.heads_with_room()) if charged.leading() else {}
        for namespace, seconds in charged.gates.stuck():
            tenant = cluster.tenant_name(namespace)
            if tenant in longest:
                longest[tenant] = max(longest[tenant], seconds)
        yield from (((tenant,), seconds) for tenant, seconds in longest.items())

    metrics.sample(metric_table.QUEUED_PODS, lambda: queued(0))
    metrics.sample(metric_table.QUEUED_GPUS, lambda: queued(1))
    metrics.sample(metric_table.QUEUE_HEAD, heads)
    metrics.sample(metric_table.HEAD_WITH_ROOM, with_room)


def of_tenants(metrics: Metrics, cluster: Watched, ledger: Ledger) -> None:
    def on_rows(usage: Callable[[Tenant], Usage]) -> Iterator[Sample]:
        for tenant in cluster.tenants():
            for row, gpus in usage(tenant).items():
                yield (tenant.name, row.tier or "", row.flavor or ""), float(gpus)

    def reserved(tenant: Tenant) -> Usage:
        booked, used, for_queue = ledger.usage(tenant), ledger.used(tenant), ledger.reserved_for_queue(tenant)
        return {row: gpus - used.get(row, NOTHING) - for_queue.get(row, NOTHING) for row, gpus in booked.items()}

    metrics.sample(metric_table.QUOTA_GPUS, lambda: on_rows(lambda tenant: {row: row.hard for row in tenant.rows}))
    metrics.sample(metric_table.LEDGER_GPUS, lambda: on_rows(ledger.usage))
    metrics.sample(metric_table.RESERVED_GPUS, lambda: on_rows(reserved))
    metrics.sample(metric_table.QUEUE_RESERVED_GPUS, lambda: on_rows(ledger.reserved_for_queue))


def of_process(metrics: Metrics, cluster: Watched, configurations: WebhookConfigurations) -> None:
    """Show the version, whether the cluster has been read, and whether both webhook configurations are there.

    An upgrade once left none, which nobody saw (CVE-2023-22651).
    """
    version = (metadata.version("gpu-tiers"), platform.python_version())

    def registered() -> Iterator[Sample]:
        for kind in KINDS:
            plural = f"{kind.lower()}s"
            yield (kind,), float(plural in configurations.seen and configurations.seen[plural].registered)

    metrics.sample(metric_table.CONFIGURATIONS, registered)
    metrics.sample(metric_table.BUILD_INFO, lambda: [(version, 1.0)])
    metrics.sample(
        metric_table.CACHE_SYNCED, lambda: [(("cluster",), float(cluster.synced and not cluster.problems()))]
    )
