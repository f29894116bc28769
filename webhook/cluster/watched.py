"""What is known of a cluster by watching it: classes, namespaces, tenants, device classes, labels of nodes.

A watched fact may be seconds old, and as old as the last event while the API server can't be reached: `problems`
says so. A namespace that the watch has not brought yet is read at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from webhook.cluster.device_class_informer import DeviceClassInformer
from webhook.cluster.gpu_nodes import plugged_resources
from webhook.cluster.stored_objects import stored_namespace
from webhook.cluster.tenant_resolver import TenantResolver, TenantStore
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Informer, Reflector, Reflectors, Source, Store
from webhook.objects.pods import Metadata, Named
from webhook.objects.view import View, read, view
from webhook.policy.quota.conditions import Overlap, overlaps
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import EvictionScope, evicts_for_devices
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass

Labels = Mapping[str, str]

_LABELS_OF_NODES = Source(path("v1", "nodes"), metadata_only=True)
_WHOLE_NODES = Source(path("v1", "nodes"))


class NodeInformer(Reflectors):
    """Labels by node; of a node nothing else is read. Nothing is watched until `follow` names a label."""

    source = _LABELS_OF_NODES

    def __init__(self, client: Client) -> None:
        self._keys: frozenset[str] = frozenset()
        self._labels: dict[str, Labels] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._reflector: Reflector[Labels] = Reflector(
            client, self.source, self._projected, self._update, self._replace
        )
        super().__init__(self._reflector)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name of each node whose labels have changed."""
        self._listeners.append(listener)

    def labels(self, name: str) -> Labels | None:
        """A node's labels of the keys that are followed; None of a node that is not known."""
        return self._labels.get(name)

    def follow(self, keys: Collection[str]) -> None:
        """Watch the labels of these keys; without a key, watch nothing."""
        before, self._keys = self._keys, frozenset(keys)
        if self._keys == before:
            return
        self._reflector.relist()
        if not before:
            self.start()
        elif not self._keys:
            for task in self._tasks:
                task.cancel()
            self._replace({})

    def problems(self) -> list[str]:
        return super().problems() if self._keys else []

    @property
    def silent_seconds(self) -> float:
        """How long they have said nothing; 0 where nothing is watched."""
        return super().silent_seconds if self._keys else 0.0

    async def _projected(self, raw: msgspec.Raw) -> Labels:
        labels = read(raw, Named).metadata.labels
        return {key: labels[key] for key in self._keys & labels.keys()}

    def _update(self, name: str, found: Labels | None) -> None:
        if found != self._labels.get(name):
            self._keep(name, found)
            for listener in self._listeners:
                listener(name)

    def _keep(self, name: str, found: Labels | None) -> None:
        if found is None:
            del self._labels[name]
        else:
            self._labels[name] = found

    def _replace(self, found: Mapping[str, Labels]) -> None:
        for name in self._labels.keys() | found.keys():
            self._update(name, found.get(name))


class PluginInformer(NodeInformer):
    """The resources that the device plugin of each node has, of the names that are followed.

    Whole nodes are watched for it, so it follows only the extended resources of DeviceClasses.
    """

    source = _WHOLE_NODES

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._there: frozenset[str] | None = None
        self.subscribe(lambda _: self._forget())

    @property
    def resources(self) -> frozenset[str] | None:
        """The resources that some node has; None while the nodes are not known."""
        if not self.started or not self.synced:
            return None
        if self._there is None:
            self._there = frozenset(name for each in self._labels.values() for name in each)
        return self._there

    def _forget(self) -> None:
        self._there = None

    async def _projected(self, raw: msgspec.Raw) -> Labels:
        offered = plugged_resources(raw)
        return {name: offered[name] for name in self._keys & offered.keys()}


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
        self.plugins = PluginInformer(client)
        self.device_classes = DeviceClassInformer(client)
        self._resolver = TenantResolver(self._namespaces.store.get, lambda name: stored_namespace(client, name))
        super().__init__(self._classes.reflector, self._namespaces.reflector, quotas.reflector)

    async def stop(self) -> None:
        """End the watches; the client stays open."""
        await super().stop()
        await self.nodes.stop()
        await self.plugins.stop()
        await self.device_classes.stop()
        await self._resolver.close()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of classes, namespaces or tenants. It must be quick."""
        self._listeners.append(listener)

    def classes(self) -> Mapping[str, PriorityClass]:
        return self._classes.store.objects

    def tenants(self) -> Sequence[Tenant]:
        return self._resolver.tenants

    def tenant_quotas(self) -> Sequence[TenantQuota]:
        """All TenantQuotas, broken ones too."""
        return tuple(self.quotas.objects.values())

    def tenant_uid(self, name: str) -> str | None:
        found = self.quotas.get(name)
        return found.uid if found else None

    def overlap(self, tenant: str) -> Overlap | None:
        """The namespaces that a tenant selects and does not get."""
        if self._overlaps is None:
            self._overlaps = overlaps(self.tenants(), self.namespaces())
        return self._overlaps.get(tenant)

    def namespaces(self) -> Sequence[Namespace]:
        return tuple(self._namespaces.store.objects.values())

    def seen_namespace(self, name: str) -> Namespace | None:
        """One that the watch has shown."""
        return self._namespaces.store.objects.get(name)

    def tenant_name(self, namespace: str) -> str | None:
        return self._resolver.tenant_name(namespace)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        return self._resolver.tenant_of(namespace)

    def eviction(self) -> EvictionScope:
        return EvictionScope(self.plugins.resources, evicts_for_devices(self.device_classes.cluster_version))

    def node_labels(self, name: str) -> Mapping[str, str]:
        return self.nodes.labels(name) or {}

    async def namespace(self, name: str) -> Namespace:
        return await self._resolver.namespace(name)

    def problems(self) -> list[str]:
        watches = (self.nodes, self.plugins, self.device_classes)
        return [*super().problems(), *(problem for each in watches for problem in each.problems())]

    @property
    def silent_seconds(self) -> float:
        """The same of all of them."""
        watches = (self.nodes, self.plugins, self.device_classes)
        return max(super().silent_seconds, *(each.silent_seconds for each in watches))

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
    return namespace_of(read(raw, Named).metadata)
