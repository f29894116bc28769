"""What the workloads that exist declare, brought into the ledger of whoever leads: gangs hold a charge as a whole."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
import structlog

from webhook.admission.facts import facts_of_workload
from webhook.cluster.live import LiveCluster
from webhook.cluster.workload_informer import WorkloadInformer
from webhook.config.in_force import PolicyInForce
from webhook.kube.client import Client
from webhook.ledger.protocol import Declared, WorkloadObserver
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Refused
from webhook.objects.view import read
from webhook.policy.decide_workload import decide_workload
from webhook.policy.quota.charges import Charge
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.lifecycle import has_ended, is_partly_done

log = structlog.get_logger(__name__)

Tree = dict[str, Any]


class ObservedWorkloads:
    """Follows the workloads that may be gangs, at one time for one observer."""

    def __init__(self, client: Client, cluster: LiveCluster, in_force: PolicyInForce) -> None:
        self._client = client
        self._cluster = cluster
        self._in_force = in_force
        self._informer: WorkloadInformer[Declared] | None = None
        self._known: dict[str, tuple[Charge, ...]] = {}
        in_force.subscribe(self._relist)  # other resources may count now, and weigh differently

    @asynccontextmanager
    async def following(self, observer: WorkloadObserver) -> AsyncIterator[Self]:
        """Tell the observer of all workloads that may be gangs, by quorum lists, and then of each change."""

        def changed(uid: str, found: Declared | None) -> None:
            if found is None:
                self._known.pop(uid, None)
                observer.release(uid)
            else:
                observer.observe(uid, found)

        self._informer = WorkloadInformer(
            self._client, self._declared, changed, lambda kind, found: observer.observe_all(kind.qualified, found)
        )
        try:
            async with self._informer.following(self._rows):
                yield self
        finally:
            self._informer, self._known = None, {}

    def api_version(self, kind: str) -> str:
        """In which version a kind is read that is followed, such as PyTorchJob.kubeflow.org."""
        return self._informer.api_versions[kind] if self._informer else ""

    async def find(self, kind: str, namespace: str, name: str) -> tuple[str, Declared | None] | None:
        """The uid of a workload and what it declares, as it is stored now; None without one. Raises ApiError."""
        row = next((each for each in self._rows() if each.group_kind.qualified == kind), None)
        if row is None or self._informer is None:
            return None
        return await self._informer.find(row, namespace, name)

    def _rows(self) -> Iterable[KindRow]:
        return [row for row in self._in_force.current().kinds.rows if row.gang]

    def _relist(self) -> None:
        if self._informer is not None:
            self._informer.relist()

    async def _declared(self, row: KindRow, raw: msgspec.Raw) -> Declared | None:
        """What it declares; what it did so far, where that can't be told now. None once it has ended.

        An object that nobody understands must not hold up the others of its kind.
        """
        metadata, partly_done = read(raw, Named).metadata, False
        try:
            tree: Tree = msgspec.json.decode(raw)
            if has_ended(tree):
                return None
            partly_done = is_partly_done(tree)
            charges = await self._charges(row, tree, metadata)
        except Refused as refused:
            log.warning("workload not counted", kind=row.kind, name=metadata.name, reason=refused.sentence)
            charges = None
        except (ValueError, TypeError, RecursionError):
            log.exception("workload not counted", kind=row.kind, name=metadata.name)
            charges = None
        if charges is None:
            charges = self._known.get(metadata.uid)
        elif charges:
            self._known[metadata.uid] = charges
        kind, generation = row.group_kind.qualified, metadata.generation or 1
        return Declared(kind, metadata.namespace, metadata.name, generation, charges, partly_done)

    async def _charges(self, row: KindRow, tree: Tree, metadata: Metadata) -> tuple[Charge, ...] | None:
        policy = self._in_force.current()
        if policy.kinds.is_gang(metadata.controller):
            return ()
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, self._cluster, policy)
        if known.unread or known.facts.unread:
            return None
        decision = decide_workload(known.whole, known.facts, policy)
        return decision.gang.charges if decision and decision.gang else ()
