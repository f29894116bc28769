"""Watches the facts of a cluster: classes, namespaces, tenants, device classes, labels of nodes.

A watched fact may be seconds old. While the API server can't be reached it is as old as the last event, and `problems`
reports that. A namespace that the watch has not shown yet is read at once, and remembered until the watch shows it, for
ten minutes at most. So a tenant's usage includes what reviews have booked in a namespace that is new.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from webhook.cluster.device_class_informer import DeviceClassInformer
from webhook.cluster.listed import plugged_resources
from webhook.cluster.views import priority_class
from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, NoSuchApi, NotFound
from webhook.kube.reflector import Reflector, Reflectors, Source, Store, storing
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import read, view
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, watched_tenant_quota
from webhook.policy.quota.tenant_status import Overlap, overlaps
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import EvictionScope, evicts_for_devices
from webhook.policy.values.tenants import Tenant, by_age, tenant_among
from webhook.policy.values.tiers import PriorityClass
from webhook.sentences.sentence import problem_text, sentence

log = logging.getLogger(__name__)

OnChange = Callable[[str, TenantQuota | None], None]
OnList = Callable[[Mapping[str, TenantQuota]], None]

FRESH_SECONDS = 1.0
"""Seconds for which a look-up of a namespace is reused while the watch has not shown the namespace."""
REMEMBERED_SECONDS = 600.0
"""Most seconds for which such a namespace is remembered after a look-up. Watches are rarely broken for longer."""
MOST_REMEMBERED = 1024
REVIEW_SECONDS = 3.0
"""Seconds for a chain of owners, and for each other object. The API server gives the whole review 5 s."""


class TenantStore(Store[TenantQuota]):
    """TenantQuotas as they were seen last. If one is broken, its last good tenant stays active.

    `changed` is called when a TenantQuota is created or deleted, when its spec or its tenant changes, which depends on
    the status too, and after each list. A status changes with each booking, so only `follow` gets every version.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(changed)
        self._followers: list[tuple[OnChange, OnList]] = []

    def follow(self, on_change: OnChange, on_list: OnList) -> None:
        """Call `on_change` with each name and version, or None once it is deleted, and `on_list` with each list.

        Both must be quick.
        """
        self._followers.append((on_change, on_list))

    def update(self, name: str, found: TenantQuota | None) -> None:
        before = self.objects.get(name)
        same_spec = before and found and (before.uid, before.generation) == (found.uid, found.generation)
        if before and found and same_spec and found.tenant in (before.tenant, None):
            self.objects[name] = self.stored(name, found)
        else:
            super().update(name, found)
        for on_change, _ in self._followers:
            on_change(name, found)

    def replace(self, found: Mapping[str, TenantQuota]) -> None:
        super().replace(found)
        for _, on_list in self._followers:
            on_list(found)

    def stored(self, name: str, found: TenantQuota) -> TenantQuota:
        """Return the object; a broken one with its last good tenant."""
        if found.problem is None:
            return found
        before = self.objects.get(name)
        if before is None or before.problem != found.problem:
            log.warning("tenant quota broken", {"tenant": name, "problem": sentence(found.problem)})
        return replace(found, tenant=before.tenant if before else None)


async def stored_namespace(client: Client, name: str) -> Namespace | None:
    """Return a namespace as it is now; None if there is none. Raises Unreadable."""
    async with in_time(f"namespace {name}"):
        try:
            tree = await client.get(path("v1", "namespaces", name=name))
        except NoSuchApi:
            raise
        except NotFound:
            return None
        return namespace_of(view(tree, Named).metadata)


@asynccontextmanager
async def in_time(what: str, seconds: float = REVIEW_SECONDS) -> AsyncIterator[None]:
    """End a look-up after so many seconds, and make each of its failures an Unreadable with a sentence."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unreadable(f"{what}: no answer from the API server within {seconds:g} s") from None
    except (ApiError, Refused) as error:
        raise Unreadable(f"{what} can't be read: {problem_text(error)}") from error


@dataclass(eq=False)
class TenantResolver:
    """The known namespaces, and the active tenants, the oldest first.

    `watched` returns a namespace that the watch has shown, and `look_up` a namespace as it is now, or None.
    Call `update` after each change of namespaces or TenantQuotas.
    """

    watched: Callable[[str], Namespace | None]
    look_up: Callable[[str], Awaitable[Namespace | None]]
    clock: Callable[[], float] = time.monotonic
    _looked_up: OrderedDict[str, tuple[float, Namespace]] = field(default_factory=OrderedDict)
    tenants: Sequence[Tenant] = ()
    _names: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fresh: TTLCache[str, Namespace] = TTLCache(FRESH_SECONDS, MOST_REMEMBERED, self.clock)

    def update(self, tenants: Iterable[Tenant]) -> None:
        """Note the active tenants, and that the watch may have shown or deleted namespaces."""
        self.tenants = tuple(by_age(tenants))
        self._names.clear()
        for name in [name for name in self._looked_up if self.watched(name)]:
            del self._looked_up[name]

    async def namespace(self, name: str) -> Namespace:
        """Return a namespace, looked up if the watch has not shown it yet. Raises Unreadable."""
        return self.watched(name) or await self._fresh.get(name, lambda: self._asked(name))

    def tenant_of(self, namespace: Namespace) -> Tenant | None:
        """Return the tenant of a namespace: the oldest that selects it, by name if two have the same age."""
        return tenant_among(self.tenants, namespace.labels)

    def tenant_name(self, name: str) -> str | None:
        """Return the name of a namespace's tenant; None if it has none, is gone, or is not known yet."""
        if name in self._names:
            return self._names[name]
        watched = self.watched(name)
        until, remembered = self._looked_up.get(name, (0.0, None))
        found = watched or (remembered if until > self.clock() else None)
        tenant = self.tenant_of(found) if found else None
        answer = tenant.name if tenant else None
        if watched or not found:  # a look-up is remembered for a time only
            self._names[name] = answer
        return answer

    async def close(self) -> None:
        await self._fresh.close()

    async def _asked(self, name: str) -> Namespace:
        found = await self.look_up(name)
        self._looked_up.pop(name, None)
        self._names.pop(name, None)
        if found is None:
            raise Unreadable(f"namespace {name} does not exist")
        if not self.watched(name):
            self._looked_up[name] = (self.clock() + REMEMBERED_SECONDS, found)
        if len(self._looked_up) > MOST_REMEMBERED:
            self._looked_up.popitem(last=False)
        return found


Labels = Mapping[str, str]

_NODES = path("v1", "nodes")


class NodeInformer(Reflectors):
    """Watches the labels of nodes, and no other field. Nothing is watched until `follow` names a label.

    `plugins`: it watches the resources of each node's device plugins instead. For them it needs whole nodes, so its
    caller follows only the extended resources of DeviceClasses.
    """

    def __init__(self, client: Client, *, plugins: bool = False) -> None:
        self._plugins = plugins
        self._keys: frozenset[str] = frozenset()
        self._labels: dict[str, Labels] = {}
        self._there: frozenset[str] | None = None
        self._listed = False
        self._listeners: list[Callable[[str], None]] = []
        source = Source(_NODES, metadata_only=not plugins)
        self._reflector: Reflector[Labels] = Reflector(client, source, self._projected, self._update, self._replace)
        super().__init__(self._reflector)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name of each node whose labels have changed."""
        self._listeners.append(listener)

    def labels(self, name: str) -> Labels | None:
        """Return a node's labels of the followed keys; None for an unknown node."""
        return self._labels.get(name)

    @property
    def there(self) -> frozenset[str] | None:
        """The followed keys that some node has; None while the nodes are not known."""
        if not self.started or not self._listed:
            return None
        if self._there is None:
            self._there = frozenset(key for each in self._labels.values() for key in each)
        return self._there

    def follow(self, keys: Collection[str]) -> None:
        """Watch the labels of these keys; without a key, watch nothing."""
        before, self._keys = self._keys, frozenset(keys)
        if self._keys == before:
            return
        self._listed = False  # until the nodes have been read by these keys
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
        """The seconds since the last event; 0 if nothing is watched."""
        return super().silent_seconds if self._keys else 0.0

    async def _projected(self, raw: msgspec.Raw) -> Labels:
        labels = plugged_resources(raw) if self._plugins else read(raw, Named).metadata.labels
        return {key: labels[key] for key in self._keys & labels.keys()}

    def _update(self, name: str, found: Labels | None) -> None:
        self._there = None
        if found != self._labels.get(name):
            if found is None:
                del self._labels[name]
            else:
                self._labels[name] = found
            for listener in self._listeners:
                listener(name)

    def _replace(self, found: Mapping[str, Labels]) -> None:
        self._listed = bool(self._keys)
        for name in self._labels.keys() | found.keys():
            self._update(name, found.get(name))


class Watched(Reflectors):
    """`Known` facts of an API server. Use it as `async with`.

    `seen_namespace` returns a namespace if the watch has shown it. `namespace`, `tenant` and `tenant_name` are those of
    the TenantResolver.
    """

    def __init__(self, client: Client) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._overlaps: dict[str, Overlap] | None = None
        self._classes = Store[PriorityClass](self._changed)
        self._namespaces = Store[Namespace](self._changed)
        self.quotas = TenantStore(self._changed)
        self.nodes = NodeInformer(client)
        self.plugins = NodeInformer(client, plugins=True)
        self.device_classes = DeviceClassInformer(client)
        self._others = self.nodes, self.plugins, self.device_classes
        self.seen_namespace = self._namespaces.get
        self._resolver = TenantResolver(self.seen_namespace, lambda name: stored_namespace(client, name))
        self.namespace = self._resolver.namespace
        self.tenant, self.tenant_name = self._resolver.tenant_of, self._resolver.tenant_name
        classes, namespaces = Source(path("scheduling.k8s.io/v1", "priorityclasses")), Source(path("v1", "namespaces"))
        super().__init__(
            storing(client, classes, lambda raw: priority_class(msgspec.json.decode(raw)), self._classes),
            storing(client, namespaces, lambda raw: namespace_of(read(raw, Named).metadata), self._namespaces),
            storing(client, Source(path(API_VERSION, PLURAL)), watched_tenant_quota, self.quotas),
        )

    async def stop(self) -> None:
        """End the watches; the client stays open."""
        await super().stop()
        for each in self._others:
            await each.stop()
        await self._resolver.close()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of classes, namespaces or tenants. It must be quick."""
        self._listeners.append(listener)

    def classes(self) -> Mapping[str, PriorityClass]:
        return self._classes.objects

    def tenants(self) -> Sequence[Tenant]:
        return self._resolver.tenants

    def tenant_quotas(self) -> Sequence[TenantQuota]:
        """Return all TenantQuotas, also broken ones."""
        return tuple(self.quotas.objects.values())

    def tenant_uid(self, name: str) -> str | None:
        found = self.quotas.get(name)
        return found.uid if found else None

    def overlap(self, tenant: str) -> Overlap | None:
        """Return the namespaces that a tenant selects but an older tenant has; None if there are none."""
        if self._overlaps is None:
            self._overlaps = overlaps(self.tenants(), self.namespaces())
        return self._overlaps.get(tenant)

    def namespaces(self) -> Sequence[Namespace]:
        return tuple(self._namespaces.objects.values())

    def eviction(self) -> EvictionScope:
        return EvictionScope(self.plugins.there, evicts_for_devices(self.device_classes.cluster_version))

    def node_labels(self, name: str) -> Mapping[str, str]:
        return self.nodes.labels(name) or {}

    def problems(self) -> list[str]:
        return [*super().problems(), *(problem for each in self._others for problem in each.problems())]

    @property
    def silent_seconds(self) -> float:
        """The seconds since the last event of the most silent watch."""
        return max(super().silent_seconds, *(each.silent_seconds for each in self._others))

    def _changed(self) -> None:
        self._overlaps = None
        self._resolver.update(each.tenant for each in self.quotas.objects.values() if each.tenant)
        for listener in self._listeners:
            listener()
