"""Rules about workloads that use quota and do not run."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain

import msgspec

from webhook.cluster.pod_listing import PodSummary
from webhook.objects.quantities import written_gpus
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant, by_age, tenant_among
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot
from webhook.report.waiting import long_time

LONG = timedelta(hours=2)
"""Longer than an autoscaler takes to add a node, or a driver to be installed on it."""


class Using(msgspec.Struct, frozen=True):
    """A pod that uses a tenant's quota, and the rows that count it, the narrowest first."""

    pod: PodSummary
    tenant: Tenant
    rows: Sequence[QuotaRow]


def pending_for_hours(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """One for each workload, with what the scheduler says of the pod that waits longest."""
    by_workload = defaultdict[str, list[Using]](list)
    for each in _using(snapshot):
        by_workload[each.pod.made_by].append(each)
    idle = _full_and_idle(chain.from_iterable(by_workload.values()))
    for workload, its in by_workload.items():
        waiting = [each for each in its if not each.pod.node and _age(each.pod, snapshot.now) > LONG]
        if waiting:
            first = min(waiting, key=lambda each: each.pod.created)
            yield Mistake(workload, _told(first, waiting, len(its), _age(first.pod, snapshot.now), idle))


def _told(
    first: Using, waiting: Sequence[Using], pods: int, age: timedelta, idle: Collection[tuple[str, QuotaRow]]
) -> str:
    pod, row, tenant = first.pod, first.rows[0], first.tenant.name
    gpus = written_gpus(sum((each.pod.gpus for each in waiting), Decimal(0)))
    those = "its pod has" if pods == 1 else f"{len(waiting)} of its {pods} pods have"
    full = f"; {row.subject} is full, and nothing runs on it" if (tenant, row) in idle else ""
    unasked = f"nothing yet (schedulerName: {pod.scheduler or 'default-scheduler'})"
    why = " ".join(pod.unscheduled.split()) or unasked
    used = f"using {gpus} of {row.subject} of tenant {tenant}{full}"
    return f"{those} had no node for {long_time(age)}, {used}. The scheduler says: {why}"


def _full_and_idle(using: Iterable[Using]) -> frozenset[tuple[str, QuotaRow]]:
    """The rows of tenants that are full, and on which no pod has a node."""
    asked, running = defaultdict[tuple[str, QuotaRow], Decimal](Decimal), set[tuple[str, QuotaRow]]()
    for each in using:
        for row in each.rows:
            asked[each.tenant.name, row] += each.pod.gpus
            if each.pod.node:
                running.add((each.tenant.name, row))
    return frozenset(key for key, gpus in asked.items() if gpus >= key[1].hard and key not in running)


def _using(snapshot: ClusterSnapshot) -> Iterator[Using]:
    """Pods that wait behind our gate, or are being deleted, are left out: they use nothing, or soon."""
    ranked, labels = by_age(snapshot.in_force), {each.name: each.labels for each in snapshot.namespaces}
    tenants = {namespace: tenant_among(ranked, labels.get(namespace, {})) for namespace in snapshot.pods_by_namespace}
    for pod in snapshot.pods:
        tenant = tenants[pod.namespace]
        if tenant is not None and pod.gpus and not pod.held and not pod.ends:
            rows = Charge(pod.gpus, pod.tier, pod.flavor).rows(tenant)
            if rows:
                yield Using(pod, tenant, rows)


def _age(pod: PodSummary, now: datetime) -> timedelta:
    try:
        return now - datetime.fromisoformat(pod.created)
    except ValueError:
        return timedelta(0)


RULES = (
    LintRule(
        "pending-for-hours",
        Severity.WARNING,
        ("tenants", "namespaces", "pods"),
        pending_for_hours,
        "Do what the scheduler's words ask for; `gpu-tiers why-pending` says more.",
    ),
)
