"""The cluster's facts for reviews: what is watched, and what is looked up.

A watched fact may be seconds old, and as old as the last event while the API server can't be reached: `problems`
says so. A namespace that the watch has not brought yet is read at once.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from webhook.cluster.classes import priority_class
from webhook.cluster.looked_up import LookedUp
from webhook.cluster.lookups import Lookups
from webhook.cluster.node_informer import NodeInformer
from webhook.cluster.tenant_resolver import TenantResolver, TenantStore
from webhook.kube.client import Client
from webhook.kube.informer import Informer, Store
from webhook.kube.paths import path
from webhook.kube.reflector import Source
from webhook.kube.reflectors import Reflectors
from webhook.objects.pods import Named, OwnerReference
from webhook.objects.view import read
from webhook.policy.quota.conditions import Overlap, overlaps
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow


class LiveCluster(LookedUp, Reflectors):
    """The protocol of admission.cluster_protocol on a real API server. `connect` makes one with a client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._lookups = Lookups(client)
        self._listeners: list[Callable[[], None]] = []
        self._overlaps: dict[str, Overlap] | None = None
        self._classes = Informer(client, _CLASSES, _priority_class, Store(self._changed))
        self._namespaces = Informer(client, _NAMESPACES, _namespace, Store(self._changed))
        self.quotas = TenantStore(self._changed)
        quotas = Informer(client, _TENANT_QUOTAS, read_tenant_quota, self.quotas)
        self.nodes = NodeInformer(client)
        self._resolver = TenantResolver(self._namespaces.store.get, self._lookups.namespace)
        super().__init__(self._classes.reflector, self._namespaces.reflector, quotas.reflector)

    @classmethod
    @asynccontextmanager
    async def connect(cls, kubeconfig: Path | None = None) -> AsyncIterator[Self]:
        """A cluster by kubeconfig, else from within a pod, else by the default kubeconfig. Raises ApiError."""
        async with await Client.connect(kubeconfig) as client, cls(client) as cluster:
            yield cluster

    async def stop(self) -> None:
        """End watches and look-ups; the client stays open."""
        await super().stop()
        await self.nodes.stop()
        await self._resolver.close()
        await self._lookups.close()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of classes, namespaces or tenants. It must be quick."""
        self._listeners.append(listener)

    def classes(self) -> Mapping[str, PriorityClass]:
        """The live PriorityClasses by name."""
        return self._classes.store.objects

    def tenants(self) -> Sequence[Tenant]:
        """The tenants in force, the oldest first."""
        return self._resolver.tenants

    def tenant_quotas(self) -> Sequence[TenantQuota]:
        """All TenantQuotas, broken ones too."""
        return tuple(self.quotas.objects.values())

    def tenant_uid(self, name: str) -> str | None:
        """The UID of a TenantQuota; None where there is none of that name."""
        found = self.quotas.get(name)
        return found.uid if found else None

    def overlap(self, tenant: str) -> Overlap | None:
        """The namespaces that a tenant selects and does not get."""
        if self._overlaps is None:
            self._overlaps = overlaps(self.tenants(), self.namespaces())
        return self._overlaps.get(tenant)

    def namespaces(self) -> Sequence[Namespace]:
        """All namespaces that the watch has brought."""
        return tuple(self._namespaces.store.objects.values())

    def tenant_name(self, namespace: str) -> str | None:
        """The name of a namespace's tenant; None where it has none or is gone."""
        return self._resolver.tenant_name(namespace)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: of several that select it the oldest."""
        return self._resolver.tenant_of(namespace)

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node by which the policy's flavors are told."""
        return self.nodes.labels(name)

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels, read at once where the watch has not brought it yet. Raises Unreadable."""
        return await self._resolver.namespace(name)

    async def outermost(self, namespace: str, first: OwnerReference, kinds: KindTable) -> OwnerReference | None:
        """The end of the chain of owners, as a reference; None where `kinds` does not hold the kind of `first`."""
        return await self._lookups.outermost(namespace, first, kinds)

    async def stored(self, namespace: str, name: str, row: KindRow) -> dict[str, Any]:
        """A workload as it is stored now. Raises Unreadable."""
        return await self._lookups.stored(namespace, name, row)

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """The ResourceQuotas of a namespace, kept for 2 s; none where they can't be read."""
        return await self._lookups.native_quotas(namespace)

    def problems(self) -> list[str]:
        """What can't be watched now, a sentence each."""
        return [*super().problems(), *self.nodes.problems()]

    def _changed(self) -> None:
        self._overlaps = None
        self._resolver.update(each.tenant for each in self.quotas.objects.values() if each.tenant)
        for listener in self._listeners:
            listener()


_CLASSES = Source(path("scheduling.k8s.io/v1", "priorityclasses"))
_NAMESPACES = Source(path("v1", "namespaces"))
_TENANT_QUOTAS = Source(path(API_VERSION, PLURAL))


def _priority_class(raw: msgspec.Raw) -> PriorityClass:
    return priority_class(msgspec.json.decode(raw))


def _namespace(raw: msgspec.Raw) -> Namespace:
    metadata = read(raw, Named).metadata
    return Namespace(metadata.name, metadata.labels)
