"""Reads single objects on a review's way: owners, groups and claims, kept briefly, and namespaces."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from webhook.cluster.claims import GROUP, Claim, ClaimTemplate, devices_of
from webhook.cluster.groups import group_of, size_of
from webhook.cluster.owners import FetchOwner, Owner, links, owner_of, walk
from webhook.cluster.resource_quotas import ResourceQuota, native_quota
from webhook.cluster.runtimes import complete_workload, completed_owner
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, NoSuchApi, NotFound
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
from webhook.kube.wire import listed_objects
from webhook.objects.group_kind import GroupKind
from webhook.objects.podgroups import PodGroup, TemplateReference
from webhook.objects.pods import Named, OwnerReference, PodClaim
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.scheduling_workloads import PodGroupTemplate, SchedulingWorkload
from webhook.objects.view import View, read, view
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group, Namespace
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow, RuntimeKinds
from webhook.policy.workloads.workload import Devices, Workload

log = structlog.get_logger(__name__)

V = TypeVar("V", bound=View)

Tree = dict[str, Any]

REVIEW_SECONDS = 3.0
"""For a chain of owners, and for each other object; the API server gives the whole review 5 s."""
OWNER_SECONDS = 30.0
"""How long an owner is taken for what it was: a tier label changed on a running workload counts after this time."""
OBJECT_SECONDS = 5.0
"""How long a group or a claim is kept: their specs are immutable, but they may be deleted and made anew."""
QUOTA_SECONDS = 2.0
"""How long the ResourceQuotas of a namespace are kept, and waited for: they only make a refusal's offers better."""
MOST_OWNERS = 2048
MOST_OBJECTS = 1024


class Lookups:
    """Every method raises Unreadable with a sentence where what it asks for can't be read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._owners: TTLCache[tuple[str, KindTable, OwnerReference], Owner | None] = TTLCache(
            OWNER_SECONDS, MOST_OWNERS
        )
        self._groups: TTLCache[tuple[str, str], Group] = TTLCache(OBJECT_SECONDS, MOST_OBJECTS)
        self._sizes: TTLCache[tuple[str, GroupKind, str], int] = TTLCache(OBJECT_SECONDS, MOST_OBJECTS)
        self._templates: TTLCache[tuple[str, str], SchedulingWorkload] = TTLCache(OBJECT_SECONDS, MOST_OBJECTS)
        self._quotas: TTLCache[str, tuple[NativeQuota, ...]] = TTLCache(QUOTA_SECONDS, MOST_OBJECTS)
        self._claims: TTLCache[tuple[str, PodClaim], tuple[Devices, ...]] = TTLCache(OBJECT_SECONDS, MOST_OBJECTS)

    async def close(self) -> None:
        """End the look-ups under way."""
        for cache in (
            self._owners,
            self._groups,
            self._sizes,
            self._templates,
            self._quotas,
            self._claims,
            self._discovery,
        ):
            await cache.close()

    async def namespace(self, name: str) -> Namespace | None:
        """A namespace as it is now, None where there is none."""
        async with _in_time(f"namespace {name}"):
            try:
                tree = await self._client.get(path("v1", "namespaces", name=name))
            except NoSuchApi:
                raise
            except NotFound:
                return None
            return Namespace(name, view(tree, Named).metadata.labels)

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of owners."""
        async with _in_time(f"the owners of {first.kind}/{first.name[:63]}"):
            return await walk(first, kinds, self._fetching(namespace, kinds))

    async def outermost(self, namespace: str, first: OwnerReference, kinds: KindTable) -> OwnerReference | None:
        """The end of the chain of owners."""
        async with _in_time(f"the owners of {first.kind}/{first.name[:63]}"):
            chain = await links(first, kinds, self._fetching(namespace, kinds))
        return chain[-1][0] if chain else None

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup of any version."""
        async with _in_time(f"PodGroup/{name}"):
            return await self._groups.get((namespace, name), lambda: self._group(namespace, name))

    async def group_size(self, namespace: str, kind: GroupKind, name: str) -> int:
        """The pods that a PodGroup of that kind needs together; 0 where none is found. Never Unreadable."""
        try:
            async with _in_time(f"PodGroup/{name[:63]}"):
                return await self._sizes.get((namespace, kind, name), lambda: self._size(namespace, kind, name))
        except Unreadable as problem:
            log.warning("group not read", group=name, reason=str(problem))
            return 0

    async def group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names; None where there is none: nobody checks that it exists."""
        key = (namespace, reference.workload_name)
        async with _in_time(f"Workload/{reference.workload_name[:63]}"):
            try:
                return (await self._templates.get(key, lambda: self._workload(*key))).template(reference.template)
            except Missing:
                return None

    async def stored(self, namespace: str, name: str, row: KindRow) -> Tree:
        """A workload as it is stored now, never kept: it is changed by the request under review."""
        shown = f"{row.kind}/{name[:63]}"
        async with _in_time(shown):
            version = await self._discovery.api_version(row.group, row.plural)
            return await self._get(path(version, row.plural, namespace, name), shown)

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        """A workload with the runtime that it names."""

        async def read(runtime: RuntimeKinds, kind: str, name: str) -> Tree:
            plural, home = runtime.plurals[kind], None if kind in runtime.cluster_wide else namespace
            async with _in_time(f"{kind}/{name[:63]}"):
                version = await self._discovery.api_version(runtime.group, plural)
                return await self._get(path(version, plural, home, name), f"{kind}/{name[:63]}")

        return await complete_workload(tree, row, read)

    async def native_quotas(self, namespace: str) -> tuple[NativeQuota, ...]:
        """The ResourceQuotas of a namespace that may count pods with GPUs. Never Unreadable: then it is none."""
        try:
            async with _in_time(f"the ResourceQuotas of {namespace}", QUOTA_SECONDS):
                return await self._quotas.get(namespace, lambda: self._native_quotas(namespace))
        except Unreadable as problem:
            log.warning("quotas not read", namespace=namespace, reason=str(problem))
            return ()

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """The devices of a pod's claim, which is made already or is to be made of a template."""
        async with _in_time(claim.source):
            return await self._claims.get((namespace, claim), lambda: self._claim(namespace, claim))

    def _fetching(self, namespace: str, kinds: KindTable) -> FetchOwner:
        """Kept by all that a reference says, so a forged one never meets a true one's answer."""

        async def fetch(reference: OwnerReference, row: KindRow) -> Owner | None:
            return await self._owners.get((namespace, kinds, reference), lambda: self._owner(namespace, reference, row))

        return fetch

    async def _owner(self, namespace: str, reference: OwnerReference, row: KindRow) -> Owner | None:
        """The owner; None where its API is not served: nothing of that kind can exist, and the walk ends."""
        place = path(reference.api_version, row.plural, namespace, reference.name)
        try:
            tree = await self._get(place, f"owner {reference.kind}/{reference.name}")
        except NoSuchApi:
            return None
        return owner_of(await completed_owner(self.completed(namespace, tree, row), tree), row)

    async def _group(self, namespace: str, name: str) -> Group:
        version = await self._discovery.api_version("scheduling.k8s.io", "podgroups")
        found = await self._read(path(version, "podgroups", namespace, name), PodGroup, f"PodGroup/{name}")
        return group_of(found, name, prioritized=found.spec.priority is not None)

    async def _size(self, namespace: str, kind: GroupKind, name: str) -> int:
        version = await self._discovery.api_version(kind.group, "podgroups")
        return size_of(await self._get(path(version, "podgroups", namespace, name), f"PodGroup/{name[:63]}"))

    async def _workload(self, namespace: str, name: str) -> SchedulingWorkload:
        version = await self._discovery.api_version("scheduling.k8s.io", "workloads")
        return await self._read(path(version, "workloads", namespace, name), SchedulingWorkload, f"Workload/{name}")

    async def _native_quotas(self, namespace: str) -> tuple[NativeQuota, ...]:
        pages = self._client.list_pages(path("v1", "resourcequotas", namespace))
        found = [native_quota(read(raw, ResourceQuota)) async for raw in listed_objects(pages)]
        return tuple(each for each in found if each is not None)

    async def _claim(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        if claim.resource_claim_name is not None:
            kind, plural, name = "ResourceClaim", "resourceclaims", claim.resource_claim_name
            place = await self._in_resource_api(plural, namespace, name)
            found = await self._read(place, Claim, f"{kind}/{name}")
            return tuple(devices_of(found.spec, claim.name, f"{namespace}/{name}"))
        kind, plural, name = "ResourceClaimTemplate", "resourceclaimtemplates", claim.resource_claim_template_name or ""
        place = await self._in_resource_api(plural, namespace, name)
        template = await self._read(place, ClaimTemplate, f"{kind}/{name}")
        return tuple(devices_of(template.spec.spec, claim.name))

    async def _in_resource_api(self, plural: str, namespace: str, name: str) -> str:
        return path(await self._discovery.api_version(GROUP, plural), plural, namespace, name)

    async def _read(self, place: str, shape: type[V], shown: str) -> V:
        return view(await self._get(place, shown), shape)

    async def _get(self, place: str, shown: str) -> dict[str, Any]:
        try:
            return await self._client.get(place)
        except NoSuchApi:
            raise
        except NotFound:
            raise Missing(f"{shown} does not exist") from None


@asynccontextmanager
async def _in_time(what: str, seconds: float = REVIEW_SECONDS) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unreadable(f"{what}: no answer from the API server within {seconds:g} s") from None
    except (ApiError, Refused) as error:
        raise Unreadable(f"{what} can't be read: {error}") from error
