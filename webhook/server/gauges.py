"""Where each gauge gets its values: which part of the running process is asked at a scrape."""

import time
from collections.abc import Callable, Iterator

from certs.ca_bundle import KINDS, WebhookConfigurations
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.server.ledgers import RunningLedger
from webhook.server.metric_table import CACHE_SYNCED, CONFIGURATIONS, LEADING, LEDGER_GPUS, POLICY_INFO, POLICY_LOADED
from webhook.server.metrics import Metrics, Sample


def of_policy(metrics: Metrics, in_force: PolicyInForce) -> None:
    """The policy's mode and adoption, and since when it is in force."""
    loaded = [time.time()]
    in_force.subscribe(lambda: loaded.__setitem__(0, time.time()))

    def info() -> Iterator[Sample]:
        policy = in_force.current()
        yield (policy.mode.name, str(policy.adoption).lower()), 1

    metrics.sample(POLICY_INFO, info)
    metrics.sample(POLICY_LOADED, lambda: [((), loaded[0])])


def of_ledger(metrics: Metrics, cluster: LiveCluster, charged: RunningLedger) -> None:
    """GPUs booked on each tenant's rows, and whether this process leads."""

    def booked() -> Iterator[Sample]:
        for tenant in cluster.tenants():
            for row, gpus in charged.ledger.usage(tenant).items():
                yield (tenant.name, row.tier or "", row.flavor or ""), float(gpus)

    metrics.sample(LEDGER_GPUS, booked)
    metrics.sample(LEADING, lambda: [((), float(charged.leading()))])


def of_caches(metrics: Metrics, synced: dict[str, Callable[[], bool]]) -> None:
    """Whether each cache follows the cluster."""
    metrics.sample(CACHE_SYNCED, lambda: [((name,), float(done())) for name, done in synced.items()])


def of_configurations(metrics: Metrics, configurations: WebhookConfigurations) -> None:
    """Whether both webhook configurations are there; an upgrade once left none, which nobody saw (CVE-2023-22651)."""

    def registered() -> Iterator[Sample]:
        for kind in KINDS:
            yield (kind,), float(kind in configurations.seen and configurations.seen[kind].registered)

    metrics.sample(CONFIGURATIONS, registered)
