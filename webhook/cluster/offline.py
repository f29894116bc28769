"""The cluster's facts from objects that stand in files, for reviews without a cluster.

Everything else is as in a new cluster: each tier has its PriorityClasses, each namespace exists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook.cluster.claims import Claim, ClaimTemplate, devices_of
from webhook.cluster.classes import priority_class
from webhook.cluster.groups import group_of, size_of
from webhook.cluster.manifest_store import ManifestStore, uid_of
from webhook.cluster.owners import Owner, owner_of, walk
from webhook.cluster.resource_quotas import ResourceQuota, native_quota
from webhook.cluster.runtimes import complete_workload, completed_owner
from webhook.cluster.tenant_resolver import TenantResolver
from webhook.objects.group_kind import POD_GROUP, SCHEDULING_WORKLOAD, GroupKind
from webhook.objects.podgroups import PodGroup, TemplateReference
from webhook.objects.pods import Metadata, Named, OwnerReference, PodClaim
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.scheduling_workloads import PodGroupTemplate, SchedulingWorkload
from webhook.objects.view import view
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.values.facts import NAME_LABEL, Group, Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass, Tiers, classes_of
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow, RuntimeKinds
from webhook.policy.workloads.workload import Devices, Workload

Tree = dict[str, Any]

SYSTEM = (PriorityClass("system-cluster-critical", 2_000_000_000), PriorityClass("system-node-critical", 2_000_001_000))
"""The classes that every cluster has."""


class OfflineCluster:
    """The Protocol `webhook.admission.cluster_protocol.Cluster` from objects as they stand in files.

    Raises Refused where a Namespace, a PriorityClass or a TenantQuota among them is broken.
    """

    def __init__(self, tiers: Tiers, objects: Iterable[Tree] = ()) -> None:
        self._store = ManifestStore(objects)
        given = (priority_class(tree) for tree in self._store.of("scheduling.k8s.io", "PriorityClass"))
        of_tiers = (each for tier in tiers for each in classes_of(tier))
        self._classes = {live.name: live for live in (*SYSTEM, *given, *of_tiers)}
        self._namespaces: dict[str, Namespace] = {}
        for each in self._all("", "Namespace"):
            self._namespaces[each.name] = Namespace(each.name, {**self._namespace(each.name).labels, **each.labels})
        self._chains: dict[tuple[str, OwnerReference, KindTable], tuple[Workload, ...]] = {}
        self._resolver = TenantResolver(self._namespace, self.namespace)
        self._resolver.update(read_tenant(tree) for tree in self._store.of("gpu-tiers.dev", "TenantQuota"))

    def classes(self) -> Mapping[str, PriorityClass]:
        """The classes of the policy's tiers, those among the objects, and Kubernetes' own two."""
        return self._classes

    def tenants(self) -> Sequence[Tenant]:
        """The TenantQuotas among the objects, the oldest first."""
        return self._resolver.tenants

    def namespaces(self) -> Sequence[Namespace]:
        """The Namespaces among the objects."""
        return tuple(self._namespaces.values())

    def tenant_name(self, namespace: str) -> str | None:
        """The name of a namespace's tenant."""
        return self._resolver.tenant_name(namespace)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: of several that select it the oldest."""
        return self._resolver.tenant_of(namespace)

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a Node among the objects."""
        return next((node.labels for node in self._all("", "Node") if node.name == name), {})

    async def namespace(self, name: str) -> Namespace:
        """A namespace; one that no object describes has no label but its name."""
        return self._namespace(name)

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of owners among the objects, each read once: they don't change.

        Files have no UIDs: where one is missing, kind and name must do.
        """

        async def fetch(reference: OwnerReference, row: KindRow) -> Owner:
            return await self._owner(namespace, reference, row)

        key = (namespace, first, kinds)
        if key not in self._chains:
            self._chains[key] = await walk(self._store.with_uid(namespace, first), kinds, fetch)
        return self._chains[key]

    async def stored(self, namespace: str, name: str, row: KindRow) -> Tree:
        """A workload among the objects."""
        return self._store.one(row.group_kind, namespace, name)

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        """A workload with the runtime that it names, if that is among the objects."""

        async def read(runtime: RuntimeKinds, kind: str, name: str) -> Tree:
            return self._store.one(GroupKind(runtime.group, kind), namespace, name)

        return await complete_workload(tree, row, read)

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup among the objects."""
        return group_of(view(self._store.one(POD_GROUP, namespace, name), PodGroup), name, prioritized=True)

    async def group_size(self, namespace: str, kind: GroupKind, name: str) -> int:
        """As the PodGroup among the objects says."""
        try:
            return size_of(self._store.one(kind, namespace, name))
        except Missing:
            return 0

    async def group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload among the objects."""
        try:
            found = view(self._store.one(SCHEDULING_WORKLOAD, namespace, reference.workload_name), SchedulingWorkload)
        except Missing:
            return None
        return found.template(reference.template)

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """The ResourceQuotas of a namespace among the objects."""
        found = (view(tree, ResourceQuota) for tree in self._store.of("", "ResourceQuota"))
        quotas = (native_quota(each) for each in found if (each.metadata.namespace or namespace) == namespace)
        return tuple(each for each in quotas if each is not None)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """What a claim among the objects asks for."""
        try:
            return tuple(self._devices(namespace, claim))
        except Refused as refused:
            raise Unreadable(f"{claim.source} can't be read: {refused}") from refused

    def _namespace(self, name: str) -> Namespace:
        return self._namespaces.get(name) or Namespace(name, _labels(name, {}))

    async def _owner(self, namespace: str, reference: OwnerReference, row: KindRow) -> Owner:
        tree = self._store.one(row.group_kind, namespace, reference.name, reference.uid)
        tree = {**tree, "metadata": {**tree["metadata"], "uid": uid_of(tree) or reference.uid}}
        owner = owner_of(await completed_owner(self.completed(namespace, tree, row), tree), row)
        return replace(owner, controller=owner.controller and self._store.with_uid(namespace, owner.controller))

    def _devices(self, namespace: str, claim: PodClaim) -> Iterator[Devices]:
        if claim.resource_claim_name is not None:
            tree = self._store.one(GroupKind("resource.k8s.io", "ResourceClaim"), namespace, claim.resource_claim_name)
            return devices_of(view(tree, Claim).spec, claim.name, f"{namespace}/{claim.resource_claim_name}")
        name = claim.resource_claim_template_name or ""
        tree = self._store.one(GroupKind("resource.k8s.io", "ResourceClaimTemplate"), namespace, name)
        return devices_of(view(tree, ClaimTemplate).spec.spec, claim.name)

    def _all(self, group: str, kind: str) -> Iterator[Metadata]:
        return (view(tree, Named).metadata for tree in self._store.of(group, kind))


def _labels(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """A namespace's labels with the one that the API server writes on each."""
    return {**labels, NAME_LABEL: name}
