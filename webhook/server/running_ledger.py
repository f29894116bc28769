"""The ledger of one replica in the TenantQuotas' statuses, and the parts that update it while the process serves."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from uuid import uuid4

import msgspec
from msgspec import structs

from webhook.admission.facts import facts_of_workload
from webhook.cluster.live import LiveCluster
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.event_writer import EventWriter, Outermost
from webhook.controllers.gpu_hours import BudgetMeters
from webhook.controllers.gpu_seconds import PendingGpus
from webhook.controllers.observed_pods import ObservedPods
from webhook.controllers.observed_world import ChargesOf, ObservedWorkloads, ObservedWorld
from webhook.controllers.placements import Placements
from webhook.controllers.queued_pods import QueuedPods, QueueStatuses
from webhook.kube.leader_election import LeaderElection
from webhook.ledger.accounts import Accounts, HandOver
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.counting import Changes
from webhook.ledger.leader.leader import Leader
from webhook.ledger.leader.terms import Term
from webhook.ledger.protocol import Holding
from webhook.ledger.versions import Versions
from webhook.objects.pods import Metadata, OwnerReference
from webhook.objects.view import Tree
from webhook.policy.decide_workload import decide_workload
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_status import is_active
from webhook.policy.workloads.kind_table import KindRow
from webhook.server.bookings_port import BookingsPort
from webhook.server.metrics import Metrics
from webhook.server.run import AppPort
from webhook.server.settings import Settings


class LedgerParts(msgspec.Struct, frozen=True):
    """The parts of a replica's ledger, whether the replica leads or not. `ledger_parts` puts them together."""

    ledger: Accounts
    store: KubernetesStore
    changes: Changes
    world: ObservedWorld
    pods: ObservedPods
    queues: QueueStatuses
    queued: QueuedPods
    pending: PendingGpus
    hours: BudgetMeters
    placements: Placements

    def make_leader(self, identity: str, create_timeout: float, done: Callable[[], None] = lambda: None) -> Leader:
        """Return the leader of one term. `done` is called after each round of counting."""
        return Leader(Term(self.ledger, identity), self.store, self.world, self.changes, create_timeout, done=done)


def outermost_by(cluster: LiveCluster, active: ActivePolicy) -> Outermost:
    async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
        return await cluster.lookups.outermost_owner(namespace, first, active.current().kinds)

    return outermost


def ledger_parts(
    cluster: LiveCluster,
    active: ActivePolicy,
    events: EventWriter,
    hand_over: HandOver,
    leads: Callable[[], bool],
    metrics: Metrics,
) -> LedgerParts:
    """Wire a replica's ledger. Run `queued`, `pending` and `hours`, and close `ledger` at the end."""
    client, versions = cluster.client, Versions()
    cluster.known.quotas.follow(versions.changed, versions.listed)
    versions.listed(cluster.known.quotas.objects)  # our memory begins here
    store = KubernetesStore(
        client,
        versions,
        report=lambda outcome: metrics.count("gpu_tiers_ledger_writes_total", outcome),
        is_active=lambda row: is_active(row, active.current()),
    )
    ledger, changes = Accounts(store, hand_over=hand_over), Changes()
    versions.subscribe(changes.tenant)
    placements = Placements(
        lambda seconds, tier: metrics.observe("gpu_tiers_pending_seconds", seconds, tier),
        lambda seconds, *labels: metrics.observe("gpu_tiers_eviction_seconds", seconds, *labels),
    )
    workloads = ObservedWorkloads(client, active, _charges_of(cluster, active))
    queued = QueuedPods(client, events, outermost_by(cluster, active))

    def opened(uid: str, holding: Holding, seconds: float | None) -> None:
        if seconds is not None:
            metrics.observe("gpu_tiers_queued_seconds", seconds, holding.charge.tier or "")
        queued.opened(uid, holding, seconds)

    pods = ObservedPods(cluster, active, placements.note_bound, opened)
    queues = QueueStatuses(pods.workload_of, changes.tenant, queued.show)

    def knows() -> bool:
        return leads() and pods.synced

    pending = PendingGpus(pods.unplaced, pods.running, cluster.known, knows, changes.tenant)
    hours = BudgetMeters(cluster.known, pods.placed, pods.ended_since, knows, client.now, changes.tenant, events)
    pods.on_node, pods.all_listed, pods.now = hours.pod_changed, hours.count_again, client.now
    world = ObservedWorld(cluster.known, pods, workloads, events, queues, pending, hours)
    world.subscribe(changes.everything)
    return LedgerParts(ledger, store, changes, world, pods, queues, queued, pending, hours, placements)


class RunningLedger(LedgerParts, frozen=True, kw_only=True):
    """The ledger of a replica that competes to lead.

    `leader`: the replica that leads, "" if none does. `counted`: when it last updated the accounts to match the pods,
    as a Unix time; None while it does not lead. `ports`: the port on which it takes bookings from other replicas.
    """

    run: Callable[[], Coroutine[None, None, None]]
    leading: Callable[[], bool]
    leader: Callable[[], str]
    counted: Callable[[], float | None]
    ports: tuple[AppPort, ...]

    def knows_pods(self) -> bool:
        """Tell whether it leads and has seen all pods, which takes a leader a moment."""
        return self.leading() and self.pods.synced


@asynccontextmanager
async def running_ledger(
    cluster: LiveCluster,
    active: ActivePolicy,
    events: EventWriter,
    settings: Settings,
    hand_over: BookingsPort,
    metrics: Metrics,
) -> AsyncIterator[RunningLedger]:
    identity = f"{settings.replica}_{uuid4().hex[:8]}"  # two processes of one name must not lead at the same time
    lease, seconds = f"{settings.namespace}/{settings.lease}", settings.lease_seconds
    competing = LeaderElection(cluster.client, lease, identity, seconds, address=hand_over.address)
    parts = ledger_parts(cluster, active, events, hand_over.to(competing), lambda: competing.leading, metrics)
    last_round: float | None = None

    def round_done() -> None:
        nonlocal last_round
        last_round = time.time()

    async def lead(first: bool) -> None:  # noqa: FBT001 - as the election calls it
        await parts.make_leader(identity, settings.create_timeout, round_done).lead(first)

    try:
        yield RunningLedger(
            *structs.astuple(parts),
            run=lambda: competing.run(lead),
            leading=lambda: competing.leading,
            leader=lambda: competing.holder.rpartition("_")[0],
            counted=lambda: last_round if competing.leading else None,
            ports=tuple(hand_over.serving(identity, parts.ledger.take)),
        )
    finally:
        await parts.ledger.close()
        await hand_over.close()


def _charges_of(cluster: LiveCluster, active: ActivePolicy) -> ChargesOf:
    """Return the function for the charges that the review of a workload would book."""

    async def charges_of(tree: Tree, row: KindRow, metadata: Metadata) -> tuple[Charge, ...] | None:
        policy = active.current()
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        if known.unread_runtime or known.facts.unread_claims:
            return None
        decision = decide_workload(known.whole, known.facts, policy)
        return decision.gang.charges if decision and decision.gang else ()

    return charges_of
