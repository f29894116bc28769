"""Asks what Kueue says of a pod or a workload that waits for it."""

from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.documents import Document
from webhook.cli.workload_now import read_list
from webhook.kube.errors import ApiError
from webhook.kube.paths import path
from webhook.kube.resources import resources_of
from webhook.readmodel.waiting import kueue_says


async def kueue_about(asked: AskedCluster, document: Document) -> tuple[str, ...]:
    """A sentence with Kueue's own; none where it says nothing, or is not there."""
    uids = {document.uid, *(each.get("uid", "") for each in document.metadata.get("ownerReferences") or ())}
    try:
        served = await resources_of(asked.client, {"kueue.x-k8s.io"})
        version = next(each.api_version for each in served if each.plural == "workloads")
    except (ApiError, StopIteration):
        return ()
    instead = f"You may not list workloads.kueue.x-k8s.io in {document.namespace}: what Kueue says is left out."
    found = await read_list(asked, path(version, "workloads", document.namespace), instead)
    told = kueue_says(found, frozenset(uids))
    return (f"Kueue says: {told}",) if told else ()
