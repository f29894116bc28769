"""What a cluster has of the objects that gpu-tiers decides by: TenantQuotas, PriorityClasses, namespaces."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from webhook.cli.documents import BadInput
from webhook.cli.output import fail
from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Named
from webhook.objects.view import read, view
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tiers import PriorityClass

T = TypeVar("T")


async def tenant_quotas(client: Client) -> list[TenantQuota]:
    """All of them by name; none where the API server does not know them. Raises ApiError."""
    try:
        found = [read_tenant_quota(raw) async for raw in listed_objects(client.list_pages(path(API_VERSION, PLURAL)))]
    except NotFound:
        return []
    return sorted(found, key=lambda each: each.name)


def tenants_named(there: Mapping[str, T], names: Sequence[str]) -> list[T]:
    """What there is of these TenantQuotas; of all without names. The program ends where there is none of a name."""
    for name in names:
        if name not in there:
            fail(f'there is no TenantQuota "{name}"; there are {", ".join(there) or "none"}')
    return [there[name] for name in names or there]


async def priority_classes(client: Client) -> dict[str, PriorityClass]:
    """All of them by name. Raises ApiError."""
    from webhook.cluster.watched import priority_class  # noqa: PLC0415 - what watches has many libraries

    found = map(priority_class, await listed_trees(client, path("scheduling.k8s.io/v1", "priorityclasses")))
    return {each.name: each for each in found}


async def listed_namespaces(client: Client) -> tuple[Namespace, ...]:
    """All of them, with their labels. Raises ApiError."""
    pages = client.list_pages(path("v1", "namespaces"), metadata_only=True)
    found = [read(raw, Named).metadata async for raw in listed_objects(pages)]
    return tuple(Namespace(each.name, each.labels) for each in found)


async def namespace_of(client: Client, name: str) -> Namespace:
    """One of them. Raises ApiError, and BadInput where there is none of the name."""
    try:
        return Namespace(name, view(await client.get(path("v1", "namespaces", name=name)), Named).metadata.labels)
    except NotFound:
        raise BadInput(f"there is no namespace {name}") from None


async def listed_trees(client: Client, where: str, params: dict[str, str] | None = None) -> list[dict[str, Any]]:
    return [msgspec.json.decode(raw) async for raw in listed_objects(client.list_pages(where, params))]
