"""The owner of a pod that nobody has created yet: a dry run may tell it, since the webhook could not look it up.

`gpu-tiers review --server` asks about the pods that a workload would make, and a dry run stores no workload. So each
pod brings it in an annotation, which counts in a dry run alone: there nothing is stored and nothing is booked.
"""

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from webhook.admission.cluster_protocol import Cluster
from webhook.admission.review import Request
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named, OwnerReference, Pod
from webhook.objects.view import read, view
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload, workload

Tree = dict[str, Any]

TOLD_OWNER = "gpu-tiers.dev/dry-run-owner"
"""The annotation: the owner as JSON."""


def with_told_owner(cluster: Cluster, request: Request) -> Cluster:
    """The cluster as it would be with the owner that a dry run tells of; the same cluster where it tells of none."""
    if TOLD_OWNER.encode() not in bytes(request.object):
        return cluster
    told = read(request.object, Pod).metadata.annotations.get(TOLD_OWNER)
    tree = msgspec.json.decode(told) if told else None
    return cast("Cluster", _WithOwner(cluster, tree)) if isinstance(tree, dict) else cluster


@dataclass(frozen=True, slots=True)
class _WithOwner:
    """A cluster with one more object, for which its other facts are the same."""

    cluster: Cluster
    tree: Tree

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The told owner and those above it, where a pod names it, else those that exist."""
        metadata = view({"metadata": self.tree.get("metadata") or {}}, Named).metadata
        row = kinds.by_kind.get(GroupKind(first.group, first.kind))
        if row is None or metadata.uid != first.uid or metadata.name != first.name:
            return await self.cluster.owners(namespace, first, kinds)
        whole, _ = await self.cluster.completed(namespace, self.tree, row)
        above = await self.cluster.owners(namespace, metadata.controller, kinds) if metadata.controller else ()
        return workload(whole, row), *above
