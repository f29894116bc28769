"""A cluster that is not watched: objects that a command has read once, or objects in files.

With files only, everything else is as in a new cluster: each tier has its PriorityClasses, and each namespace exists.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

from msgspec import structs

from webhook.cluster import views
from webhook.cluster.cluster import Cluster, Lookups
from webhook.cluster.device_class_informer import device_class
from webhook.objects.group_kind import POD_GROUP, GroupKind
from webhook.objects.manifests import FROM_FILE, Manifest
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Metadata, Named, OwnerReference, Pod, PodClaim
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.user import User
from webhook.objects.view import Tree, view
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.values.facts import NAME_LABEL, Group, Namespace, namespace_of
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tenants import Tenant, by_age, tenant_among
from webhook.policy.values.tiers import PriorityClass, Tiers, classes_of
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import GROUP
from webhook.policy.workloads.kind_table import KindRow, KindTable, RuntimeKinds
from webhook.policy.workloads.pod_groups import GroupSource
from webhook.policy.workloads.workload import Devices, Workload
from webhook.sentences.sentence import problem_text

T = TypeVar("T")


class ManifestStore:
    """The given objects. An object without a namespace is in every namespace."""

    def __init__(self, objects: Iterable[Tree]) -> None:
        self._of_kind: dict[GroupKind, list[Tree]] = {}
        self._of_name: dict[tuple[GroupKind, str], list[Tree]] = {}
        for tree in objects:
            kind = GroupKind(str(tree.get("apiVersion", "")).rpartition("/")[0], str(tree.get("kind", "")))
            metadata = _metadata(tree)
            name = str(metadata.get("name") or f"{metadata.get('generateName') or ''}*")
            self._of_kind.setdefault(kind, []).append(tree)
            self._of_name.setdefault((kind, name), []).append(tree)

    def of(self, group: str, kind: str) -> Sequence[Tree]:
        return self._of_kind.get(GroupKind(group, kind), ())

    def one(self, kind: GroupKind, namespace: str, name: str, uid: str = "") -> Tree:
        """Return the object of that name: the one with that uid if there is one, or else the first. Raises Missing."""
        tree = self._find(kind, namespace, name, uid)
        if tree is None:
            raise Missing(f"{kind}/{name[:63]} is not among the objects given")
        return tree

    def with_uid(self, namespace: str, reference: OwnerReference) -> OwnerReference:
        """Return the reference with a uid, which objects in files often lack, so that the owners of a chain differ."""
        if reference.uid:
            return reference
        kind = GroupKind(reference.group, reference.kind)
        tree = self._find(kind, namespace, reference.name)
        own = f"{FROM_FILE}{'/'.join((*kind, namespace, reference.name))}"
        return structs.replace(reference, uid=(tree and uid_of(tree)) or own)

    def _find(self, kind: GroupKind, namespace: str, name: str, uid: str = "") -> Tree | None:
        alike = [
            tree
            for tree in self._of_name.get((kind, name), ())
            if (_metadata(tree).get("namespace") or namespace) == namespace
        ]
        exact = (tree for tree in alike if uid and _metadata(tree).get("uid") == uid)
        return next(exact, alike[0] if alike else None)


def uid_of(tree: Tree) -> str:
    uid = str(_metadata(tree).get("uid") or "")
    return "" if uid.startswith(FROM_FILE) else uid


def _metadata(tree: Tree) -> Tree:
    metadata = tree.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


SYSTEM = (PriorityClass("system-cluster-critical", 2_000_000_000), PriorityClass("system-node-critical", 2_000_001_000))
"""The PriorityClasses that every cluster has."""


async def described_by_nothing(name: str) -> Namespace:
    """Return a namespace with only the label that the API server sets."""
    return Namespace(name, {NAME_LABEL: name})


@dataclass
class ReadOnce:
    """`Known` facts that were read once. `active` are the tenants, the oldest first. `look_up` finds namespaces."""

    live: dict[str, PriorityClass]
    active: Sequence[Tenant] = ()
    read: dict[str, Namespace] = field(default_factory=dict)
    look_up: Callable[[str], Awaitable[Namespace]] = described_by_nothing
    labels_of: Callable[[str], Mapping[str, str]] = lambda _: {}
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    scope: EvictionScope = EvictionScope()  # noqa: RUF009 - a frozen value

    def classes(self) -> Mapping[str, PriorityClass]:
        return self.live

    def tenants(self) -> Sequence[Tenant]:
        return self.active

    def tenant(self, namespace: Namespace) -> Tenant | None:
        return tenant_among(self.active, namespace.labels)

    def tenant_name(self, namespace: str) -> str | None:
        tenant = self.tenant(self.read.get(namespace) or Namespace(namespace, {NAME_LABEL: namespace}))
        return tenant.name if tenant else None

    def namespaces(self) -> Sequence[Namespace]:
        return tuple(self.read.values())

    async def namespace(self, name: str) -> Namespace:
        return self.read.get(name) or await self.look_up(name)

    def eviction(self) -> EvictionScope:
        return self.scope

    def node_labels(self, name: str) -> Mapping[str, str]:
        return self.labels_of(name)


class ReadOnceCluster(Cluster, frozen=True):
    """The cluster of a command."""

    known: ReadOnce


ClusterAbout = Callable[[Manifest], ReadOnceCluster]
"""Returns the cluster in which an object is judged."""


def offline_cluster(tiers: Tiers, objects: Iterable[Tree] = ()) -> ReadOnceCluster:
    """Return the cluster of these objects.

    Raises Refused if a Namespace, a PriorityClass, a DeviceClass or a TenantQuota among them is broken.
    """
    store = ManifestStore(objects)
    classes = classes_in(tiers, map(views.priority_class, store.of("scheduling.k8s.io", "PriorityClass")))
    device_classes = {each.name: each for each in map(device_class, store.of(GROUP, "DeviceClass"))}
    namespaces = _namespaces(store)
    tenants = tuple(by_age(read_tenant(tree) for tree in store.of("gpu-tiers.dev", "TenantQuota")))

    def labels_of(node: str) -> Mapping[str, str]:
        return next((each.labels for each in _named(store, "Node") if each.name == node), {})

    known = ReadOnce(classes, tenants, namespaces, labels_of=labels_of, device_classes=device_classes)
    return ReadOnceCluster(known, Files(store))


def classes_in(tiers: Tiers, given: Iterable[PriorityClass] = ()) -> dict[str, PriorityClass]:
    of_tiers = (each for tier in tiers for each in classes_of(tier))
    return {each.name: each for each in (*SYSTEM, *given, *of_tiers)}


class Files(views.ObjectLookups):
    """Look-ups among objects that don't change.

    `workloads` completes the owners among them if their runtimes are elsewhere.
    """

    def __init__(self, store: ManifestStore, workloads: Lookups | None = None) -> None:
        self._store = store
        self._workloads: Lookups = workloads or self
        self._chains: dict[tuple[str, OwnerReference, KindTable], tuple[Workload, ...]] = {}

    def fresh(self) -> Self:
        return self

    def with_cached_owners(self) -> Self:
        return self

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """Return the chain of owners among the objects, each of which is read once, because they don't change.

        Objects in files often have no UID. Then kind and name identify them.
        """

        async def fetch(reference: OwnerReference, row: KindRow) -> views.Owner:
            return await self._owner(namespace, reference, row)

        key = (namespace, first, kinds)
        if key not in self._chains:
            chain = await views.links(self._store.with_uid(namespace, first), kinds, fetch)
            self._chains[key] = tuple(owner for _, owner in chain)
        return self._chains[key]

    async def stored_workload(self, namespace: str, name: str, row: KindRow) -> Tree:
        return self._store.one(row.group_kind, namespace, name)

    async def runtime(self, kinds: RuntimeKinds, kind: str, namespace: str, name: str) -> Tree:
        return self._store.one(GroupKind(kinds.group, kind), namespace, name)

    async def one(self, kind: GroupKind, namespace: str, name: str, reading: Callable[[Tree], T]) -> T:
        return reading(self._store.one(kind, namespace, name))

    async def may_use(self, user: User, tier: str, namespace: str) -> bool:  # noqa: ARG002
        """Return True, because files don't contain the rights of users."""
        return True

    async def is_name_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:  # noqa: ARG002
        """Return False, because objects in files are still to be created."""
        return False

    async def pod_group(self, namespace: str, name: str) -> Group:
        return views.group_of(view(self._store.one(POD_GROUP, namespace, name), PodGroup), name, prioritized=True)

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        found = (view(tree, views.ResourceQuota) for tree in self._store.of("", "ResourceQuota"))
        quotas = (views.native_quota(each) for each in found if (each.metadata.namespace or namespace) == namespace)
        return tuple(each for each in quotas if each is not None)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        kind, name = views.claimed_object(claim)
        tree = self._store.one(GroupKind(GROUP, kind), namespace, name)
        try:
            return views.devices_in(tree, namespace, claim)
        except Refused as refused:
            raise Unreadable(f"{claim.source} can't be read: {problem_text(refused)}") from refused

    async def group_members(self, namespace: str, source: GroupSource, name: str) -> Sequence[Pod]:  # noqa: ARG002
        """Return no pods, because pods in files are judged by their groups."""
        return ()

    async def claimants(self, namespace: str, claim: Metadata) -> Sequence[tuple[Metadata, str]]:  # noqa: ARG002
        """Return no pods, because a pod in a file waits for no claim yet."""
        return ()

    async def pods_in(self, namespace: str) -> Sequence[Metadata]:  # noqa: ARG002
        """Return no pods, because the pods of a workload in a file are still to be created."""
        return ()

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Return False, because a pod in a file is not being deleted."""
        return False

    async def _owner(self, namespace: str, reference: OwnerReference, row: KindRow) -> views.Owner:
        tree = self._store.one(row.group_kind, namespace, reference.name, reference.uid)
        tree = {**tree, "metadata": {**tree["metadata"], "uid": uid_of(tree) or reference.uid}}
        owner = await views.completed_owner(self._workloads, namespace, tree, row)
        return structs.replace(owner, controller=owner.controller and self._store.with_uid(namespace, owner.controller))


def _namespaces(store: ManifestStore) -> dict[str, Namespace]:
    """Return namespaces by name, with the API server's label. Labels and annotations of duplicates are merged."""
    found: dict[str, Metadata] = {}
    for each in _named(store, "Namespace"):
        before = found.get(each.name, Metadata(labels={NAME_LABEL: each.name}))
        labels, annotations = before.labels | each.labels, before.annotations | each.annotations
        found[each.name] = structs.replace(each, labels=labels, annotations=annotations)
    return {name: namespace_of(metadata) for name, metadata in found.items()}


def _named(store: ManifestStore, kind: str) -> Iterator[Metadata]:
    return (view(tree, Named).metadata for tree in store.of("", kind))
