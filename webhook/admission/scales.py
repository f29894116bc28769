"""Reviews of scales: a scale is judged as the update of its workload."""

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import needed_to
from webhook.admission.review import GroupVersionKind, Request
from webhook.cluster.cluster import Cluster
from webhook.objects.pods import Named
from webhook.objects.refusal import Missing
from webhook.objects.view import Tree, at, view, with_at
from webhook.policy.values.tier_policy import TierPolicy

SCALE = "scale"


async def as_update(request: Request, cluster: Cluster, policy: TierPolicy) -> Request:
    """Return the update of the workload that a scale makes; the request itself if no row has such a scale.

    A Scale has the number of replicas, and the workload's name and uid. Raises Refused if that can't be read. Source:
    custom-resource-definitions/#scale-subresource of the Kubernetes documentation.
    """
    row = policy.kinds.by_scaled.get((request.resource.group, request.resource.resource))
    if row is None:
        return request
    scale: Tree = msgspec.json.decode(request.object)
    replicas = at(scale, "spec.replicas") or 0  # zero is absent on the wire

    # The workload as it is now, because the API server compares its write with that, or asks again.
    with needed_to("find what is scaled"):
        stored = await cluster.lookups.stored_workload(request.namespace, request.name, row)
        metadata = view(stored, Named).metadata
        if metadata.uid != at(scale, "metadata.uid"):
            shown = f"{row.kind}/{request.name[:63]}"
            raise Missing(f"{shown} has another UID than its scale: it was deleted and created again")

    # A change of its spec is its next generation.
    scaled = with_at(stored, row.scale, replicas)
    if at(stored, row.scale) != replicas:
        scaled = with_at(scaled, "metadata.generation", (metadata.generation or 1) + 1)
    return replace(
        request,
        kind=GroupVersionKind(row.group, request.resource.version, row.kind),
        sub_resource="",
        object=msgspec.Raw(msgspec.json.encode(scaled)),
        old_object=msgspec.Raw(msgspec.json.encode(stored)),
    )
