"""A cluster's facts for a command that judges many objects: what was listed once, and single objects looked up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cluster.looked_up import LookedUp
from webhook.cluster.lookups import Lookups
from webhook.cluster.manifest_store import ManifestStore
from webhook.cluster.offline import OfflineCluster
from webhook.objects.manifests import Manifest
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.classification.unknown_kinds.inside import with_objects_inside
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload

Tree = dict[str, Any]


@dataclass(frozen=True)
class Listed:
    """What objects are judged by, as far as it was read."""

    policy: TierPolicy
    lookups: Lookups
    namespaces: tuple[Namespace, ...]
    tenants: tuple[Tenant, ...]
    classes: Mapping[str, PriorityClass]


class ListedCluster(LookedUp, OfflineCluster):
    """Namespaces, tenants and classes as they were listed; owners, groups, runtimes and claims are looked up.

    A tier's class that the cluster lacks is taken as the policy has it.
    """

    def __init__(self, known: Listed) -> None:
        super().__init__(known.policy.tiers)
        self._namespaces |= {each.name: each for each in known.namespaces}
        self._classes |= known.classes
        self._resolver.update(known.tenants)
        self._lookups = known.lookups
        self._tenant_in: dict[str, Tenant | None] = {}

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace, looked for once: tenants may be many, and objects more."""
        if namespace.name not in self._tenant_in:
            self._tenant_in[namespace.name] = super().tenant(namespace)
        return self._tenant_in[namespace.name]


ClusterAbout = Callable[[Manifest], OfflineCluster]
"""The cluster as it is where an object is judged."""


class AboutOne(ListedCluster):
    """Judges objects that nothing known has made, so that the only owner of a pod is the object that makes it."""

    def __init__(self, known: Listed) -> None:
        super().__init__(known)
        self._kinds = known.policy.kinds

    def about(self, document: Manifest) -> OfflineCluster:
        """The cluster with this object, and what it carries."""
        self._store = ManifestStore(each.identified for each in with_objects_inside(document, self._kinds))
        self._chains.clear()
        return self

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The object, if it is the owner; none where the owner could not be listed."""
        try:
            return await OfflineCluster.owners(self, namespace, first, kinds)
        except Unreadable:
            return ()
