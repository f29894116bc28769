"""What is known of a cluster by watching it: classes, namespaces, tenants, device classes, labels of nodes.

A watched fact may be seconds old, and as old as the last event while the API server can't be reached: `problems`
says so. A namespace that the watch has not brought yet is read at once.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from webhook.cluster.device_class_informer import DeviceClassInformer
from webhook.cluster.node_informer import NodeInformer
from webhook.cluster.stored_objects import stored_namespace
from webhook.cluster.tenant_resolver import TenantResolver, TenantStore
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Source
from webhook.kube.reflectors import Informer, Reflectors, Store
from webhook.objects.pods import Metadata, Named
from webhook.objects.view import View, read, view
from webhook.policy.quota.conditions import Overlap, overlaps
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass


class Watched(Reflectors):
    """`Known` of an API server. Use it as `async with`."""

    def __init__(self, client: Client) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._overlaps: dict[str, Overlap] | None = None
        self._classes = Informer(client, _CLASSES, _priority_class, Store(self._changed))
        self._namespaces = Informer(client, _NAMESPACES, _namespace, Store(self._changed))
        self.quotas = TenantStore(self._changed)
        quotas = Informer(client, _TENANT_QUOTAS, read_tenant_quota, self.quotas)
        self.nodes = NodeInformer(client)
        self.device_classes = DeviceClassInformer(client)
        self._resolver = TenantResolver(self._namespaces.store.get, lambda name: stored_namespace(client, name))
        super().__init__(self._classes.reflector, self._namespaces.reflector, quotas.reflector)

    async def stop(self) -> None:
        """End the watches; the client stays open."""
        await super().stop()
        await self.nodes.stop()
        await self.device_classes.stop()
        await self._resolver.close()

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
        return self.nodes.labels(name) or {}

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels, read at once where the watch has not brought it yet. Raises Unreadable."""
        return await self._resolver.namespace(name)

    def problems(self) -> list[str]:
        """What can't be watched now, a sentence each."""
        return [*super().problems(), *self.nodes.problems(), *self.device_classes.problems()]

    def _changed(self) -> None:
        self._overlaps = None
        self._resolver.update(each.tenant for each in self.quotas.objects.values() if each.tenant)
        for listener in self._listeners:
            listener()


_CLASSES = Source(path("scheduling.k8s.io/v1", "priorityclasses"))
_NAMESPACES = Source(path("v1", "namespaces"))
_TENANT_QUOTAS = Source(path(API_VERSION, PLURAL))


class _Class(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


def priority_class(tree: object) -> PriorityClass:
    """A PriorityClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _Class)
    ours = found.metadata.labels.get("app.kubernetes.io/name") == "gpu-tiers"
    return PriorityClass(found.metadata.name, found.value, found.preemption_policy, found.global_default, ours)


def _priority_class(raw: msgspec.Raw) -> PriorityClass:
    return priority_class(msgspec.json.decode(raw))


def _namespace(raw: msgspec.Raw) -> Namespace:
    metadata = read(raw, Named).metadata
    return Namespace(metadata.name, metadata.labels, metadata.uid)
