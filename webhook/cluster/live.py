"""The cluster of an API server: watched facts, and single objects that a review looks up.

Among them are the pods of a namespace that use a ResourceClaim, that name another scheduler's group, or that are being
deleted. A claim is a pod's own if the pod controls it, and if the claim's annotation names the pod's entry or the pod's
status names the claim. Source: pkg/controller/resourceclaim in kubernetes.
"""

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

import msgspec
from msgspec import structs

from webhook.cluster import views
from webhook.cluster.cluster import Cluster
from webhook.cluster.pod_informer import RUNNING, SeenPod, seen_pod
from webhook.cluster.watched import Watched, in_time
from webhook.kube.client import METADATA, Client, listed_objects, path
from webhook.kube.discovery import Discovery, is_allowed, use_of_class
from webhook.kube.errors import NoSuchApi, NotFound
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.group_kind import POD_GROUP, GroupKind
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Metadata, Named, OwnerReference, Pod, PodClaim
from webhook.objects.refusal import Missing, Unreadable
from webhook.objects.user import User
from webhook.objects.view import Tree, View, read, view
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group
from webhook.policy.workloads.claims import GROUP
from webhook.policy.workloads.kind_table import KindRow, KindTable, RuntimeKinds
from webhook.policy.workloads.pod_groups import GroupSource, named_groups
from webhook.policy.workloads.workload import Devices, Workload

log = logging.getLogger(__name__)

MADE_FOR = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim from a template, with the name of the pod's entry for it."""
OBJECT_SECONDS = 5.0
"""Seconds for which users' rights are cached, and owners, groups and claims if the look-ups are not `fresh`."""
MOST_OBJECTS = 1024
MOST_NAMESPACES = 64
QUOTA_SECONDS = 2.0
"""Seconds for which a namespace's ResourceQuotas are cached, and waited for. They only improve a refusal's offers."""
LONGEST_NAME = 253
"""Characters of a name in Kubernetes. A pod may name a group with more."""

T = TypeVar("T")


class _Deletion(View, frozen=True):
    """The part of a pod's metadata about its deletion."""

    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class _Deleted(View, frozen=True):
    metadata: _Deletion = _Deletion()


class LiveLookups(views.ObjectLookups, msgspec.Struct, frozen=True):
    """Look-ups of objects of an API server. Answers are cached for a moment, and `fresh` leaves out older ones.

    Concurrent reviews share a look-up only if it began after all of them. So a pod that is created after its Deployment
    was relabelled gets the new tier from any replica. A workload itself is never cached, because the request under
    review changes it. `live_lookups` creates them.
    """

    client: Client
    discovery: Discovery
    objects: TTLCache[tuple[object, ...], Any]
    pods: TTLCache[str, tuple[SeenPod, ...]]
    quotas: TTLCache[str, tuple[NativeQuota, ...]]
    since: float = -math.inf
    owners_since: float = -math.inf

    def fresh(self) -> Self:
        """Return the same look-ups without answers from before now, except ResourceQuotas and users' rights.

        Between two requests a tenant may change an owner, or delete another object and create it again.
        """
        now = time.monotonic()
        return structs.replace(self, since=now, owners_since=now)

    def with_cached_owners(self) -> Self:
        return structs.replace(self, owners_since=-math.inf)

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        return tuple(owner for _, owner in await self._chain(namespace, first, kinds))

    async def outermost_owner(self, namespace: str, first: OwnerReference, kinds: KindTable) -> OwnerReference | None:
        """Return a reference to the last owner of the chain; None if the kind of `first` is unknown or not served."""
        chain = await self._chain(namespace, first, kinds)
        return chain[-1][0] if chain else None

    async def stored_workload(self, namespace: str, name: str, row: KindRow) -> Tree:
        shown = f"{row.kind}/{name[:63]}"
        async with in_time(shown):
            return await self._named(row.group, row.plural, namespace, name, shown)

    async def runtime(self, kinds: RuntimeKinds, kind: str, namespace: str, name: str) -> Tree:
        shown, home = f"{kind}/{name[:63]}", None if kind in kinds.cluster_wide else namespace
        async with in_time(shown):
            return await self._named(kinds.group, kinds.plurals[kind], home, name, shown)

    async def may_use(self, user: User, tier: str, namespace: str) -> bool:
        """Tell whether a user may use a tier. The answer is cached, so a changed right counts some seconds later."""
        async with in_time(f"the rights of {user.username[:LONGEST_NAME]}"):
            key = ("use", user.key, tier, namespace)
            allowed: bool = await self.objects.get(
                key, lambda: is_allowed(self.client, user, use_of_class(tier, namespace))
            )
            return allowed

    async def is_name_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:
        """Tell whether the name is taken; False if that can't be read, because the API server checks it after us."""
        try:
            async with in_time(f"{plural}/{name[:63]}"):
                await self.client.get(path(api_version, plural, namespace, name), accept=METADATA)
        except Unreadable as problem:
            if not isinstance(problem.__cause__, NotFound):
                log.warning("name not looked up", {"reason": str(problem)})
            return False
        return True

    async def pod_group(self, namespace: str, name: str) -> Group:
        def reading(tree: Tree) -> Group:
            found = view(tree, PodGroup)
            return views.group_of(found, name, prioritized=found.spec.priority is not None)

        return await self.one(POD_GROUP, namespace, name, reading)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        async def read() -> tuple[Devices, ...]:
            kind, name = views.claimed_object(claim)
            tree = await self._named(GROUP, f"{kind.lower()}s", namespace, name, f"{kind}/{name}")
            return views.devices_in(tree, namespace, claim)

        async with in_time(claim.source):
            found: tuple[Devices, ...] = await self.objects.get((namespace, claim), read, self.since)
            return found

    async def group_members(self, namespace: str, source: GroupSource, name: str) -> list[Pod]:
        async with in_time(f"the pods of {namespace}"):
            found = await self._pods(namespace)
            return [seen for seen in found if source.named_by(seen.metadata) == name]

    async def claimants(self, namespace: str, claim: Metadata) -> list[tuple[Metadata, str]]:
        async with in_time(f"the pods of {namespace}"):
            named = await self._pods(namespace) if claim.name else ()
            pods = {seen.metadata.uid: seen for seen in (*named, *await self._controller(namespace, claim))}
            return [(seen.metadata, entry) for seen in pods.values() for entry in _entries(seen, claim)]

    async def pods_in(self, namespace: str) -> list[Metadata]:
        return [read(raw, Named).metadata for raw in await self._unended(namespace, {})]

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod in deletion still counts by the in-tree quota's limit: lost nodes never end their pods."""
        for raw in await self._unended(namespace, labels):
            ending = read(raw, _Deleted).metadata
            grace = timedelta(seconds=ending.deletion_grace_period_seconds or 0)  # once more: twice in all
            if ending.deletion_timestamp is not None and datetime.now(UTC) < ending.deletion_timestamp + grace:
                return True
        return False

    async def _unended(self, namespace: str, labels: Mapping[str, str]) -> list[msgspec.Raw]:
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        params = {**RUNNING.params, **({"labelSelector": selector} if selector else {})}
        async with in_time(f"the pods of {namespace}"):
            pages = self.client.list_pages(path("v1", "pods", namespace), params, metadata_only=True)
            return [raw async for raw in listed_objects(pages)]

    async def native_quotas(self, namespace: str) -> tuple[NativeQuota, ...]:
        async def read_all() -> tuple[NativeQuota, ...]:
            pages = self.client.list_pages(path("v1", "resourcequotas", namespace))
            found = [views.native_quota(read(raw, views.ResourceQuota)) async for raw in listed_objects(pages)]
            return tuple(each for each in found if each is not None)

        try:
            async with in_time(f"the ResourceQuotas of {namespace}", QUOTA_SECONDS):
                return await self.quotas.get(namespace, read_all)
        except Unreadable as problem:
            log.warning("quotas not read", {"namespace": namespace, "reason": str(problem)})
            return ()

    async def _chain(
        self, namespace: str, first: OwnerReference, kinds: KindTable
    ) -> tuple[tuple[OwnerReference, Workload], ...]:
        async def fetch(reference: OwnerReference, row: KindRow) -> views.Owner | None:
            # By all fields of a reference, so that a forged one never gets the answer of a true one.
            key = (namespace, kinds, reference)
            found: views.Owner | None = await self.objects.get(
                key, lambda: self._owner(namespace, reference, row), self.owners_since
            )
            return found

        async with in_time(f"the owners of {first.kind}/{first.name[:63]}"):
            return await views.links(first, kinds, fetch)

    async def _owner(self, namespace: str, reference: OwnerReference, row: KindRow) -> views.Owner | None:
        """Return the owner; None if its API is not served, because no such object can exist and the chain ends.

        Raises Unreadable if the reference is forged, because an object of a megabyte would be cached for each made-up
        UID.
        """
        place = path(reference.api_version, row.plural, namespace, reference.name)
        try:
            tree = await self._at(place, f"owner {reference.kind}/{reference.name}")
        except NoSuchApi:
            return None
        found = await views.completed_owner(self, namespace, tree, row)
        views.require_named(found, reference)
        return found

    async def one(self, kind: GroupKind, namespace: str, name: str, reading: Callable[[Tree], T]) -> T:
        """Return what `reading` makes of an object, which may be cached. Raises Missing, Unreadable."""
        shown = f"{kind}/{name[:LONGEST_NAME]}"

        async def read() -> T:
            return reading(await self._named(kind.group, f"{kind.kind.lower()}s", namespace, name, shown))

        async with in_time(shown):
            found: T = await self.objects.get((kind, namespace, name), read, self.since)
            return found

    async def _named(self, group: str, plural: str, namespace: str | None, name: str, shown: str) -> Tree:
        """Return the object of a kind and a name, in the version that the API server prefers."""
        version = await self.discovery.api_version(group, plural)
        return await self._at(path(version, plural, namespace, name), shown)

    async def _at(self, place: str, shown: str) -> Tree:
        """Return the object at a path. Raises Missing, NoSuchApi and any other ApiError."""
        try:
            return await self.client.get(place)
        except NoSuchApi:
            raise
        except NotFound:
            raise Missing(f"{shown} does not exist") from None

    async def _pods(self, namespace: str) -> tuple[SeenPod, ...]:
        """Return the pods that name a claim or a group. Concurrent reviews of one namespace share a list."""

        async def read_all() -> tuple[SeenPod, ...]:
            pages = self.client.list_pages(path("v1", "pods", namespace), RUNNING.params)
            found: list[SeenPod] = []
            async for raw in listed_objects(pages):  # one after another: a namespace may be full of large pods
                seen = seen_pod(raw)
                if seen.spec.resource_claims or any(named_groups(seen.metadata)):
                    found.append(seen)
            return tuple(found)

        return await self.pods.get(namespace, read_all, self.since)

    async def _controller(self, namespace: str, claim: Metadata) -> tuple[SeenPod, ...]:
        """Return the pod that a claim names as its controller, if it exists. Its UID is not compared here."""
        owner = claim.controller
        if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
            return ()
        try:
            tree = await self.client.get(path("v1", "pods", namespace, owner.name))
        except NotFound:
            return ()
        return (seen_pod(msgspec.json.encode(tree)),)


def _entries(seen: SeenPod, claim: Metadata) -> Iterator[str]:
    """Yield the names of a pod's entries that refer to a claim."""
    controlled = seen.metadata.uid == claim.controller_uid
    for each in seen.spec.resource_claims:
        made = each.name == claim.annotations.get(MADE_FOR) or seen.made.get(each.name) == claim.name
        if each.resource_claim_name == claim.name if each.resource_claim_name is not None else controlled and made:
            yield each.name


class LiveCluster(Cluster, frozen=True):
    """The cluster of an API server, from `live_cluster`."""

    known: Watched
    lookups: LiveLookups

    @property
    def client(self) -> Client:
        return self.lookups.client


@asynccontextmanager
async def live_cluster(client: Client) -> AsyncIterator[LiveCluster]:
    """Watch an API server until the block ends. The client stays open."""
    async with live_lookups(client) as lookups, Watched(client) as watched:
        yield LiveCluster(watched, lookups)


@asynccontextmanager
async def live_lookups(client: Client) -> AsyncIterator[LiveLookups]:
    discovery = Discovery(client)
    objects: TTLCache[tuple[object, ...], Any] = TTLCache(OBJECT_SECONDS, MOST_OBJECTS)
    pods: TTLCache[str, tuple[SeenPod, ...]] = TTLCache(0.0, MOST_NAMESPACES)
    quotas: TTLCache[str, tuple[NativeQuota, ...]] = TTLCache(QUOTA_SECONDS, MOST_OBJECTS)
    try:
        yield LiveLookups(client, discovery, objects, pods, quotas)
    finally:
        for part in (objects, pods, quotas, discovery):
            await part.close()
