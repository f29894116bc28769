"""One process of gpu-tiers in these tests: its client, its clock, its watches, its ledger, and how it leads."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import msgspec

from tests.ledger.simulated_api import NAMESPACES, PODS, TENANT_QUOTAS, WORKLOADS, SimulatedApi
from tests.ledger.simulated_client import SimulatedClient
from tests.ledger.virtual_time import loop
from webhook.cluster.pod_informer import PodInformer, SeenPod
from webhook.kube.errors import Failed, NotFound, Unreachable
from webhook.kube.reflector import Reflector, Source
from webhook.ledger.accounts import Accounts, HandOver, Outcome
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.counting import Changes
from webhook.ledger.leader.leader import Leader
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued
from webhook.ledger.leader.terms import Term
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import (
    Booked,
    Booking,
    Declared,
    GangBooking,
    Gated,
    Holding,
    TryAgain,
)
from webhook.ledger.versions import Version, Versions
from webhook.policy.quota.charges import Charge, Shortfall, StrandedGang
from webhook.policy.quota.tenant_quotas import TenantQuota, read_tenant_quota
from webhook.policy.quota.tenant_status import Count, Status

H = 75.0
TICK = 1e-6
KIND = "Job.batch"
TENANT = "example.com/tenant"
"""The label of a namespace that says whose it is."""

_names = itertools.count(1)


def a_clock(ahead: float) -> Callable[[], float]:
    """Monotonic seconds of a process, `ahead` of others. No two readings are alike."""
    last = 0.0

    def clock() -> float:
        nonlocal last
        last = max(loop().time() + ahead, last + TICK)
        return last

    return clock


class Process:
    """Answers reviews from the start, and leads from `lead` to `stop_leading`."""

    def __init__(self, api: SimulatedApi, name: str, ahead: float = 0.0) -> None:
        self.name = name
        self.client: Any = SimulatedClient(api)
        self.clock = a_clock(ahead)
        self.versions = Versions(self.clock)
        self.stored = KubernetesStore(self.client, self.versions, self.clock)
        self.handed: list[Outcome] = []
        self.hands_to: Process | None = None
        """Whom it takes for the leader."""
        self.takes = True
        """False: it understands nothing that is handed to it."""
        hand_over = HandOver(
            lambda: self._handed if self.hands_to and not self.leads else None, self.handed.append, self.clock
        )
        self.ledger = Accounts(self.stored, self.clock, hand_over=hand_over)
        self.changes = Changes()
        self.versions.subscribe(self.changes.tenant)
        self.namespaces: dict[str, str] = {}
        self.stranded: dict[str, list[str]] = {}
        self.line: dict[str, list[str]] = {}
        self.leader: Leader | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None
        self._running = asyncio.Event()
        self._running.set()
        self._taking: set[asyncio.Task[bool]] = set()

    async def start(self) -> None:
        """Begin to watch TenantQuotas and namespaces; both have been listed once when this ends."""
        quotas = Reflector(
            self.client, Source(TENANT_QUOTAS), _tenant_quota, self.versions.changed, self.versions.listed
        )
        namespaces = Reflector(
            self.client, Source(NAMESPACES), _tenant_of, self._namespace_changed, self._namespaces_listed
        )
        self._tasks = [asyncio.create_task(each.run()) for each in (quotas, namespaces)]
        await quotas.synced.wait()
        await namespaces.synced.wait()

    async def book(self, booking: Booking | GangBooking) -> Booked | Shortfall | TryAgain:
        """The answer to a review."""
        try:
            return await self.ledger.book(booking)
        except TryAgain as again:
            return again

    @asynccontextmanager
    async def _handed(self, booking: Booking | GangBooking) -> AsyncIterator[Awaitable[bool]]:
        """Hand a booking over; it stays in the other socket whether or not we wait for an answer."""
        assert self.hands_to is not None
        if not self.hands_to.takes:
            raise Failed("HTTP 401", 401)
        taken: asyncio.Future[None] = asyncio.Future()
        answer = asyncio.create_task(self.hands_to._take(booking, taken))
        self.hands_to._taking.add(answer)
        await asyncio.wait([taken, answer], return_when=asyncio.FIRST_COMPLETED)
        yield _answered(answer)

    async def _take(self, booking: Booking | GangBooking, taken: asyncio.Future[None]) -> bool:
        await self._running.wait()
        taken.set_result(None)
        booked = await self.ledger.take(booking)
        await self._running.wait()
        return booked

    def lead(self, *, first: bool = False) -> None:
        """Acquire the Lease."""
        identity = f"{self.name}-{next(_names)}"
        self.leader = Leader(Term(self.ledger, identity), self.stored, self, self.changes, H, self.clock)
        self._leading = asyncio.create_task(self.leader.lead(first))

    @property
    def leads(self) -> bool:
        """Return whether it takes itself for the leader."""
        return self._leading is not None and not self._leading.done()

    def raise_what_ended_it(self) -> None:
        """Raise an error that no leader expects."""
        if self._leading is not None and self._leading.done() and not self._leading.cancelled():
            self._leading.result()

    async def stop_leading(self) -> None:
        """Lose the Lease, and know it."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)

    def pause(self) -> None:
        """SIGSTOP: it asks nothing, sees nothing and answers nothing."""
        self._running.clear()
        self.client.hold("")
        for kind in (PODS, WORKLOADS, NAMESPACES, TENANT_QUOTAS):
            self.client.view(kind).hold()

    def resume(self) -> None:
        """SIGCONT."""
        self._running.set()
        for kind in (PODS, WORKLOADS, NAMESPACES, TENANT_QUOTAS):
            self.client.view(kind).flow()
        self.client.release()

    async def kill(self) -> None:
        """Stop everything at once."""
        await self.stop_leading()
        for task in (*self._tasks, *self._taking):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._taking, return_exceptions=True)
        await self.ledger.close()

    # --- the leader's world: webhook.ledger.leader.terms.World

    @asynccontextmanager
    async def workloads(self, observer: WorkloadView) -> AsyncIterator["_Workloads"]:
        def notify(uid: str, declared: Declared | None) -> None:
            if declared is None:
                observer.release(uid)
            else:
                observer.observe(uid, declared)

        def listed(found: Mapping[str, Declared]) -> None:
            observer.observe_all(KIND, found)

        reflector = Reflector(self.client, Source(WORKLOADS, key="uid"), _declared, notify, listed)
        task = asyncio.create_task(reflector.run())
        try:
            await reflector.synced.wait()
            yield _Workloads(self.client)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def pods(self, observer: PodView) -> AsyncIterator["_Pods"]:
        async with PodInformer(self.client, _holding, _applied(observer), observer.observe_all) as pods:
            await pods.wait_synced()
            yield _Pods(pods)

    def wanted(self) -> Mapping[str, str]:
        return {namespace: tenant for namespace, tenant in self.namespaces.items() if tenant}

    def status(self, version: Version, count: Count) -> Status:
        return {"observedGeneration": version.quota.generation, "conditions": [{"type": "Exact"}] if count else []}

    def enforces(self, _: str) -> bool:
        return True

    def opens_all_gates(self, namespace: str) -> bool:
        version = self.versions.newest(self.namespaces.get(namespace, ""))
        return version is None or version.active.on_exceed not in ("Hold", "Deny")

    async def open_gate(self, uid: str, holding: Holding) -> None:
        assert holding.gated is not None
        at = {"uid": uid, "resourceVersion": holding.gated.version}
        pod = f"/api/v1/namespaces/{holding.namespace}/pods/{holding.name}"
        await self.client.patch(pod, {"metadata": at, "spec": {"schedulingGates": None}})

    def tell_queue(self, tenant: str, queue: Sequence[Queued]) -> None:
        self.line[tenant] = [each.unit.first.uid for each in queue]

    def now(self) -> float:
        return loop().time()

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        self.stranded[tenant] = [str(each) for each in gangs]

    def subscribe(self, _: Callable[[], None]) -> None:
        """Do nothing, because `changes` delivers every event."""

    def _namespace_changed(self, name: str, tenant: str | None) -> None:
        self.namespaces[name] = tenant or ""
        self.changes.everything()

    def _namespaces_listed(self, found: Mapping[str, str]) -> None:
        self.namespaces = dict(found)
        self.changes.everything()


async def _answered(answer: asyncio.Task[bool]) -> bool:
    await asyncio.wait([answer])
    if answer.cancelled():
        raise Unreachable("connection reset by peer")
    return answer.result()


class _Workloads:
    """webhook.ledger.leader.terms.Workloads."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def find(self, _: str, namespace: str, name: str) -> tuple[str, Declared | None] | None:
        try:
            tree = await self._client.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
        except NotFound:
            return None
        return tree["metadata"]["uid"], await _declared(msgspec.Raw(msgspec.json.encode(tree)))


async def _declared(raw: msgspec.Raw) -> Declared | None:
    """Return the GPUs that a workload declares by its label."""
    tree = msgspec.json.decode(raw)
    metadata = tree["metadata"]
    charges = (Charge(Decimal(tree["spec"]["gpus"]), None),)
    if (tree.get("status") or {}).get("ended"):
        return None
    created = metadata.get("creationTimestamp", "")
    return Declared(KIND, metadata["namespace"], metadata["name"], metadata["generation"], charges, created=created)


class _Pods:
    """webhook.ledger.leader.terms.Pods."""

    def __init__(self, informer: PodInformer[Holding]) -> None:
        self.find = informer.find
        self.list_in = informer.list_in
        self.problems = informer.problems


def _applied(observer: PodView) -> Callable[[str, Holding | None], None]:
    def notify(uid: str, holding: Holding | None) -> None:
        if holding is None:
            observer.release(uid)
        else:
            observer.observe(uid, holding)

    return notify


async def _holding(seen: SeenPod) -> Holding:
    """Return the GPUs that a pod uses by its label."""
    metadata = seen.metadata
    charge = Charge(_gpus(metadata.labels), None)
    return Holding(
        metadata.namespace,
        charge,
        seen.ends_in,
        metadata.controller_uid,
        seen.preempted,
        metadata.name,
        metadata.annotations.get("gang", ""),
        Gated(seen.spec.priority or 0, metadata.creation_timestamp or "", metadata.resource_version)
        if seen.waits_for_quota
        else None,
    )


def _gpus(labels: Mapping[str, str]) -> Decimal:
    return Decimal(labels["gpus"])


async def _tenant_quota(raw: msgspec.Raw) -> TenantQuota:
    return read_tenant_quota(raw)


async def _tenant_of(raw: msgspec.Raw) -> str:
    labels: dict[str, str] = msgspec.json.decode(raw)["metadata"].get("labels", {})
    return labels.get(TENANT, "")
