"""One replica's ledger in the TenantQuotas' statuses, with what keeps it right while the process serves."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import msgspec

from webhook.admission.facts import facts_of_workload
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.held_lines import HeldLines
from webhook.controllers.held_pods import HeldPods
from webhook.controllers.observed_pods import ObservedPods
from webhook.controllers.observed_world import ChargesOf, ObservedWorkloads, ObservedWorld
from webhook.controllers.pending_gpus import PendingGpus
from webhook.controllers.placements import OpenedGates, Placements
from webhook.controllers.verdict_events import Outermost
from webhook.kube.client import Client
from webhook.kube.leader_election import LeaderElection
from webhook.ledger.accounts import Accounts, HandOver
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.counting import Changes
from webhook.ledger.leader.leader import Leader
from webhook.ledger.protocol import Holding, Ledger
from webhook.ledger.versions import Versions
from webhook.objects.pods import Metadata, OwnerReference
from webhook.objects.view import Tree
from webhook.policy.decide_workload import decide_workload
from webhook.policy.quota.charges import Charge
from webhook.policy.workloads.kind_table import KindRow
from webhook.report.gpus_now import WaitingPod
from webhook.server.bookings_port import BookingsPort
from webhook.server.metric_table import EVICTION_SECONDS, HELD_SECONDS, LEDGER_WRITES, PENDING_SECONDS
from webhook.server.metrics import Metrics
from webhook.server.run import AppPort
from webhook.server.settings import Election


class RunningLedger(msgspec.Struct, frozen=True):
    """A ledger, and what keeps it right while the process serves.

    `last_held` tells what a pod holds, `running` what all pods on nodes hold, `working` which of them have work to lose
    and since when, and `waiting` those on none, while this process leads and `knows_pods`, which takes it a moment.
    `leader`: the replica that leads, "" where none does.
    `counted`: when it last brought the accounts in line with the pods, as a Unix time; None while it does not lead.
    `placements` measures how long pods waited, and wants to be told of evictions.
    `lines` has who waits for room, `gates` whose turn has come, and `held` says it to people: run it. Run `pending`
    too, which has the GPUs of pods without a node.
    `ports`: where it takes bookings from other replicas.
    """

    ledger: Ledger
    run: Callable[[], Awaitable[None]]
    leading: Callable[[], bool]
    last_held: Callable[[str], Holding | None]
    running: Callable[[], Iterator[tuple[str, Holding]]]
    working: Callable[[], Iterator[tuple[str, Holding, float]]]
    waiting: Callable[[], Iterable[WaitingPod]]
    placements: Placements
    knows_pods: Callable[[], bool]
    leader: Callable[[], str]
    counted: Callable[[], float | None]
    lines: HeldLines
    gates: OpenedGates
    held: HeldPods
    pending: PendingGpus
    ports: tuple[AppPort, ...]


class LedgerParts(msgspec.Struct, frozen=True):
    """What a replica's ledger is made of, whether the replica leads or not. `ledger_parts` puts it together."""

    ledger: Accounts
    store: KubernetesStore
    changes: Changes
    world: ObservedWorld
    pods: ObservedPods
    lines: HeldLines
    gates: OpenedGates
    held: HeldPods
    pending: PendingGpus
    placements: Placements

    def leader(self, identity: str, create_timeout: float, told: Callable[[], None] = lambda: None) -> Leader:
        """Return what leads for one term. `told` is called after each round of counting."""
        return Leader(self.ledger, self.store, self.world, self.changes, identity, create_timeout, told=told)


def ledger_parts(
    client: Client,
    cluster: LiveCluster,
    in_force: PolicyInForce,
    events: EventWriter,
    hand_over: HandOver,
    leads: Callable[[], bool],
    metrics: Metrics,
) -> LedgerParts:
    """Put a replica's ledger together. Run `held` and `pending`, and close `ledger` at the end."""
    versions = Versions()
    cluster.known.quotas.follow(versions.changed, versions.listed)
    versions.listed(cluster.known.quotas.objects)  # our memory begins here
    store = KubernetesStore(client, versions, told=lambda outcome: metrics.count(LEDGER_WRITES, outcome))
    ledger, changes = Accounts(store, hand_over=hand_over), Changes()
    versions.subscribe(changes.tenant)
    placements = Placements(
        lambda seconds, tier: metrics.observe(PENDING_SECONDS, seconds, tier),
        lambda seconds, *labels: metrics.observe(EVICTION_SECONDS, seconds, *labels),
    )
    pods = ObservedPods(client, cluster, in_force, placements.bound)
    workloads = ObservedWorkloads(client, in_force, _charges_of(cluster, in_force))
    held = HeldPods(client, events, _outermost(cluster, in_force))

    def opened(uid: str, holding: Holding, seconds: float | None) -> None:
        if seconds is not None:
            metrics.observe(HELD_SECONDS, seconds, holding.charge.tier or "")
        held.opened(uid, holding, seconds)

    gates = OpenedGates(opened)
    lines = HeldLines(pods.workload_of, changes.tenant, held.show)
    pending = PendingGpus(pods.unplaced, pods.running, cluster.known, lambda: leads() and pods.synced, changes.tenant)
    world = ObservedWorld(cluster.known, in_force, pods, workloads, events, lines, gates, pending)
    world.subscribe(changes.everything)
    return LedgerParts(ledger, store, changes, world, pods, lines, gates, held, pending, placements)


@asynccontextmanager
async def running_ledger(
    client: Client,
    cluster: LiveCluster,
    in_force: PolicyInForce,
    events: EventWriter,
    election: Election,
    hand_over: BookingsPort,
    metrics: Metrics,
) -> AsyncIterator[RunningLedger]:
    identity = f"{election.identity}_{uuid4().hex[:8]}"  # of two processes of one name only one may lead
    competing = LeaderElection(
        client, election.namespace, election.lease, identity, election.lease_seconds, address=hand_over.address
    )
    parts = ledger_parts(client, cluster, in_force, events, hand_over.to(competing), lambda: competing.leading, metrics)
    pods, last_round = parts.pods, list[float | None]([None])

    def round_done() -> None:
        last_round[0] = time.time()

    async def lead(first: bool) -> None:  # noqa: FBT001 - as the election calls it
        await parts.leader(identity, election.create_timeout, round_done).lead(first)

    try:
        yield RunningLedger(
            parts.ledger,
            lambda: competing.run(lead),
            lambda: competing.leading,
            pods.last_held,
            pods.running,
            pods.working,
            pods.waiting,
            parts.placements,
            lambda: pods.synced,
            lambda: competing.holder.rpartition("_")[0],
            lambda: last_round[0] if competing.leading else None,
            parts.lines,
            parts.gates,
            parts.held,
            parts.pending,
            tuple(hand_over.serving(identity, parts.ledger.take)),
        )
    finally:
        await parts.ledger.close()
        await hand_over.close()


def _outermost(cluster: LiveCluster, in_force: PolicyInForce) -> Outermost:
    async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
        return await cluster.lookups.owners.outermost(namespace, first, in_force.current().kinds)

    return outermost


def _charges_of(cluster: LiveCluster, in_force: PolicyInForce) -> ChargesOf:
    """What the review of a workload would book."""

    async def charges_of(tree: Tree, row: KindRow, metadata: Metadata) -> tuple[Charge, ...] | None:
        policy = in_force.current()
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        if known.unread_runtime or known.facts.unread_claims:
            return None
        decision = decide_workload(known.whole, known.facts, policy)
        return decision.gang.charges if decision and decision.gang else ()

    return charges_of
