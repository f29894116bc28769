"""The pods of a namespace that a ResourceClaim is for, that name another scheduler's group, or that are ending.

Source: pkg/controller/resourceclaim in kubernetes, which takes a claim for a pod's own if the pod controls it, whoever
made it, and an annotation says for which entry, or the pod's status names it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from webhook.cluster.pod_informer import RUNNING, SeenPod, seen_pod
from webhook.cluster.stored_objects import FreshLookups, in_time
from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Metadata, Pod
from webhook.objects.view import View, read
from webhook.policy.workloads.pod_groups import GroupSource, named_groups

MADE_FOR = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made of a template: what the pod calls it."""
MOST_NAMESPACES = 64

PodAndEntry = tuple[Metadata, str]
"""A pod, and what it calls the claim."""


class _Deletion(View, frozen=True):
    """The part of a pod's metadata that says until when its containers may run."""

    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None

    def is_ending(self, now: datetime) -> bool:
        """A lost node never ends its pods. Kubernetes' own quota waits for twice the grace period too."""
        grace = timedelta(seconds=self.deletion_grace_period_seconds or 0)
        return self.deletion_timestamp is not None and now < self.deletion_timestamp + grace


class _Deleted(View, frozen=True):
    metadata: _Deletion = _Deletion()


class PodsOfNamespaces(FreshLookups, frozen=True):
    """`NamespacePods` of an API server. Reviews of one namespace that come at once share a list."""

    client: Client
    lists: TTLCache[str, tuple[SeenPod, ...]] = msgspec.field(default_factory=lambda: TTLCache(0.0, MOST_NAMESPACES))

    async def close(self) -> None:
        await self.lists.close()

    async def claimants(self, namespace: str, claim: Metadata) -> list[PodAndEntry]:
        async with in_time(f"the pods of {namespace}"):
            named = await self._listed(namespace) if claim.name else ()
            pods = {seen.pod.metadata.uid: seen for seen in (*named, *await self._owner(namespace, claim))}
            return [(seen.pod.metadata, entry) for seen in pods.values() for entry in _entries(seen, claim)]

    async def members(self, namespace: str, source: GroupSource, name: str) -> list[Pod]:
        async with in_time(f"the pods of {namespace}"):
            found = await self._listed(namespace)
            return [seen.pod for seen in found if source.named_by(seen.pod.metadata) == name]

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        async with in_time(f"the pods of {namespace}"):
            params = {**RUNNING.params, "labelSelector": selector}
            pages = self.client.list_pages(path("v1", "pods", namespace), params, metadata_only=True)
            now = datetime.now(UTC)
            return any([read(raw, _Deleted).metadata.is_ending(now) async for raw in listed_objects(pages)])

    async def _listed(self, namespace: str) -> tuple[SeenPod, ...]:
        return await self.lists.get(namespace, lambda: self._list(namespace), self.since)

    async def _owner(self, namespace: str, claim: Metadata) -> tuple[SeenPod, ...]:
        owner = claim.controller
        if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
            return ()
        try:
            tree = await self.client.get(path("v1", "pods", namespace, owner.name))
        except NotFound:
            return ()
        return (seen_pod(msgspec.json.encode(tree)),)

    async def _list(self, namespace: str) -> tuple[SeenPod, ...]:
        pages = self.client.list_pages(path("v1", "pods", namespace), RUNNING.params)
        # one after another: a namespace may be full of large pods
        return tuple([seen async for raw in listed_objects(pages) if _names_something(seen := seen_pod(raw))])


def _names_something(seen: SeenPod) -> bool:
    return bool(seen.pod.spec.resource_claims) or any(named_groups(seen.pod.metadata))


def _entries(seen: SeenPod, claim: Metadata) -> Iterator[str]:
    """What a pod calls a claim."""
    controlled = seen.pod.metadata.uid == claim.controller_uid
    for each in seen.pod.spec.resource_claims:
        made = each.name == claim.annotations.get(MADE_FOR) or seen.made.get(each.name) == claim.name
        if each.resource_claim_name == claim.name if each.resource_claim_name is not None else controlled and made:
            yield each.name
