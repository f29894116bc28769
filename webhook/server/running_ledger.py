"""The ledger of one replica in the TenantQuotas' statuses, and the parts that update it while the process serves."""

import time
from collections.abc import Callable
from functools import partial
from uuid import uuid4

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
from webhook.server.settings import Settings


def outermost_by(cluster: LiveCluster, active: ActivePolicy) -> Outermost:
    async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
        return await cluster.lookups.outermost_owner(namespace, first, active.current().kinds)

    return outermost


class ReplicaLedger:
    """The parts of a replica's ledger, both while it leads (`leading`) and while another replica does.

    Run `queued`, `pending` and `hours`, and close `ledger` at the end.
    """

    def __init__(
        self,
        cluster: LiveCluster,
        active: ActivePolicy,
        events: EventWriter,
        hand_over: HandOver,
        leading: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        """Wire the parts."""
        self.leading = leading
        client, versions = cluster.client, Versions()
        cluster.known.quotas.follow(versions.changed, versions.listed)
        versions.listed(cluster.known.quotas.objects)  # `follow` does not report the objects listed before
        written = partial(metrics.count, "gpu_tiers_ledger_writes_total")
        self.store = KubernetesStore(
            client,
            versions,
            report=written,
            is_active=lambda row: is_active(row, active.current()),
            rank=lambda tier: active.current().tiers.rank(tier),  # noqa: PLW0108 - the policy may change
        )
        self.ledger, self.changes = Accounts(self.store, hand_over=hand_over), Changes()
        changed = self.changes.tenant
        versions.subscribe(changed)
        waited = partial(metrics.observe, "gpu_tiers_pending_seconds")
        self.placements = Placements(waited, partial(metrics.observe, "gpu_tiers_eviction_seconds"))
        workloads = ObservedWorkloads(client, active, _charges_of(cluster, active))
        self.queued = QueuedPods(client, events, outermost_by(cluster, active))

        def opened(uid: str, holding: Holding, seconds: float | None) -> None:
            if seconds is not None:
                metrics.observe("gpu_tiers_queued_seconds", seconds, holding.charge.tier or "")
            self.queued.opened(uid, holding, seconds)

        self.pods = pods = ObservedPods(cluster, active, self.placements.note_bound, opened)
        self.queues = QueueStatuses(pods.workload_of, changed, self.queued.show)
        knows = self.knows_pods
        self.pending = PendingGpus(pods.unplaced, pods.running, cluster.known, knows, changed)
        self.hours = BudgetMeters(cluster.known, pods.placed, pods.ended_since, knows, client.now, changed, events)
        pods.on_node, pods.all_listed, pods.now = self.hours.pod_changed, self.hours.count_again, client.now
        self.world = ObservedWorld(cluster.known, pods, workloads, events, self.queues, self.pending, self.hours)
        self.world.subscribe(self.changes.everything)

    def knows_pods(self) -> bool:
        """Tell whether this replica leads and has listed all pods, which takes a new leader a moment."""
        return self.leading() and self.pods.synced

    def make_leader(self, identity: str, create_timeout: float, done: Callable[[], None] = lambda: None) -> Leader:
        """Return a Leader for one term, while this replica leads. `done` is called after each round of counting."""
        return Leader(Term(self.ledger, identity), self.store, self.world, self.changes, create_timeout, done=done)


class RunningLedger(ReplicaLedger):
    """The ledger of a replica that competes to lead. On `ports` it takes bookings from other replicas."""

    def __init__(
        self,
        cluster: LiveCluster,
        active: ActivePolicy,
        events: EventWriter,
        settings: Settings,
        hand_over: BookingsPort,
        metrics: Metrics,
    ) -> None:
        identity = f"{settings.replica}_{uuid4().hex[:8]}"  # two processes of one name must not lead at the same time
        lease, seconds = f"{settings.namespace}/{settings.lease}", settings.lease_seconds
        election = LeaderElection(cluster.client, lease, identity, seconds, address=hand_over.address)
        super().__init__(cluster, active, events, hand_over.to(election), lambda: election.leading, metrics)
        self.ports = tuple(hand_over.serving(identity, self.ledger.take))
        self._election, self._hand_over, self._create_timeout = election, hand_over, settings.create_timeout
        self._last_round: float | None = None

    async def run(self) -> None:
        """Take part in the election forever, and lead each term that this replica wins."""

        def round_done() -> None:
            self._last_round = time.time()

        async def lead(first: bool) -> None:  # noqa: FBT001 - as the election calls it
            self._last_round = None
            await self.make_leader(self._election.identity, self._create_timeout, round_done).lead(first)

        await self._election.run(lead)

    async def aclose(self) -> None:
        await self.ledger.close()
        await self._hand_over.close()

    def leader(self) -> str:
        """Return the replica that leads, "" if none does."""
        return self._election.holder.rpartition("_")[0]

    def counted(self) -> float | None:
        """Return the Unix time of the last complete round of counting, which may be of an earlier term.

        None before the first round, and while this replica does not lead.
        """
        return self._last_round if self.leading() else None


def _charges_of(cluster: LiveCluster, active: ActivePolicy) -> ChargesOf:
    """Return the function that returns the charges that the review of a workload would book: those of a gang.

    The function returns None if the workload's runtime or claims can't be read, and raises Refused for other facts.
    """

    async def charges_of(tree: Tree, row: KindRow, metadata: Metadata) -> tuple[Charge, ...] | None:
        policy = active.current()
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        if known.unread_runtime or known.facts.unread_claims:
            return None
        decision = decide_workload(known.whole, known.facts, policy)
        return decision.gang.charges if decision and decision.gang else ()

    return charges_of
