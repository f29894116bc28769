"""The objects of one kind as they are now, by name, reduced to what is needed of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

import msgspec
import structlog

from webhook.kube.client import Client
from webhook.kube.reflector import Reflector, Source
from webhook.policy.quota.tenant_quotas import TenantQuota, read_tenant_quota

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Informer(Generic[T]):
    """All objects of a source by name. `changed` is called after each change."""

    def __init__(
        self, client: Client, source: Source, project: Callable[[msgspec.Raw], T], changed: Callable[[], None]
    ) -> None:
        async def projected(raw: msgspec.Raw) -> T:
            return project(raw)

        self.objects: dict[str, T] = {}
        self._changed = changed
        self.reflector = Reflector(client, source, projected, self._change, self._replace)

    def _change(self, name: str, found: T | None) -> None:
        if found is None:
            self.objects.pop(name, None)
        else:
            self.objects[name] = self.taken(name, found)
        self._changed()

    def _replace(self, found: Mapping[str, T]) -> None:
        self.objects = {name: self.taken(name, value) for name, value in found.items()}
        self._changed()

    def taken(self, name: str, found: T) -> T:  # noqa: ARG002 - for TenantObjects
        """What is kept of a found object."""
        return found


class TenantInformer(Informer[TenantQuota]):
    """TenantQuotas; of one that broke, the last good tenant stays in force."""

    def __init__(self, client: Client, source: Source, changed: Callable[[], None]) -> None:
        super().__init__(client, source, read_tenant_quota, changed)

    def taken(self, name: str, found: TenantQuota) -> TenantQuota:
        """The object, with the tenant that it was before it broke."""
        if found.problem is None:
            return found
        before = self.objects.get(name)
        if before is None or before.problem != found.problem:
            log.warning("tenant quota broken", tenant=name, problem=found.problem)
        return replace(found, tenant=before.tenant if before else None)
