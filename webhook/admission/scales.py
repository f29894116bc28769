"""Reviews of the scale subresource (`kubectl scale`, autoscalers): each is judged as the update that it makes.

A Scale tells the number of replicas alone, and of the workload only name and uid.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource
"""

from typing import Any

import msgspec

from webhook.admission.facts import cannot_tell
from webhook.admission.review import GroupVersionKind, Request
from webhook.cluster.cluster import Cluster
from webhook.objects.pods import Metadata, Named
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.view import Tree, View, at, read, view, with_at
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds.table import KindRow

SUBRESOURCE = "scale"


class _ScaleSpec(View, frozen=True):
    """What is wished for. No replicas are left out on the wire."""

    replicas: Any = None


class _Scale(View, frozen=True):
    """An object of autoscaling/v1."""

    metadata: Metadata = Metadata()
    spec: _ScaleSpec = _ScaleSpec()


async def as_update(request: Request, cluster: Cluster, policy: TierPolicy) -> Request:
    """The update of the workload that a scale makes; the request itself where no row has such a scale.

    Raises Refused where the workload can't be read.
    """
    row = policy.kinds.by_scaled.get((request.resource.group, request.resource.resource))
    if row is None:
        return request
    scale = read(request.object, _Scale)
    replicas = 0 if scale.spec.replicas is None else scale.spec.replicas
    stored = await _stored(request, scale.metadata.uid, row, cluster)
    return msgspec.structs.replace(
        request,
        kind=GroupVersionKind(row.group, request.resource.version, row.kind),
        sub_resource="",
        object=msgspec.Raw(msgspec.json.encode(_scaled(stored, row, replicas))),
        old_object=msgspec.Raw(msgspec.json.encode(stored)),
    )


async def _stored(request: Request, uid: str, row: KindRow, cluster: Cluster) -> Tree:
    """The workload as it is now: the API server compares what it writes with that, or asks again."""
    shown = f"{row.kind}/{request.name[:63]}"
    try:
        found = await cluster.lookups.workloads.stored(request.namespace, request.name, row)
        if view(found, Named).metadata.uid != uid:
            raise Missing(f"{shown} has another UID than its scale: it was deleted and made anew")
    except Unreadable as problem:
        raise Refused.of(cannot_tell(problem, "tell what is scaled")) from problem
    return found


def _scaled(stored: Tree, row: KindRow, replicas: object) -> Tree:
    """The workload with so many replicas. A change of its spec is its next generation."""
    after = with_at(stored, row.scale, replicas)
    if at(stored, row.scale) == replicas:
        return after
    return with_at(after, "metadata.generation", (view(stored, Named).metadata.generation or 1) + 1)
