"""Feeds the gauges: each reads a part of the running process at a scrape."""

import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
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
from webhook.policy.quota.budgets import HOUR, Used, noted
from webhook.policy.quota.tenant_status import NOTHING
from webhook.policy.values.tenants import Budget, Tenant, Usage
from webhook.server.metrics import Metrics, Sample
from webhook.server.running_ledger import RunningLedger


def of_policy(metrics: Metrics, active: ActivePolicy) -> None:
    """Show the active policy: mode, adoption, digest, since when, and whether the file is active without a problem.

    Also show the prices of GPU-hours. The checkpoint counters of each of its tiers begin at 0.
    """

    def changed() -> None:
        for tier, outcome in product(active.current().tiers, get_args(Saved)):
            metrics.start("gpu_tiers_checkpoints_total", tier.name, outcome)

    changed()
    active.subscribe(changed)

    def info() -> Iterator[Sample]:
        policy = active.current()
        yield (policy.mode.name, str(policy.adoption).lower(), active.digest), 1

    def prices() -> Iterator[Sample]:
        for flavor in active.current().flavors:
            if flavor.price is not None:
                yield (flavor.name,), float(flavor.price)

    metrics.sample("gpu_tiers_gpu_hour_price", prices)
    metrics.sample("gpu_tiers_policy_info", info)
    metrics.sample("gpu_tiers_policy_loaded_timestamp_seconds", lambda: [((), active.since)])
    metrics.sample("gpu_tiers_policy_taken", lambda: [((), float(not active.problem))])


def of_leader(metrics: Metrics, active: ActivePolicy, ledger: RunningLedger) -> None:
    """Show whether this process leads, and while it leads, when it last counted.

    While it leads, also show how long each tier's oldest pod without a node has waited, and the GPUs of such pods.
    """

    def counted() -> Iterator[Sample]:
        if (last := ledger.counted()) is not None:
            yield (), last

    def oldest() -> Iterator[Sample]:
        """Yield for each tier the seconds that its oldest waiting pod has waited; 0 without such a pod."""
        if not ledger.knows_pods():
            return
        since, now = {tier.name: "" for tier in active.current().tiers}, datetime.now(UTC).isoformat()
        for pod in ledger.pods.waiting():
            since[pod.tier] = min(since.get(pod.tier) or pod.since, pod.since)
        yield from (((tier,), seconds_between(time, now) or 0.0) for tier, time in since.items())

    def pending() -> Iterator[Sample]:
        for tenant, row, gpus in ledger.pending.rows():
            yield (tenant, row.tier or "", row.flavor or ""), float(gpus)

    metrics.sample("gpu_tiers_leading", lambda: [((), float(ledger.leading()))])
    metrics.sample("gpu_tiers_ledger_round_timestamp_seconds", counted)
    metrics.sample("gpu_tiers_pending_oldest_seconds", oldest)
    metrics.sample("gpu_tiers_pending_gpus", pending)


def of_queues(metrics: Metrics, cluster: Watched, ledger: RunningLedger) -> None:
    """Show the queued pods and GPUs while this process leads, and how long the heads of the queues have waited.

    A further gauge shows how long heads have waited although they have room, or pods whose gates did not open.
    """

    def queued(number: Literal[0, 1]) -> Iterator[Sample]:
        for tenant, queue in ledger.queues.queues() if ledger.leading() else ():
            for tier, found in queue.by_tier().items():
                yield (tenant, tier), float(found[number])

    def heads() -> Iterator[Sample]:
        if ledger.leading():
            yield from (((tenant,), seconds) for tenant, seconds in ledger.queues.heads())

    def with_room() -> Iterator[Sample]:
        longest = dict(ledger.queues.heads_with_room()) if ledger.leading() else {}
        for namespace, seconds in ledger.pods.stuck_gates():
            tenant = cluster.tenant_name(namespace)
            if tenant in longest:
                longest[tenant] = max(longest[tenant], seconds)
        yield from (((tenant,), seconds) for tenant, seconds in longest.items())

    metrics.sample("gpu_tiers_queued_pods", lambda: queued(0))
    metrics.sample("gpu_tiers_queued_gpus", lambda: queued(1))
    metrics.sample("gpu_tiers_queue_head_seconds", heads)
    metrics.sample("gpu_tiers_queue_head_with_room_seconds", with_room)


def of_tenants(metrics: Metrics, cluster: Watched, ledger: Ledger) -> None:
    def on_rows(usage: Callable[[Tenant], Usage]) -> Iterator[Sample]:
        for tenant in cluster.tenants():
            for row, gpus in usage(tenant).items():
                if row.spent:
                    continue  # it is a budget, with metrics of its own
                yield (tenant.name, row.tier or "", row.flavor or ""), float(gpus)

    def reserved(tenant: Tenant) -> Usage:
        booked, used, for_queue = ledger.usage(tenant), ledger.used(tenant), ledger.reserved_for_queue(tenant)
        return {row: gpus - used.get(row, NOTHING) - for_queue.get(row, NOTHING) for row, gpus in booked.items()}

    def budgets(hours: Callable[[Budget, Used], Decimal]) -> Iterator[Sample]:
        for found in cluster.tenant_quotas():
            for budget in found.tenant.budgets if found.tenant else ():
                if used := noted(found.status, budget):
                    labels = found.name, budget.tier or "", budget.flavor or "", budget.per or ""
                    yield labels, float(hours(budget, used))

    metrics.sample("gpu_tiers_budget_gpu_hours", lambda: budgets(lambda budget, _: budget.gpu_hours))
    metrics.sample("gpu_tiers_budget_used_gpu_hours", lambda: budgets(lambda _, used: used.gpu_seconds / HOUR))
    metrics.sample("gpu_tiers_quota_gpus", lambda: on_rows(lambda tenant: {row: row.hard for row in tenant.rows}))
    metrics.sample("gpu_tiers_ledger_gpus", lambda: on_rows(ledger.usage))
    metrics.sample("gpu_tiers_reserved_gpus", lambda: on_rows(reserved))
    metrics.sample("gpu_tiers_queue_reserved_gpus", lambda: on_rows(ledger.reserved_for_queue))


def of_process(metrics: Metrics, cluster: Watched, configurations: WebhookConfigurations) -> None:
    """Show the version, whether the cluster has been read, and whether both webhook configurations exist.

    An upgrade of Rancher's webhook once left no configuration, and nobody noticed (CVE-2023-22651).
    """
    version = (metadata.version("gpu-tiers"), platform.python_version())

    def registered() -> Iterator[Sample]:
        for kind in KINDS:
            plural = f"{kind.lower()}s"
            yield (kind,), float(plural in configurations.seen and configurations.seen[plural].registered)

    metrics.sample("gpu_tiers_webhook_configurations_registered", registered)
    metrics.sample("gpu_tiers_build_info", lambda: [(version, 1.0)])
    metrics.sample("gpu_tiers_cache_synced", lambda: [(("cluster",), float(cluster.synced and not cluster.problems()))])
