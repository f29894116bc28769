"""Reads a cluster for a command, part after part: what the person may not read is left out, and noted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import structs

from webhook.cli.cluster.rights import OF_A_VERDICT, RIGHTS, role_for, untold
from webhook.cli.manifests.documents import BadInput
from webhook.cli.progress import Steps
from webhook.cluster.device_class_informer import device_classes
from webhook.cluster.listed import listed_namespaces, listed_trees, priority_classes, tenant_quotas
from webhook.cluster.live import LiveLookups, live_lookups
from webhook.cluster.offline import NO_FILES, Files, ManifestStore, ReadOnce, ReadOnceCluster, classes_in
from webhook.kube.client import Client
from webhook.kube.errors import Forbidden, NotFound
from webhook.kube.paths import path
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Named, OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.objects.view import Tree, view
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload
from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import ClusterSnapshot

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterReader:
    """The way to a cluster. `unread` has what each part takes that was not read: "list nodes".

    `told` are sentences for the person: what can't be told without that. `roles` have these rights.
    """

    client: Client
    policy: TierPolicy
    steps: Steps
    lookups: LiveLookups
    unread: dict[Part, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)

    @property
    def sure(self) -> bool:
        """Whether all was read that a verdict rests on."""
        return not OF_A_VERDICT & self.unread.keys()

    def missing(self, of_a_verdict: str = "") -> tuple[str, ...]:
        """What can't be told, each once, `of_a_verdict` where that may be another one; then how one gets the right."""
        needs = [right for part, right in self.unread.items() if part in OF_A_VERDICT]
        verdict = (untold(of_a_verdict, *needs),) if needs and of_a_verdict else ()
        return (*verdict, *dict.fromkeys((*self.told, *self.roles)))

    async def part(self, part: Part, ask: Awaitable[T], otherwise: T, lost: str = "") -> T:
        """What comes of asking for a part, else `otherwise`, and `lost` is said to be untold. Raises ApiError."""
        self.steps.begin(f"reading {part.replace('_', ' ')}")
        try:
            return await ask
        except Forbidden as error:
            self.lacks(part, RIGHTS[part], error, lost)
            return otherwise

    def lacks(self, part: Part, right: str, refused: Forbidden, lost: str = "") -> None:
        self.unread[part] = right
        self.roles.append(role_for(refused))
        if lost:
            self.told.append(untold(lost, right))

    async def objects(
        self, plural: str, namespace: str, where: str, lost: str, params: dict[str, str] | None = None
    ) -> list[Tree] | None:
        """All objects of a list; None where the person may not list them, and then `lost` is said to be untold."""
        try:
            return await listed_trees(self.client, where, params)
        except Forbidden as error:
            self.told.append(untold(lost, f"list {plural} in {namespace}"))
            self.roles.append(role_for(error))
            return None

    async def home(self, name: str, otherwise: Mapping[str, str]) -> Namespace:
        """A namespace; `otherwise` are its labels if it can't be read. Raises ApiError, and BadInput without it."""
        try:
            where = path("v1", "namespaces", name=name)
            found = await self.part("home", self.client.get(where), {"metadata": {"labels": otherwise}})
        except NotFound:
            raise BadInput(f"there is no namespace {name}") from None
        return Namespace(name, view(found, Named).metadata.labels)

    async def listed(self, namespace: str | None = None) -> ClusterSnapshot:
        """Tenants, classes, and all namespaces or that one. Raises ApiError, and BadInput without that one."""
        homes: tuple[Namespace, ...] = ()
        if namespace:
            homes = (await self.home(namespace, {}),)
        else:
            homes = await self.part("namespaces", listed_namespaces(self.client), ())
        tenants = tuple(await self.part("tenants", tenant_quotas(self.client), []))
        classes = await self.part("classes", priority_classes(self.client), {})
        return ClusterSnapshot(self.policy, datetime.now(UTC), classes, tenants, homes)


@asynccontextmanager
async def cluster_reader(client: Client, policy: TierPolicy) -> AsyncIterator[ClusterReader]:
    """A reader, which says on a terminal how far it is. Its policy has the cluster's DeviceClasses. Raises ApiError."""
    async with live_lookups(client) as lookups:
        with Steps() as steps:
            reader = ClusterReader(client, policy, steps, lookups)
            classes = await reader.part("device_classes", device_classes(client), {})
            yield replace(reader, policy=replace(policy, classes=classes))


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


ClusterAbout = Callable[[Manifest], ReadOnceCluster]
"""The cluster as it is where an object is judged."""


def cluster_about(listed: ClusterSnapshot, lookups: LiveLookups) -> ClusterAbout:
    """For objects that nothing known has made, so that the only owner of a pod is the object that makes it."""
    cluster, kinds = listed_cluster(listed, lookups), listed.policy.kinds

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
