"""The cluster as a leader needs it, observed by this process: above all what the workloads that exist declare.

A workload that is a gang holds its charge as a whole.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Generic, Self, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.cluster.watched import Watched
from webhook.config.in_force import PolicyInForce
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.held_lines import HeldLines
from webhook.controllers.observed_pods import ObservedPods
from webhook.controllers.pending_gpus import PendingGpus
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, Conflict, Failed, NoSuchApi, NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.kube.wire import RFC_3339, metadata_of
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Declared, Holding
from webhook.ledger.versions import Version
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Phrase, Refused, Unreadable
from webhook.objects.view import Tree, read
from webhook.policy.quota.charges import Charge, StrandedGang, stranded
from webhook.policy.quota.held import NOT_OPENED
from webhook.policy.quota.tenant_status import Count, Status, conditions_of
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.workload import has_ended, is_partly_done, is_suspended
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

LISTED_SECONDS = 10.0
"""How long the first lists are waited for. What can't be listed, such as without the right to, is tried on beside."""
SERVED_SECONDS = 30.0
"""After this a kind that the API server does not serve is looked for again: its operator may have been installed."""


class WorkloadInformer(Generic[T]):
    """Follows each of these kinds that the API server serves.

    `project` makes of a workload what is kept of it, None where it has ended; it may look things up. `on_change` gets a
    uid with its new value, None once it is gone or has ended. `on_relist` gets the kind and all that exist of it.
    """

    def __init__(
        self,
        client: Client,
        project: Callable[[KindRow, msgspec.Raw], Awaitable[T | None]],
        on_change: Callable[[str, T | None], None],
        on_relist: Callable[[GroupKind, Mapping[str, T]], None],
    ) -> None:
        self._client = client
        self._project = project
        self._on_change = on_change
        self._on_relist = on_relist
        self._discovery = Discovery(client)
        self._followed: dict[GroupKind, Reflector[T]] = {}
        self.api_versions: dict[str, str] = {}
        """In which version each kind that is followed is read, by its qualified name."""

    @asynccontextmanager
    async def following(self, rows: Callable[[], Iterable[KindRow]]) -> AsyncIterator[None]:
        """Follow the kinds of these rows, and those that come to be served. All have been listed, if they can be."""
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._follow(rows(), tasks)
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_SECONDS):
                    for reflector in self._followed.values():
                        await reflector.synced.wait()
            tasks.append(asyncio.create_task(self._follow_later(rows, tasks)))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._followed.clear()

    def relist(self) -> None:
        """Read and project all workloads again: the policy has changed."""
        for reflector in self._followed.values():
            reflector.relist()

    async def find(self, row: KindRow, namespace: str, name: str) -> tuple[str, T | None] | None:
        """The uid of the workload of that name and what is kept of it, as the API server has it now; None without one.

        Raises ApiError, also where the kind is not served now.
        """
        try:
            version = await self._discovery.api_version(row.group, row.plural)
            tree = await self._client.get(path(version, row.plural, namespace, name))
        except NoSuchApi:
            raise
        except NotFound:
            return None
        except Unreadable as problem:
            raise ApiError(str(problem)) from problem
        raw = msgspec.Raw(msgspec.json.encode(tree))
        return metadata_of(raw).uid, await self._project(row, raw)

    async def _follow(self, rows: Iterable[KindRow], tasks: list[asyncio.Task[None]]) -> None:
        """Begin to follow what is served and is not followed yet."""
        for row in rows:
            if row.group_kind in self._followed:
                continue
            try:
                version = await self._discovery.api_version(row.group, row.plural)
            except Unreadable:
                self._on_relist(row.group_kind, {})
                continue
            reflector = self._reflector(row, version)
            self._followed[row.group_kind] = reflector
            self.api_versions[row.group_kind.qualified] = version
            tasks.append(asyncio.create_task(reflector.run()))

    async def _follow_later(self, rows: Callable[[], Iterable[KindRow]], tasks: list[asyncio.Task[None]]) -> None:
        while True:
            await asyncio.sleep(SERVED_SECONDS)
            try:
                await self._follow(rows(), tasks)
            except ApiError as error:
                log.warning("kinds not looked for", {"error": str(error)})

    def _reflector(self, row: KindRow, version: str) -> Reflector[T]:
        async def project(raw: msgspec.Raw) -> T | None:
            return await self._project(row, raw)

        def listed(found: Mapping[str, T]) -> None:
            self._on_relist(row.group_kind, found)

        return Reflector(self._client, Source(path(version, row.plural), key="uid"), project, self._on_change, listed)


ChargesOf = Callable[[Tree, KindRow, Metadata], Awaitable[tuple[Charge, ...] | None]]
"""What a workload holds as a whole, as its review would book it; None where that can't be told now."""


class ObservedWorkloads:
    """Follows the workloads that may be gangs, at one time for one observer."""

    def __init__(self, client: Client, in_force: PolicyInForce, charges_of: ChargesOf) -> None:
        self._client = client
        self._in_force = in_force
        self._charges_of = charges_of
        self._informer: WorkloadInformer[Declared] | None = None
        self._observer: WorkloadView | None = None
        self._known: dict[str, tuple[Charge, ...]] = {}
        in_force.subscribe(self._relist)  # other resources may count now, and weigh differently

    @asynccontextmanager
    async def following(self, observer: WorkloadView) -> AsyncIterator[Self]:
        """Tell the observer of all workloads that may be gangs, by quorum lists, and then of each change."""

        def changed(uid: str, found: Declared | None) -> None:
            if found is None:
                self._known.pop(uid, None)
                observer.release(uid)
            else:
                observer.observe(uid, found)

        self._observer = observer
        observer.expect(row.group_kind.qualified for row in self._rows())
        self._informer = WorkloadInformer(
            self._client, self._declared, changed, lambda kind, found: observer.observe_all(kind.qualified, found)
        )
        try:
            async with self._informer.following(self._rows):
                yield self
        finally:
            self._informer, self._observer = None, None
            self._known = {}

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
        metadata, partly_done, stopped = read(raw, Named).metadata, False, False
        try:
            tree: Tree = msgspec.json.decode(raw)
            if has_ended(tree):
                if self._observer is not None:
                    self._observer.release(metadata.uid)  # a list alone would not tell it from one that is not seen yet
                return None
            partly_done, is_deleted = is_partly_done(tree), metadata.deletion_timestamp is not None
            stopped = is_deleted or is_suspended(tree)
            in_another = self._in_force.current().kinds.is_gang(metadata.controller)
            charges = () if in_another or is_deleted else await self._charges_of(tree, row, metadata)
        except Refused as refused:
            log.warning(
                "workload not counted", {"kind": row.kind, "name": metadata.name, "reason": sentence(refused.refusal)}
            )
            charges = None
        except (ValueError, TypeError, RecursionError):
            log.exception("workload not counted", {"kind": row.kind, "name": metadata.name})
            charges = None
        if charges is None:
            charges = self._known.get(metadata.uid) or None
        else:
            self._known[metadata.uid] = charges
        kind, generation = row.group_kind.qualified, metadata.generation or 1
        created = metadata.creation_timestamp or ""
        return Declared(kind, metadata.namespace, metadata.name, generation, charges, partly_done, created, stopped)


REASON = "GangStranded"


class ObservedWorld:
    """The leader's world: see webhook.ledger.leader.world."""

    def __init__(
        self,
        cluster: Watched,
        in_force: PolicyInForce,
        pods: ObservedPods,
        workloads: ObservedWorkloads,
        events: EventWriter,
        lines: HeldLines,
        pending: PendingGpus,
    ) -> None:
        self._cluster = cluster
        self._in_force = in_force
        self._pods = pods
        self._workloads = workloads
        self._events = events
        self._lines = lines
        self._pending = pending
        self._stranded: dict[str, frozenset[str]] = {}

    def workloads(self, observer: WorkloadView) -> AbstractAsyncContextManager[ObservedWorkloads]:
        return self._workloads.following(observer)

    def pods(self, observer: PodView) -> AbstractAsyncContextManager[ObservedPods]:
        self._lines.begin()
        self._pending.begin()
        return self._pods.following(observer)

    def wanted(self) -> Mapping[str, str]:
        whose = {each.name: self._cluster.tenant_name(each.name) for each in self._cluster.namespaces()}
        return {namespace: tenant for namespace, tenant in whose.items() if tenant is not None}

    def status(self, version: Version, count: Count) -> Status:
        now, found = datetime.now(UTC).strftime(RFC_3339), replace(version.quota, tenant=version.tenant)
        told = conditions_of(found, self._cluster.overlap(version.name), self._in_force.current(), count, now)
        before = version.quota.status
        told |= self._lines.status(version.name, before, has_queue=version.in_force.has_queue)
        return told | self._pending.status(version.name, before)

    def lets_go(self, namespace: str) -> bool:
        found = self._cluster.seen_namespace(namespace)
        if found is None:
            return False  # it is new, and so is what we know of it
        tenant, mode = self._cluster.tenant(found), self._in_force.current().mode_in(found.labels)
        keeps = tenant is not None and not tenant.charged_elsewhere and tenant.on_exceed in ("Hold", "Deny")
        return not keeps or mode is not Mode.Enforce

    async def open_gate(self, uid: str, holding: Holding) -> None:
        try:
            await self._pods.open_gate(uid, holding)
        except (Conflict, NotFound):
            raise  # it has changed or is gone, and is looked at again
        except Failed as refused:
            told = sentence(Phrase("gate-not-opened", problem=refused.said or str(refused)))
            self._events.add(Regarding.pod(uid, holding), NOT_OPENED, told)
            raise

    def tell_queue(self, tenant: str, queue: Sequence[Queued]) -> None:
        self._lines.tell(tenant, queue)

    def now(self) -> float:
        return time.time()

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        """An event on each gang, and on its TenantQuota, when it comes to that."""
        before = self._stranded.get(tenant, frozenset())
        for gang in gangs:
            if gang.uid not in before:
                self._tell(tenant, gang)
        self._stranded[tenant] = frozenset(gang.uid for gang in gangs)

    def subscribe(self, listener: Callable[[], None]) -> None:
        self._cluster.subscribe(listener)
        self._in_force.subscribe(listener)

    def _tell(self, tenant: str, gang: StrandedGang) -> None:
        told = sentence(stranded((gang,)))
        kind = gang.kind.partition(".")[0]
        version = self._workloads.api_version(gang.kind)
        self._events.add(Regarding(version, kind, gang.name, gang.uid, gang.namespace), REASON, told)
        if uid := self._cluster.tenant_uid(tenant):
            self._events.add(Regarding.tenant_quota(tenant, uid), REASON, told)
