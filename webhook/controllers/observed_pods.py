"""Passes the GPUs of existing pods to the ledger, by their claims and by their nodes."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from sys import intern
from typing import Self

from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import ENDED, LONGEST_MESSAGE, PodInformer, SeenPod, has_work_to_lose, seen_pod
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.claimed_devices import PodClaims
from webhook.controllers.placements import seconds_between
from webhook.controllers.pods_on_nodes import (
    NO_CLAIMS,
    NO_FLAVOR,
    WITHIN_A_SECOND,
    Bound,
    ObservedPod,
    Placed,
    PodsOnNodes,
    PodWork,
    counted,
)
from webhook.kube.client import listed_objects, path
from webhook.kube.errors import ApiError, NotFound
from webhook.kube.reflector import patiently
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Gated, Holding
from webhook.objects.pods import LONGEST_UID, WITHOUT_QUOTA_GATE
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.times import unix_seconds
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.checkpoint.work_lost import MAX_AT_RISK, max_at_risk
from webhook.policy.quota.charges import Charge, charge_of, flavor_on, tier_counted
from webhook.policy.quota.demand import NOTHING
from webhook.policy.quota.queue_status import WAITS_FOR
from webhook.policy.saves.save_requests import SAVE_REQUESTED
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Devices
from webhook.report.gpus_now import WaitingPod
from webhook.report.waiting import gates_said

log = logging.getLogger(__name__)

BURST_SECONDS = 3.0
"""Seconds of look-ups that a namespace may take at once, enough for the owners of some thousand pods."""
SHARE = 0.1
"""The share of time that a namespace's look-ups may take after that."""
MOST_NAMESPACES = 1024
FORGOTTEN = 60.0
"""Seconds after the last try to open a gate until it is forgotten. Tries come every few seconds while the pod waits."""


def _waits(seen: SeenPod, holding: Holding) -> WaitingPod | None:
    """Return how a pod waits for a node; None if it has one, has no GPUs or is being deleted."""
    metadata, spec = seen.metadata, seen.spec
    if spec.node_name or metadata.deletion_timestamp or not holding.charge.gpus:
        return None
    owner, workload = metadata.controller, f"Pod/{metadata.name}"
    # People read the name, and users may write any text there, so it has to be a possible name of an object.
    if owner and len(owner.kind + owner.name) <= LONGEST_UID and _NAME.fullmatch(owner.kind + owner.name):
        workload = f"{owner.kind}/{owner.name}"
    gates = [str(each["name"]) for each in spec.scheduling_gates if isinstance(each, dict) and "name" in each]
    why = gates_said(gates) if gates else seen.unscheduled or "the scheduler has not looked at it yet"
    since, why = metadata.creation_timestamp or "", intern(why[:LONGEST_MESSAGE])
    return WaitingPod(holding, intern(workload), since, why, gated=bool(gates))


_NAME = re.compile(r"[A-Za-z0-9.:_-]+")


def _short(uid: str) -> str:
    """Return the uid of an owner or gang as a pod names it; "" if it is too long to be a uid."""
    return uid if len(uid) <= LONGEST_UID else ""


@lru_cache(maxsize=1024)
def _alike(gpus: Decimal, tier: str | None, flavor: str | None) -> Charge:
    """Return one object for all pods with this charge, because most of tens of thousands of pods have the same."""
    return Charge(gpus, tier, flavor)


class LookupShare:
    """The time that each namespace has left for look-ups, so that they do not delay the watch of all pods for long.

    A pod's owners are read before its event is passed on. A user who edits a pod again and again may name another owner
    each time, of a megabyte. Without a limit the leader would see the pods of all tenants a minute late. `clock`
    returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_at: dict[str, float] = {}
        """The time at which a namespace's look-ups so far are no more than its share."""

    def is_left(self, namespace: str) -> bool:
        return self._paid_at.get(namespace, 0.0) <= self._clock() + BURST_SECONDS / SHARE

    @contextmanager
    def spending(self, namespace: str) -> Iterator[None]:
        """Count the time of a look-up."""
        began = self._clock()
        try:
            yield
        finally:
            now = self._clock()
            self._paid_at[namespace] = max(self._paid_at.get(namespace, now), now) + (now - began) / SHARE
            if len(self._paid_at) > MOST_NAMESPACES:
                self._paid_at = {each: paid for each, paid in self._paid_at.items() if paid > now}


Opened = Callable[[str, Holding, float | None], None]


class ObservedPods(PodsOnNodes):
    """Follows pods for the observer of a leader during its term. At other times it knows no pods.

    The observer does not see a pod until its claims were read, so that its reservation stays until then. `opened` gets
    each pod whose gate it opens, its GPUs, and for how many seconds it was gated; None if not known.
    """

    def __init__(self, cluster: LiveCluster, active: ActivePolicy, bound: Bound, opened: Opened) -> None:
        super().__init__(PodView(lambda _: None), self._flavor_on, bound)
        self._client = cluster.client
        self._cluster = cluster
        self._opened = opened
        self._failing: dict[str, tuple[str, float, float]] = {}
        """The namespace of each pod whose gate fails to open, and when that was tried first and last."""
        self._active = active
        self._informer: PodInformer[ObservedPod] | None = None
        self._known_since = 0.0
        self._claims = PodClaims(cluster.lookups, None, self._counts)
        self._lookup_share = LookupShare()
        cluster.known.nodes.subscribe(self.node_changed)
        active.subscribe(self._relist)  # other resources may count now, and weigh differently

    @property
    def synced(self) -> bool:
        return self._informer is not None and self._informer.synced

    @property
    def known_for(self) -> float:
        """Seconds for which all pods have been known; 0 while they are not."""
        return time.monotonic() - self._known_since if self.synced else 0.0

    def problems(self) -> list[str]:
        of_pods = self._informer.problems() if self._informer else []
        return [*of_pods, *self._claims.problems(), *self._cluster.known.nodes.problems()]

    @asynccontextmanager
    async def following(self, observer: PodView) -> AsyncIterator[Self]:
        """Pass all existing pods to the observer by a quorum list, and then each change."""
        self.begin(observer)
        self._claims = PodClaims(self._cluster.lookups, None, self._counts)
        informer = PodInformer(self._client, self._project, self._pod_changed, self._pods_listed)
        async with self._claims.followed(self._client), informer as pods:
            self._informer, self._known_since = pods, time.monotonic()
            reading = list[asyncio.Task[None]]()
            try:
                await patiently("all pods", pods.wait_synced(), pods.problems)
                self._known_since = time.monotonic()
                reading.append(asyncio.create_task(self._read_again()))
                yield self
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
                self._informer = self._claims.watched = None
                self.begin(PodView(lambda _: None))

    async def ended_since(self, since: float) -> list[tuple[str, Placed]]:
        """Return the pods on nodes that have ended after a time and still exist, by uid. Raises ApiError."""
        found = list[tuple[str, Placed]]()
        for phase in ENDED:
            pages = self._client.list_pages(path("v1", "pods"), {"fieldSelector": f"status.phase={phase}"})
            async for raw in listed_objects(pages):
                try:
                    seen = seen_pod(raw)
                except Refused:
                    continue
                if seen.ended is None or seen.ended + WITHIN_A_SECOND <= since or not seen.spec.node_name:
                    continue
                observed = await self._project(seen)
                if observed is not None and observed.holding is not None:
                    holding = counted(observed.holding, self._flavor_on(observed.node))
                    bound = unix_seconds(observed.bound) or seen.began or seen.ended
                    placed = Placed(holding, bound + WITHIN_A_SECOND, seen.ended + WITHIN_A_SECOND)
                    found.append((seen.metadata.uid, placed))
        return found

    def last_used(self, uid: str) -> Holding | None:
        return self.observer.last_used(uid)

    async def find(self, namespace: str, name: str) -> tuple[str, Holding | None] | None:
        """Return the uid and GPUs of the pod of that name by a quorum read; None without one.

        Raises ApiError if it can't be read, or its claims can't.
        """
        found = await self._following.find(namespace, name)
        return (found[0], self._counted(found[1])) if found else None

    async def open_gate(self, uid: str, holding: Holding) -> None:
        """Remove our gate from a pod as it was seen. Raises ApiError; Conflict if the pod has changed since."""
        at = {"uid": uid, "resourceVersion": holding.gated.version if holding.gated else ""}
        where = path("v1", "pods", holding.namespace, holding.name)
        try:
            await self._client.patch(where, {"metadata": at, "spec": WITHOUT_QUOTA_GATE}, strategic=True)
        except NotFound:
            self._failing.pop(uid, None)
            raise
        except ApiError:
            now = time.monotonic()
            first = self._failing[uid][1] if uid in self._failing else now
            self._failing[uid] = holding.namespace, first, now
            raise
        self._failing.pop(uid, None)
        since = holding.gated.since if holding.gated else ""
        self._opened(uid, holding, seconds_between(since, datetime.now(UTC).isoformat()))

    def stuck_gates(self) -> Iterator[tuple[str, float]]:
        """Yield the namespace of each pod whose gate can't be opened, and for how many seconds that was tried."""
        now = time.monotonic()
        self._failing = {uid: each for uid, each in self._failing.items() if now - each[2] < FORGOTTEN}
        for namespace, first, _ in self._failing.values():
            yield namespace, now - first

    async def list_in(self, namespace: str) -> dict[str, Holding]:
        """Return the GPUs of the pods of a namespace by a quorum read, by uid. Raises ApiError like `find`."""
        found = await self._following.list_in(namespace)
        waiting = {uid for uid, each in found.items() if each.claimed.unread and not each.claimed.passing}
        holdings = {uid: self._counted(each) for uid, each in found.items() if uid not in waiting}
        return {uid: holding for uid, holding in holdings.items() if holding is not None}

    @property
    def _following(self) -> PodInformer[ObservedPod]:
        if self._informer is None:
            raise AssertionError("pods are not followed")
        return self._informer

    def _counts(self, devices: Devices) -> bool:
        return self._active.current().weights.of_devices(devices.device_class, devices.profile) > 0

    def _counted(self, observed: ObservedPod | None) -> Holding | None:
        if observed is None:
            return None
        if observed.claimed.unread:
            raise ApiError("the pod's resource claims can't be read")
        return counted(observed.holding, self._flavor_on(observed.node)) if observed.holding else None

    def _flavor_on(self, node: str) -> str | None:
        labels = self._cluster.known.nodes.labels(node)
        return None if labels is None else flavor_on(labels, self._active.current().flavors) or NO_FLAVOR

    def _pod_changed(self, uid: str, found: ObservedPod | None) -> None:
        self._claims.pod_changed(uid, found)
        if self._informer is not None and not (found and found.claimed.unread):
            self.pod_changed(uid, found)

    def _pods_listed(self, found: Mapping[str, ObservedPod]) -> None:
        self._claims.pods_listed(found)
        if self._informer is not None:
            self.pods_listed(found)

    def _relist(self) -> None:
        if self._informer is not None:
            self._informer.relist()

    async def _project(self, seen: SeenPod) -> ObservedPod | None:
        """Reduce a pod to its GPUs and how it waits; None for a pod that does not count and has no claims."""
        policy, metadata, spec = self._active.current(), seen.metadata, seen.spec
        claimed = await self._claims.of(seen) if spec.resource_claims else NO_CLAIMS
        charge = None if claimed.unread else charge_of(seen, claimed.devices, policy)
        if charge is None and not (claimed.unread or metadata.deletion_timestamp) and seen.waits_for_quota:
            # A pod without GPUs waits behind our gate with its gang.
            charge = _alike(NOTHING, tier_counted(spec.priority_class_name, spec.priority, policy.tiers), None)
        if charge is None:
            return ObservedPod(metadata.namespace, metadata.name, claimed) if spec.resource_claims else None
        workload, may_be_gang = await self._makers_of(seen, policy)
        gated = None
        if seen.waits_for_quota:
            since, reported = metadata.creation_timestamp or "", seen.unscheduled.startswith(WAITS_FOR)
            gated = Gated(spec.priority or 0, since, metadata.resource_version, reported, may_be_gang)
        holding = Holding(
            intern(metadata.namespace),
            charge if charge.shared else _alike(charge.gpus, charge.tier, charge.flavor),
            seen.ends_in,
            intern(_short(metadata.controller_uid)),
            seen.preempted and seen.ends_within(policy.checkpoint.max_grace_period),
            metadata.name,
            intern(_short(gang_beyond(metadata))),
            gated,
            workload,
        )
        work = None
        if seen.began is not None and has_work_to_lose(seen, policy):
            notes = metadata.annotations  # one that can't be read counts as none
            claims = tuple(intern(each) for each in sorted({each.claim_name for each in spec.volumes} - {""}))
            requested = unix_seconds(notes.get(SAVE_REQUESTED))
            work = PodWork(seen.began, max_at_risk(notes.get(MAX_AT_RISK, "")), requested, claims)
        node, waits = intern(spec.node_name), _waits(seen, holding)
        bound = seen.bound or metadata.creation_timestamp or ""  # a pod that names its node is bound by its create
        return ObservedPod(holding.namespace, holding.name, claimed, holding, node, waits, work, bound)

    async def _makers_of(self, seen: SeenPod, policy: TierPolicy) -> tuple[str, bool]:
        """Return the uid of the outermost workload that makes a pod, and whether its controller may be a gang.

        Without a queue neither is needed, so they are "" and False. A controller of a gang's kind may be a gang, also
        if it can't be read now, unless the API server does not serve that kind. The uid is "" too if the pods of this
        namespace have used their share of look-ups. Then only pods of one controller replace each other.
        """
        metadata = seen.metadata
        owner, home = metadata.controller, self._cluster.known.seen_namespace(metadata.namespace)
        tenant = self._cluster.known.tenant(home) if home else None
        if owner is None or not (seen.waits_for_quota or (tenant is not None and tenant.has_queue)):
            return "", False
        may_be_gang = policy.kinds.is_gang(owner)
        if not self._lookup_share.is_left(metadata.namespace):
            return "", may_be_gang
        try:
            with self._lookup_share.spending(metadata.namespace):
                found = await self._cluster.lookups.outermost_owner(metadata.namespace, owner, policy.kinds)
        except Unreadable:
            return "", may_be_gang
        return (intern(_short(found.uid)), may_be_gang) if found else ("", False)

    async def _read_again(self) -> None:
        """Count pods again when their claims have changed or can be read now, because no pod event shows that."""
        while True:
            for uid, pod in (await self._claims.due()).items():
                try:
                    found = await self._following.find(pod.namespace, pod.name)
                    if self._claims.is_newest(uid, pod) and found is not None and found[0] == uid:
                        self._pod_changed(*found)
                except ApiError as error:
                    log.warning("claims not counted", {"pod": pod.name, "reason": str(error)})
                    self._claims.read_again(uid)
                except Exception:
                    log.exception("claims not counted", {"pod": pod.name})
