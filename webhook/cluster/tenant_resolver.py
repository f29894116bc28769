"""Which tenant a namespace belongs to: one answer, for reviews and for the ledger.

A pod may come before the watch brings its namespace. That is looked up then, and remembered until the watch brings
it: whoever sums up what a tenant holds knows such a namespace by the same answer as the review that booked in it.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from webhook.kube.reflector import Store
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.refusal import Unreadable
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, by_age, tenant_among
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

OnChange = Callable[[str, TenantQuota | None], None]
OnList = Callable[[Mapping[str, TenantQuota]], None]

FRESH_SECONDS = 1.0
"""How long a namespace that the watch has not brought is taken for what it was when it was looked up."""
REMEMBERED_SECONDS = 600.0
"""How long it is known as its tenant's while no watch says otherwise: longer than a watch mostly stays broken."""
MOST_REMEMBERED = 1024


class TenantStore(Store[TenantQuota]):
    """TenantQuotas as they were seen last; of one that broke, the last good tenant stays in force.

    `changed` is called where a spec changes. A status changes with each booking: `follow` gets every version.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(changed)
        self._followers: list[tuple[OnChange, OnList]] = []

    def follow(self, on_change: OnChange, on_list: OnList) -> None:
        """Tell of every version as it was sent, None where one is deleted, and of every list. They must be quick."""
        self._followers.append((on_change, on_list))

    def update(self, name: str, found: TenantQuota | None) -> None:
        before = self.objects.get(name)
        if before and found and (before.uid, before.generation) == (found.uid, found.generation):
            self.objects[name] = self.kept(name, found)
        else:
            super().update(name, found)
        for on_change, _ in self._followers:
            on_change(name, found)

    def replace(self, found: Mapping[str, TenantQuota]) -> None:
        super().replace(found)
        for _, on_list in self._followers:
            on_list(found)

    def kept(self, name: str, found: TenantQuota) -> TenantQuota:
        """The object, with the tenant that it was before it broke."""
        if found.problem is None:
            return found
        before = self.objects.get(name)
        if before is None or before.problem != found.problem:
            log.warning("tenant quota broken", {"tenant": name, "problem": sentence(found.problem)})
        return replace(found, tenant=before.tenant if before else None)


class TenantResolver:
    """The namespaces that are known, and the tenants in force, the oldest first.

    `watched` gives a namespace that the watch has brought, `look_up` one as it is now; each None where there is none.
    `update` the resolver after each change of namespaces or TenantQuotas.
    """

    def __init__(
        self,
        watched: Callable[[str], Namespace | None],
        look_up: Callable[[str], Awaitable[Namespace | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watched = watched
        self._look_up = look_up
        self._clock = clock
        self._fresh: TTLCache[str, Namespace] = TTLCache(FRESH_SECONDS, MOST_REMEMBERED, clock)
        self._looked_up: OrderedDict[str, tuple[float, Namespace]] = OrderedDict()
        self._tenants: tuple[Tenant, ...] = ()
        self._names: dict[str, str | None] = {}

    @property
    def tenants(self) -> Sequence[Tenant]:
        return self._tenants

    def update(self, tenants: Iterable[Tenant]) -> None:
        """These tenants are in force, and the watch may have brought or deleted namespaces."""
        self._tenants = tuple(by_age(tenants))
        self._names.clear()
        for name in [name for name in self._looked_up if self._watched(name)]:
            del self._looked_up[name]

    async def namespace(self, name: str) -> Namespace:
        """A namespace, looked up where the watch has not brought it yet. Raises Unreadable."""
        return self._watched(name) or await self._fresh.get(name, lambda: self._asked(name))

    def tenant_of(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: the oldest that selects it, by name where two are of one age."""
        return tenant_among(self._tenants, namespace.labels)

    def tenant_name(self, name: str) -> str | None:
        """The name of a namespace's tenant; None where it has none, is gone, or is not known yet."""
        if name in self._names:
            return self._names[name]
        watched = self._watched(name)
        found = watched or self._remembered(name)
        tenant = self.tenant_of(found) if found else None
        answer = tenant.name if tenant else None
        if watched or not found:  # what was looked up is known for a time only
            self._names[name] = answer
        return answer

    async def close(self) -> None:
        await self._fresh.close()

    async def _asked(self, name: str) -> Namespace:
        found = await self._look_up(name)
        self._looked_up.pop(name, None)
        self._names.pop(name, None)
        if found is None:
            raise Unreadable(f"namespace {name} does not exist")
        if not self._watched(name):
            self._looked_up[name] = (self._clock() + REMEMBERED_SECONDS, found)
        if len(self._looked_up) > MOST_REMEMBERED:
            self._looked_up.popitem(last=False)
        return found

    def _remembered(self, name: str) -> Namespace | None:
        until, found = self._looked_up.get(name, (0.0, None))
        return found if until > self._clock() else None
