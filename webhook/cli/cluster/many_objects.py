"""A cluster for judging many objects: what all of them are judged by is listed once, and the rest looked up."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from msgspec import structs

from webhook.cli.cluster.reader import ClusterReader
from webhook.cluster.listed import listed_namespaces, priority_classes, tenant_quotas
from webhook.cluster.live import LiveLookups
from webhook.cluster.offline import ClusterAbout, Files, ManifestStore, ReadOnce, ReadOnceCluster, classes_in
from webhook.objects.manifests import Manifest
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, by_age
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload
from webhook.report.lint.snapshot import ClusterSnapshot


async def listed_snapshot(reader: ClusterReader, namespace: str | None = None) -> ClusterSnapshot:
    """Tenants, classes, and all namespaces or that one. Raises ApiError, and BadInput without that one."""
    homes: tuple[Namespace, ...] = ()
    if namespace:
        homes = (await reader.home(namespace, {}),)
    else:
        homes = await reader.part("namespaces", listed_namespaces(reader.client), ())
    tenants = tuple(await reader.part("tenants", tenant_quotas(reader.client), []))
    classes = await reader.part("classes", priority_classes(reader.client), {})
    return ClusterSnapshot(reader.policy, datetime.now(UTC), classes, tenants, homes)


def listed_cluster(listed: ClusterSnapshot, lookups: LiveLookups) -> ReadOnceCluster:
    """Namespaces, tenants and classes as they were listed; owners, groups, runtimes and claims are looked up.

    A tier's class that the cluster lacks is taken as the policy has it.
    """
    known = _KnownOfMany(
        {**classes_in(listed.policy.tiers), **listed.classes},
        tuple(by_age(each.tenant for each in listed.tenants if each.tenant)),
        {each.name: each for each in listed.namespaces},
    )
    return ReadOnceCluster(known, _OfMany(*structs.astuple(lookups)))


@dataclass
class _KnownOfMany(ReadOnce):
    """Looks for the tenant of a namespace once: tenants may be many, and objects more."""

    found: dict[str, Tenant | None] = field(default_factory=dict)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        if namespace.name not in self.found:
            self.found[namespace.name] = super().tenant(namespace)
        return self.found[namespace.name]


class _OfMany(LiveLookups, frozen=True):
    """Keep what was looked up. Read no ResourceQuotas, and ask for no name: each object has its own."""

    def fresh(self) -> Self:
        return self

    async def is_name_taken(self, *_: str) -> bool:
        return False

    async def native_quotas(self, _namespace: str) -> tuple[()]:
        return ()


def cluster_about(listed: ClusterSnapshot, lookups: LiveLookups) -> ClusterAbout:
    """For objects that nothing known has made, so that the only owner of a pod is the object that makes it."""
    cluster, kinds = listed_cluster(listed, lookups), listed.policy.kinds

    def about(document: Manifest) -> ReadOnceCluster:
        store = ManifestStore(each.identified for each in with_objects_inside(document, kinds))
        makers = Files(store, cluster.lookups)
        return ReadOnceCluster(cluster.known, _MadeByObject(*structs.astuple(lookups), makers=makers))

    return about


class _MadeByObject(_OfMany, frozen=True, kw_only=True):
    """Take the object and what it carries for the only owners."""

    makers: Files

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """Return none where the owner could not be listed."""
        try:
            return await self.makers.owners(namespace, first, kinds)
        except Unreadable:
            return ()
