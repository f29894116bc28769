"""The cluster of an API server: what is watched, and single objects that are looked up on a review's way.

Among them are the pods of a namespace that a ResourceClaim is for, that name another scheduler's group, or that are
ending. Source: pkg/controller/resourceclaim in kubernetes, which takes a claim for a pod's own if the pod controls it,
whoever made it, and an annotation says for which entry, or the pod's status names it.
"""

import math
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec
from msgspec import structs

from webhook.cluster.cluster import Cluster, Lookups
from webhook.cluster.groups import GroupLookup
from webhook.cluster.owners import WorkloadLookup
from webhook.cluster.pod_informer import RUNNING, SeenPod, seen_pod
from webhook.cluster.resource_claims import ClaimLookup
from webhook.cluster.resource_quotas import QuotaLookup
from webhook.cluster.stored_objects import FreshLookups, StoredObjects, in_time
from webhook.cluster.watched import Watched
from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Metadata, Pod
from webhook.objects.view import View, read
from webhook.policy.workloads.pod_groups import GroupSource, named_groups

MADE_FOR = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made of a template: what the pod calls it."""
MOST_NAMESPACES = 64

PodAndEntry = tuple[Metadata, str]
"""A pod, and what it calls the claim."""


class _Deletion(View, frozen=True):
    """The part of a pod's metadata that says until when its containers may run."""

    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None

    def is_ending(self, now: datetime) -> bool:
        """A lost node never ends its pods. Kubernetes' own quota waits for twice the grace period too."""
        grace = timedelta(seconds=self.deletion_grace_period_seconds or 0)
        return self.deletion_timestamp is not None and now < self.deletion_timestamp + grace


class _Deleted(View, frozen=True):
    metadata: _Deletion = _Deletion()


class PodsOfNamespaces(FreshLookups, frozen=True):
    """`NamespacePods` of an API server. Reviews of one namespace that come at once share a list."""

    client: Client
    lists: TTLCache[str, tuple[SeenPod, ...]] = msgspec.field(default_factory=lambda: TTLCache(0.0, MOST_NAMESPACES))

    async def close(self) -> None:
        await self.lists.close()

    async def claimants(self, namespace: str, claim: Metadata) -> list[PodAndEntry]:
        async with in_time(f"the pods of {namespace}"):
            named = await self._listed(namespace) if claim.name else ()
            pods = {seen.pod.metadata.uid: seen for seen in (*named, *await self._owner(namespace, claim))}
            return [(seen.pod.metadata, entry) for seen in pods.values() for entry in _entries(seen, claim)]

    async def members(self, namespace: str, source: GroupSource, name: str) -> list[Pod]:
        async with in_time(f"the pods of {namespace}"):
            found = await self._listed(namespace)
            return [seen.pod for seen in found if source.named_by(seen.pod.metadata) == name]

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        async with in_time(f"the pods of {namespace}"):
            params = {**RUNNING.params, "labelSelector": selector}
            pages = self.client.list_pages(path("v1", "pods", namespace), params, metadata_only=True)
            now = datetime.now(UTC)
            return any([read(raw, _Deleted).metadata.is_ending(now) async for raw in listed_objects(pages)])

    async def _listed(self, namespace: str) -> tuple[SeenPod, ...]:
        return await self.lists.get(namespace, lambda: self._list(namespace), self.since)

    async def _owner(self, namespace: str, claim: Metadata) -> tuple[SeenPod, ...]:
        owner = claim.controller
        if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
            return ()
        try:
            tree = await self.client.get(path("v1", "pods", namespace, owner.name))
        except NotFound:
            return ()
        return (seen_pod(msgspec.json.encode(tree)),)

    async def _list(self, namespace: str) -> tuple[SeenPod, ...]:
        pages = self.client.list_pages(path("v1", "pods", namespace), RUNNING.params)
        # one after another: a namespace may be full of large pods
        return tuple([seen async for raw in listed_objects(pages) if _names_something(seen := seen_pod(raw))])


def _names_something(seen: SeenPod) -> bool:
    return bool(seen.pod.spec.resource_claims) or any(named_groups(seen.pod.metadata))


def _entries(seen: SeenPod, claim: Metadata) -> Iterator[str]:
    """What a pod calls a claim."""
    controlled = seen.pod.metadata.uid == claim.controller_uid
    for each in seen.pod.spec.resource_claims:
        made = each.name == claim.annotations.get(MADE_FOR) or seen.made.get(each.name) == claim.name
        if each.resource_claim_name == claim.name if each.resource_claim_name is not None else controlled and made:
            yield each.name


class LiveLookups(Lookups, frozen=True):
    """Look-ups on an API server, whose answers are kept for a while. `live_lookups` makes them."""

    owners: WorkloadLookup
    groups: GroupLookup
    claims: ClaimLookup
    pods: PodsOfNamespaces

    def fresh(self) -> Self:
        """Return the same, but of owners, groups, claims and templates nothing counts that was read before now.

        A tenant may change an owner, and delete each of the others and make another of its name, between two requests.
        """
        owners, groups = self.owners.fresh(), self.groups.fresh()
        return structs.replace(self, owners=owners, groups=groups, claims=self.claims.fresh(), pods=self.pods.fresh())

    def with_kept_owners(self) -> Self:
        return structs.replace(self, owners=structs.replace(self.owners, since=-math.inf))


class LiveCluster(Cluster, frozen=True):
    """The cluster of a server. `live_cluster` makes one."""

    known: Watched
    lookups: LiveLookups


@asynccontextmanager
async def live_cluster(client: Client) -> AsyncIterator[LiveCluster]:
    """Watches an API server until the end; the client stays open."""
    async with live_lookups(client) as lookups, Watched(client) as watched:
        yield LiveCluster(watched, lookups)


@asynccontextmanager
async def live_lookups(client: Client) -> AsyncIterator[LiveLookups]:
    objects, pods, quotas = StoredObjects(client), PodsOfNamespaces(client), QuotaLookup(client)
    workloads, groups, claims = WorkloadLookup(objects), GroupLookup(objects), ClaimLookup(objects)
    try:
        yield LiveLookups(workloads, workloads, objects, groups, claims, pods, quotas)
    finally:
        for part in (workloads, groups, claims, quotas, pods, objects):
            await part.close()
