"""The two ledgers, each with what feeds it: for one process in memory, for any number on the API server."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.controller.changes import Changes
from webhook.controller.event_writer import EventWriter
from webhook.controller.leader import Leader
from webhook.controller.stranded_events import StrandedEvents
from webhook.controller.tenant_status import TenantStatusWriter
from webhook.kube.client import Client
from webhook.kube.leader_election import LeaderElection
from webhook.kube.wire import RFC_3339
from webhook.ledger.kubernetes import KubernetesLedger
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Holding, Ledger, Observer, WorkloadObserver
from webhook.ledger.stored_quotas import StoredQuotas
from webhook.ledger.versions import Version, Versions
from webhook.policy.quota.conditions import conditions_of
from webhook.policy.quota.gangs import StrandedGang
from webhook.policy.quota.usage_status import Count, Status
from webhook.policy.values.tenants import Tenant
from webhook.server.metric_table import LEDGER_WRITES
from webhook.server.metrics import Metrics
from webhook.server.observed_pods import ObservedPods
from webhook.server.observed_workloads import ObservedWorkloads
from webhook.server.settings import Election


@dataclass(frozen=True, slots=True)
class RunningLedger:
    """A ledger, and what keeps it right while the process serves. `following`: what is watched for it, by name.

    `holding` tells what a pod holds, and `running` what all pods on nodes hold, while this process leads. `leader`: the
    replica that does, "" where none does. `counted`: when it last brought the accounts in line with the pods, as a Unix
    time; None where nobody does that in rounds.
    """

    ledger: Ledger
    run: Callable[[], Awaitable[None]]
    following: Mapping[str, Callable[[], bool]]
    leading: Callable[[], bool]
    last_held: Callable[[str], Holding | None]
    running: Callable[[], Iterator[Holding]]
    leader: Callable[[], str] = lambda: ""
    counted: Callable[[], float | None] = lambda: None


@asynccontextmanager
async def in_memory(
    client: Client, cluster: LiveCluster, in_force: PolicyInForce, events: EventWriter
) -> AsyncIterator[RunningLedger]:
    """The ledger of one process, rebuilt from the pods and workloads that exist."""
    ledger = MemoryLedger(time.monotonic, cluster.tenant_name)
    pods, workloads = ObservedPods(client, cluster, in_force), ObservedWorkloads(client, cluster, in_force)
    stranded = StrandedEvents(events, workloads.api_version, cluster.tenant_uid)

    def count(tenant: Tenant) -> Count:
        stale = "; ".join(pods.problems())
        gangs = () if stale else ledger.stranded(tenant)
        stranded.tell(tenant.name, gangs)
        return Count.of(ledger.usage(tenant), ledger.used(tenant), stale, gangs)

    writer = TenantStatusWriter(client, cluster, in_force.current, count)
    in_force.subscribe(writer.wake)
    ledger.subscribe(writer.wake)
    async with workloads.following(ledger.workloads), pods.following(ledger):
        following = {"pods": lambda: pods.synced and not pods.problems()}
        yield RunningLedger(ledger, writer.run, following, lambda: True, pods.last_held, pods.running)


@asynccontextmanager
async def on_the_api_server(
    client: Client,
    cluster: LiveCluster,
    in_force: PolicyInForce,
    events: EventWriter,
    election: Election,
    metrics: Metrics,
) -> AsyncIterator[RunningLedger]:
    """One replica of the ledger in the TenantQuotas' statuses."""
    versions = Versions()
    cluster.quotas.follow(versions.changed, versions.listed)
    versions.listed(cluster.quotas.objects)  # our memory begins here
    stored = StoredQuotas(client, versions, told=lambda outcome: metrics.count(LEDGER_WRITES, outcome))
    ledger, changes = KubernetesLedger(stored), Changes()
    versions.subscribe(changes.tenant)
    pods, workloads = ObservedPods(client, cluster, in_force), ObservedWorkloads(client, cluster, in_force)
    stranded = StrandedEvents(events, workloads.api_version, cluster.tenant_uid)
    world = _World(cluster, in_force, pods, workloads, stranded)
    world.subscribe(changes.everything)
    identity = f"{election.identity}_{uuid4().hex[:8]}"  # of two processes of one name only one may lead
    competing = LeaderElection(client, election.namespace, election.lease, identity, election.lease_seconds)

    last_round = _LastRound()

    async def lead(first: bool) -> None:  # noqa: FBT001 - as the election calls it
        await Leader(ledger, stored, world, changes, identity, election.create_timeout, told=last_round.done).lead(
            first
        )

    try:
        yield RunningLedger(
            ledger,
            lambda: competing.run(lead),
            {},
            lambda: competing.leading,
            pods.last_held,
            pods.running,
            lambda: competing.holder.rpartition("_")[0],
            lambda: last_round.time if competing.leading else None,
        )
    finally:
        await ledger.close()


class _LastRound:
    """When the leader's last round was done."""

    def __init__(self) -> None:
        self.time: float | None = None

    def done(self) -> None:
        self.time = time.time()


@dataclass(frozen=True, slots=True)
class _World:
    """The leader's world: see webhook.controller.world."""

    cluster: LiveCluster
    in_force: PolicyInForce
    observed: ObservedPods
    observed_workloads: ObservedWorkloads
    stranded: StrandedEvents

    def workloads(self, observer: WorkloadObserver) -> AbstractAsyncContextManager[ObservedWorkloads]:
        return self.observed_workloads.following(observer)

    def pods(self, observer: Observer) -> AbstractAsyncContextManager[ObservedPods]:
        return self.observed.following(observer)

    def wanted(self) -> Mapping[str, str]:
        whose = {each.name: self.cluster.tenant_name(each.name) for each in self.cluster.namespaces()}
        return {namespace: tenant for namespace, tenant in whose.items() if tenant is not None}

    def status(self, version: Version, count: Count) -> Status:
        now, found = datetime.now(UTC).strftime(RFC_3339), replace(version.quota, tenant=version.tenant)
        return conditions_of(found, self.cluster.overlap(version.name), self.in_force.current(), count, now)

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        self.stranded.tell(tenant, gangs)

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.cluster.subscribe(listener)
        self.in_force.subscribe(listener)
