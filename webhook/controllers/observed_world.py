"""The cluster as this process observes it for the leader, mainly the charges that workloads declare."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Self

import msgspec
from msgspec.structs import replace

from webhook.cluster.watched import Watched
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.gpu_hours import BudgetMeters
from webhook.controllers.gpu_seconds import PendingGpus
from webhook.controllers.observed_pods import ObservedPods
from webhook.controllers.queued_pods import QueueStatuses
from webhook.kube.client import RFC_3339, Client, metadata_of, path
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, Conflict, Failed, NoSuchApi, NotFound
from webhook.kube.reflector import Reflector, Source
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Declared, Holding
from webhook.ledger.versions import Version
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Phrase, Refused, Unreadable
from webhook.objects.view import Tree, read
from webhook.policy.quota.charges import Charge, StrandedGang, stranded
from webhook.policy.quota.queue_status import NOT_OPENED
from webhook.policy.quota.tenant_status import Count, Status, conditions_of
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.workload import has_ended, is_partly_done, is_suspended
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

LISTED_SECONDS = 10.0
"""Seconds to wait for the first lists. A kind that can't be listed, such as without the right, is tried again later."""
SERVED_SECONDS = 30.0
"""Seconds after which a kind that is not served is looked for again, because its operator may have been installed."""


ChargesOf = Callable[[Tree, KindRow, Metadata], Awaitable[tuple[Charge, ...] | None]]
"""Returns the charges of a workload as a whole, as its review would book them; None if they can't be known now."""


@dataclass(eq=False)
class ObservedWorkloads:
    """Follows the workloads of all served kinds that may be gangs, for one observer at a time."""

    client: Client
    active: ActivePolicy
    charges_of: ChargesOf
    _observer: WorkloadView | None = None
    _known: dict[str, tuple[Charge, ...]] = field(default_factory=dict)
    _followed: dict[str, tuple[str, Reflector[Declared]]] = field(default_factory=dict)
    """The API version of each followed kind, by its qualified name, and its reflector."""

    def __post_init__(self) -> None:
        self.active.subscribe(self._relist)  # other resources may count now, and weigh differently

    @asynccontextmanager
    async def following(self, observer: WorkloadView) -> AsyncIterator[Self]:
        """Pass all workloads that may be gangs to the observer by quorum lists, and then each change.

        Kinds that can be listed within LISTED_SECONDS have been listed. Kinds that are served later are followed too.
        """
        self._observer, self._discovery = observer, Discovery(self.client)
        observer.expect(row.group_kind.qualified for row in self._rows())
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._follow(observer, tasks)
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_SECONDS):
                    for _, reflector in self._followed.values():
                        await reflector.synced.wait()
            tasks.append(asyncio.create_task(self._follow_later(observer, tasks)))
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._observer = None
            self._followed.clear()
            self._known.clear()

    def api_version(self, kind: str) -> str:
        """Return the API version of a followed kind, such as PyTorchJob.kubeflow.org; "" for others."""
        return self._followed[kind][0] if kind in self._followed else ""

    async def find(self, kind: str, namespace: str, name: str) -> tuple[str, Declared | None] | None:
        """Return the uid and charges of a workload as it is stored now; None if it does not exist.

        Raises ApiError, also if the kind is not served now.
        """
        row = next((each for each in self._rows() if each.group_kind.qualified == kind), None)
        if row is None or self._observer is None:
            return None
        try:
            version = await self._discovery.api_version(row.group, row.plural)
            tree = await self.client.get(path(version, row.plural, namespace, name))
        except NoSuchApi:
            raise
        except NotFound:
            return None
        except Unreadable as problem:
            raise ApiError(str(problem)) from problem
        raw = msgspec.Raw(msgspec.json.encode(tree))
        return metadata_of(raw).uid, await self._declared(row, raw)

    async def _follow(self, observer: WorkloadView, tasks: list[asyncio.Task[None]]) -> None:
        """Begin to follow the kinds that are served and not followed yet."""
        for row in self._rows():
            kind = row.group_kind.qualified
            if kind in self._followed:
                continue
            try:
                version = await self._discovery.api_version(row.group, row.plural)
            except Unreadable:
                observer.observe_all(kind, {})
                continue
            reflector = self._reflector(row, version, observer)
            self._followed[kind] = version, reflector
            tasks.append(asyncio.create_task(reflector.run()))

    async def _follow_later(self, observer: WorkloadView, tasks: list[asyncio.Task[None]]) -> None:
        while True:
            await asyncio.sleep(SERVED_SECONDS)
            try:
                await self._follow(observer, tasks)
            except ApiError as error:
                log.warning("kinds not looked for", {"error": str(error)})

    def _reflector(self, row: KindRow, version: str, observer: WorkloadView) -> Reflector[Declared]:
        def changed(uid: str, found: Declared | None) -> None:
            if found is None:
                self._known.pop(uid, None)
                observer.release(uid)
            else:
                observer.observe(uid, found)

        source = Source(path(version, row.plural), key="uid")
        listed = partial(observer.observe_all, row.group_kind.qualified)
        return Reflector(self.client, source, partial(self._declared, row), changed, listed)

    def _rows(self) -> Iterable[KindRow]:
        return [row for row in self.active.current().kinds.rows if row.gang]

    def _relist(self) -> None:
        for _, reflector in self._followed.values():
            reflector.relist()

    async def _declared(self, row: KindRow, raw: msgspec.Raw) -> Declared | None:
        """Return what a workload declares, or its last known charges if they can't be read; None once it has ended.

        A broken object must not block the others of its kind.
        """
        metadata, partly_done, stopped = read(raw, Named).metadata, False, False
        charges: tuple[Charge, ...] | None = None
        about = {"kind": row.kind, "name": metadata.name}
        try:
            tree: Tree = msgspec.json.decode(raw)
            if has_ended(tree):
                if self._observer is not None:
                    self._observer.release(metadata.uid)  # in a list it would look like one that is not seen yet
                return None
            partly_done, is_deleted = is_partly_done(tree), metadata.deletion_timestamp is not None
            stopped = is_deleted or is_suspended(tree)
            in_another = self.active.current().kinds.is_gang(metadata.controller)
            charges = () if in_another or is_deleted else await self.charges_of(tree, row, metadata)
        except Refused as refused:
            log.warning("workload not counted", {**about, "reason": sentence(refused.refusal)})
        except (ValueError, TypeError, RecursionError):
            log.exception("workload not counted", about)
        if charges is None:
            charges = self._known.get(metadata.uid) or None
        else:
            self._known[metadata.uid] = charges
        kind, generation = row.group_kind.qualified, metadata.generation or 1
        created = metadata.creation_timestamp or ""
        return Declared(kind, metadata.namespace, metadata.name, generation, charges, partly_done, created, stopped)


REASON = "GangStranded"


@dataclass(eq=False)
class ObservedWorld:
    """The cluster as the leader sees and changes it: see webhook.ledger.leader.terms."""

    cluster: Watched
    observed_pods: ObservedPods
    observed_workloads: ObservedWorkloads
    events: EventWriter
    queues: QueueStatuses
    pending: PendingGpus
    hours: BudgetMeters
    _stranded: dict[str, frozenset[str]] = field(default_factory=dict)

    def workloads(self, observer: WorkloadView) -> AbstractAsyncContextManager[ObservedWorkloads]:
        return self.observed_workloads.following(observer)

    def pods(self, observer: PodView) -> AbstractAsyncContextManager[ObservedPods]:
        self.queues.begin()
        self.pending.begin()
        self.hours.begin()
        return self.observed_pods.following(observer)

    def wanted(self) -> Mapping[str, str]:
        tenants = {each.name: self.cluster.tenant_name(each.name) for each in self.cluster.namespaces()}
        return {namespace: tenant for namespace, tenant in tenants.items() if tenant is not None}

    def status(self, version: Version, count: Count) -> Status:
        now, before = datetime.now(UTC).strftime(RFC_3339), version.quota.status
        policy, overlap = self.observed_workloads.active.current(), self.cluster.overlap(version.name)
        hours = self.hours.status(version.active, before)
        found = replace(version.quota, tenant=version.tenant, status=before | hours)
        fields = hours | conditions_of(found, overlap, policy, count, now)
        fields |= self.queues.status(version.name, before, has_queue=version.active.has_queue)
        return fields | self.pending.status(version.name, before)

    def enforces(self, namespace: str) -> bool:
        found = self.cluster.seen_namespace(namespace)
        return found is not None and self.observed_workloads.active.current().mode_in(found.labels) is Mode.Enforce

    def opens_all_gates(self, namespace: str) -> bool:
        found = self.cluster.seen_namespace(namespace)
        if found is None:
            return False  # it is new, and its tenant is not known yet
        tenant = self.cluster.tenant(found)
        if tenant is None or tenant.charged_elsewhere or not self.enforces(namespace):
            return True
        return not tenant.has_queue and tenant.on_exceed != "Deny"  # under Deny, pods in the queue keep their order

    async def open_gate(self, uid: str, holding: Holding) -> None:
        try:
            await self.observed_pods.open_gate(uid, holding)
        except Failed as refused:
            if not isinstance(refused, Conflict | NotFound):  # such a pod has changed or is gone, and is read again
                message = sentence(Phrase("gate-not-opened", problem=refused.said or str(refused)))
                self.events.add(Regarding.pod(uid, holding), NOT_OPENED, message)
            raise

    def tell_queue(self, tenant: str, queue: Sequence[Queued]) -> None:
        self.queues.tell(tenant, queue)

    def now(self) -> float:
        return time.time()

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        """Add an event on each gang that gets stranded, and on its TenantQuota."""
        before = self._stranded.get(tenant, frozenset())
        for gang in gangs:
            if gang.uid not in before:
                message, kind = sentence(stranded((gang,))), gang.kind.partition(".")[0]
                version = self.observed_workloads.api_version(gang.kind)
                self.events.add(Regarding(version, kind, gang.name, gang.uid, gang.namespace), REASON, message)
                if uid := self.cluster.tenant_uid(tenant):
                    self.events.add(Regarding.tenant_quota(tenant, uid), REASON, message)
        self._stranded[tenant] = frozenset(gang.uid for gang in gangs)

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.cluster.subscribe(listener)
        self.observed_workloads.active.subscribe(listener)
