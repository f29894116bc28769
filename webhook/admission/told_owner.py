"""The owners of a pod that nobody has created yet: a dry run may tell them, since the webhook could not look them up.

`gpu-tiers review --server` asks about the pods that a workload would make, and a dry run stores no workload. So each
pod brings it in an annotation, which counts in a dry run alone: there nothing is stored and nothing is booked. An
AppWrapper makes a Job, and the Job makes the pod: then the pod brings both.
"""

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from webhook.admission.cluster_protocol import Cluster
from webhook.admission.review import Request
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.pods import Named, OwnerReference, Pod
from webhook.objects.view import read, view
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload, workload

Tree = dict[str, Any]

TOLD_OWNER = "gpu-tiers.dev/dry-run-owner"
"""The annotation: a JSON list of the pod's owner, the owner of that, and so on."""
_MOST_TOLD = 8
"""Owners of one pod; no chain of the table has so many."""


def with_told_owner(cluster: Cluster, request: Request) -> Cluster:
    """The cluster as it would be with the owners that a pod's dry run tells of; the same one where it tells of none."""
    kind = GroupKind(request.kind.group, request.kind.kind)
    if kind != POD or TOLD_OWNER.encode() not in bytes(request.object):
        return cluster
    told = read(request.object, Pod).metadata.annotations.get(TOLD_OWNER)
    chain = _chain(msgspec.json.decode(told)) if told else []
    return cast("Cluster", _WithOwners(cluster, chain)) if chain else cluster


def _chain(told: object) -> list[Tree]:
    """The told objects; none where that is no list of objects, or a longer one than any pod has."""
    found = told if isinstance(told, list) and len(told) <= _MOST_TOLD else []
    return found if all(isinstance(each, dict) for each in found) else []


@dataclass(frozen=True, slots=True)
class _WithOwners:
    """A cluster with some more objects, for which its other facts are the same."""

    cluster: Cluster
    chain: list[Tree]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The told owners as far as each is the one that is named below it, then those that exist."""
        found, reference = [], first
        for tree in self.chain:
            metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
            row = kinds.by_kind.get(GroupKind(reference.group, reference.kind))
            if row is None or (metadata.uid, metadata.name) != (reference.uid, reference.name):
                break
            whole, _ = await self.cluster.completed(namespace, tree, row)
            found.append(workload(whole, row))
            if metadata.controller is None:
                return tuple(found)
            reference = metadata.controller
        return *found, *await self.cluster.owners(namespace, reference, kinds)
