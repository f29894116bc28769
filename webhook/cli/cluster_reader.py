"""Reads a cluster for a command, part after part: what the person may not read is left out, and noted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import structs

from webhook.cli.installed import listed_namespaces, priority_classes, tenant_quotas
from webhook.cli.progress import Steps
from webhook.cluster.live import LiveLookups, live_lookups
from webhook.cluster.offline import NO_FILES, Files, ManifestStore, ReadOnce, ReadOnceCluster, classes_in
from webhook.kube.client import Client
from webhook.kube.errors import Forbidden
from webhook.kube.wire import listed_objects
from webhook.objects.manifests import Manifest
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.objects.view import Tree
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload
from webhook.readmodel.lint.snapshot import Part

T = TypeVar("T")

RIGHTS: Mapping[Part, str] = {
    "classes": "list of priorityclasses.scheduling.k8s.io",
    "device_classes": "list of deviceclasses.resource.k8s.io",
    "tenants": "list of tenantquotas.gpu-tiers.dev",
    "namespaces": "list of namespaces",
    "nodes": "list of nodes",
    "capacity": "list of resourceslices.resource.k8s.io",
    "pods": "list of pods",
    "gangs": "list of the workloads that are gangs",
    "pod_groups": "list of podgroups.scheduling.k8s.io",
    "budgets": "list of poddisruptionbudgets.policy",
    "configurations": "list of webhook configurations (admissionregistration.k8s.io)",
    "certificates": "get of the Secret with the certificate",
    "failed_hooks": "list of events",
    "version": "get of /version",
}


@dataclass(frozen=True)
class Listed:
    """What objects are judged by, as far as it was read."""

    policy: TierPolicy
    lookups: LiveLookups
    quotas: tuple[TenantQuota, ...]
    namespaces: tuple[Namespace, ...]
    classes: Mapping[str, PriorityClass]

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """Those of the TenantQuotas that say what one may hold."""
        return tuple(each.tenant for each in self.quotas if each.tenant)


@dataclass(frozen=True)
class ClusterReader:
    """The way to a cluster. `unread` has the right that each part takes which was not read.

    `told` are sentences for the person: what was left out, and what follows from that.
    """

    client: Client
    policy: TierPolicy
    steps: Steps
    lookups: LiveLookups
    unread: dict[Part, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    async def part(self, part: Part, ask: Awaitable[T], otherwise: T, instead: str = "") -> T:
        """What comes of asking for a part, else `otherwise`, and `instead` is told. Raises ApiError."""
        self.steps.begin(f"reading {part.replace('_', ' ')}")
        try:
            return await ask
        except Forbidden:
            self.unread[part] = RIGHTS[part]
            if instead:
                self.told.append(instead)
            return otherwise

    async def objects(self, where: str, instead: str, params: dict[str, str] | None = None) -> list[Tree]:
        """All objects of a list; none where the person may not list them, and then `instead` is told."""
        try:
            return [msgspec.json.decode(raw) async for raw in listed_objects(self.client.list_pages(where, params))]
        except Forbidden:
            self.told.append(instead)
            return []

    async def listed(self) -> Listed:
        """Tenants, namespaces and classes. Raises ApiError."""
        return Listed(
            self.policy,
            self.lookups,
            tuple(await self.part("tenants", tenant_quotas(self.client), [])),
            await self.part("namespaces", listed_namespaces(self.client), ()),
            await self.part("classes", priority_classes(self.client), {}),
        )


@asynccontextmanager
async def cluster_reader(client: Client, policy: TierPolicy) -> AsyncIterator[ClusterReader]:
    """A reader, which says on a terminal how far it is."""
    async with live_lookups(client) as lookups:
        with Steps() as steps:
            yield ClusterReader(client, policy, steps, lookups)


def listed_cluster(listed: Listed) -> ReadOnceCluster:
    """Namespaces, tenants and classes as they were listed; owners, groups, runtimes and claims are looked up.

    A tier's class that the cluster lacks is taken as the policy has it. ResourceQuotas are not read.
    """
    known = _KnownOfMany(
        {**classes_in(listed.policy.tiers), **listed.classes},
        tuple(by_age(listed.tenants)),
        {each.name: each for each in listed.namespaces},
    )
    return ReadOnceCluster(known, structs.replace(listed.lookups, quotas=NO_FILES))


@dataclass
class _KnownOfMany(ReadOnce):
    """Looks for the tenant of a namespace once: tenants may be many, and objects more."""

    found: dict[str, Tenant | None] = field(default_factory=dict)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        if namespace.name not in self.found:
            self.found[namespace.name] = super().tenant(namespace)
        return self.found[namespace.name]


ClusterAbout = Callable[[Manifest], ReadOnceCluster]
"""The cluster as it is where an object is judged."""


def cluster_about(listed: Listed) -> ClusterAbout:
    """For objects that nothing known has made, so that the only owner of a pod is the object that makes it."""
    cluster, kinds = listed_cluster(listed), listed.policy.kinds

    def about(document: Manifest) -> ReadOnceCluster:
        store = ManifestStore(each.identified for each in with_objects_inside(document, kinds))
        owners = _Makers(store, cluster.lookups.workloads)
        return ReadOnceCluster(cluster.known, structs.replace(cluster.lookups, owners=owners))

    return about


class _Makers(Files):
    """The object and what it carries, where they are owners."""

    async def chain(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """None where the owner could not be listed."""
        try:
            return await super().chain(namespace, first, kinds)
        except Unreadable:
            return ()
