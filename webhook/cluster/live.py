"""The cluster of an API server: what is watched, and single objects that are looked up on a review's way."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from msgspec import structs

from webhook.cluster.cluster import Cluster, Lookups
from webhook.cluster.groups import GroupLookup
from webhook.cluster.owners import WorkloadLookup
from webhook.cluster.pods_of_namespaces import PodsOfNamespaces
from webhook.cluster.resource_claims import ClaimLookup
from webhook.cluster.resource_quotas import QuotaLookup
from webhook.cluster.stored_objects import StoredObjects
from webhook.cluster.watched import Watched
from webhook.kube.client import Client


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
