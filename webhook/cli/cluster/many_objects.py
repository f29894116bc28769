"""A cluster for judging many objects: what all of them are judged by is listed once, and the rest looked up."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec import structs

from webhook.cli.cluster.reader import ClusterReader
from webhook.cluster.cluster import Lookups
from webhook.cluster.listed import listed_namespaces, priority_classes, tenant_quotas
from webhook.cluster.live import LiveLookups
from webhook.cluster.offline import NO_FILES, ClusterAbout, Files, ManifestStore, ReadOnce, ReadOnceCluster, classes_in
from webhook.objects.manifests import Manifest
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, by_age
from webhook.policy.workloads.kind_table import KindTable
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

    A tier's class that the cluster lacks is taken as the policy has it. ResourceQuotas are not read, nor is it asked
    whether a name is taken: each object has its own.
    """
    known = _KnownOfMany(
        {**classes_in(listed.policy.tiers), **listed.classes},
        tuple(by_age(each.tenant for each in listed.tenants if each.tenant)),
        {each.name: each for each in listed.namespaces},
    )
    return ReadOnceCluster(known, structs.replace(lookups, quotas=NO_FILES, names=NO_FILES))


@dataclass
class _KnownOfMany(ReadOnce):
    """Looks for the tenant of a namespace once: tenants may be many, and objects more."""

    found: dict[str, Tenant | None] = field(default_factory=dict)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        if namespace.name not in self.found:
            self.found[namespace.name] = super().tenant(namespace)
        return self.found[namespace.name]


def cluster_about(listed: ClusterSnapshot, lookups: LiveLookups) -> ClusterAbout:
    """For objects that nothing known has made, so that the only owner of a pod is the object that makes it."""
    cluster, kinds = listed_cluster(listed, lookups), listed.policy.kinds

    def about(document: Manifest) -> ReadOnceCluster:
        store = ManifestStore(each.identified for each in with_objects_inside(document, kinds))
        live = cluster.lookups
        owners = _Makers(store, live.workloads)
        parts = (live.workloads, live.names, live.groups, live.claims, live.pods, live.quotas)
        return ReadOnceCluster(cluster.known, Lookups(owners, *parts))  # which are read once, and stay as they are

    return about


class _Makers(Files):
    """The object and what it carries, where they are owners."""

    async def chain(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """None where the owner could not be listed."""
        try:
            return await super().chain(namespace, first, kinds)
        except Unreadable:
            return ()
