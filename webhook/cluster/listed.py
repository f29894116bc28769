"""Lists what a cluster has of the objects that gpu-tiers decides by: TenantQuotas, PriorityClasses, namespaces."""

import msgspec

from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Named
from webhook.objects.view import Tree, read
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota, read_tenant_quota
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.tiers import PriorityClass


async def tenant_quotas(client: Client) -> list[TenantQuota]:
    """All of them by name; none where the API server does not know them. Raises ApiError."""
    try:
        found = [read_tenant_quota(raw) async for raw in listed_objects(client.list_pages(path(API_VERSION, PLURAL)))]
    except NotFound:
        return []
    return sorted(found, key=lambda each: each.name)


async def priority_classes(client: Client) -> dict[str, PriorityClass]:
    """All of them by name. Raises ApiError."""
    from webhook.cluster.watched import priority_class  # noqa: PLC0415 - what watches has many libraries

    found = map(priority_class, await listed_trees(client, path("scheduling.k8s.io/v1", "priorityclasses")))
    return {each.name: each for each in found}


async def listed_namespaces(client: Client) -> tuple[Namespace, ...]:
    """All of them, with their labels. Raises ApiError."""
    pages = client.list_pages(path("v1", "namespaces"), metadata_only=True)
    return tuple([namespace_of(read(raw, Named).metadata) async for raw in listed_objects(pages)])


async def listed_trees(client: Client, where: str, params: dict[str, str] | None = None) -> list[Tree]:
    return [msgspec.json.decode(raw) async for raw in listed_objects(client.list_pages(where, params))]
