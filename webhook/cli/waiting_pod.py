"""Finds out why a pod does not run: reads what tells it, and puts it in order."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.asked_kueue import kueue_about
from webhook.cli.documents import Document
from webhook.cli.room_on_nodes import room
from webhook.cli.scheduled_together import waits_for_group
from webhook.cli.workload_now import events_about, last_eviction
from webhook.objects.pods import Named, Pod
from webhook.objects.view import view
from webhook.readmodel.waiting import PENDING, WhyPending, scheduler_says, standing

Tree = dict[str, Any]


async def pod_waits(asked: AskedCluster, document: Document, now: datetime) -> WhyPending:
    """The answer about a pod. Raises ApiError."""
    pod, stands = view(document.tree, Pod), standing(document.tree)
    tier = asked.policy.tiers.of_class(pod.spec.priority_class_name)
    found = WhyPending(
        object=f"{document.kind}/{document.name}",
        namespace=document.namespace,
        sentences=(stands.sentence,),
        pod=document.name,
        tier=tier.name if tier else "",
        waits=stands.state in PENDING,
    )
    if stands.state == "gated":
        return replace(found, sentences=(*found.sentences, *await kueue_about(asked, document)))
    return await _unscheduled(asked, document, pod, found, now) if stands.state == "unscheduled" else found


async def _unscheduled(
    asked: AskedCluster, document: Document, pod: Pod, found: WhyPending, now: datetime
) -> WhyPending:
    nominated = str((document.tree.get("status") or {}).get("nominatedNodeName") or "")
    there = await room(asked, pod, nominated, now)
    told = scheduler_says(document.tree, await events_about(asked, document.namespace, document.uid))
    sentences = [*await waits_for_group(asked, pod, document.namespace), *(there.sentences if there else ())]
    if not told and not nominated:
        sentences.append("The scheduler has said nothing of it yet.")
    return replace(found, sentences=tuple(sentences) or found.sentences, room=there, scheduler=told)


async def why_gone(asked: AskedCluster, namespace: str, pod: str) -> WhyPending | None:
    """The answer about a pod that is not there: by whom it was evicted; None where nothing tells of that."""
    of_it = f"{namespace}/{pod} "
    evicted = await last_eviction(asked, namespace, lambda event: str(event.get("message")).startswith(of_it))
    return WhyPending(f"Pod/{pod}", namespace, (f"It is gone: {evicted}.",)) if evicted else None


async def evicted(asked: AskedCluster, document: Document) -> str:
    """What was told of it, or of what makes it."""
    controller, uids = view(document.tree, Named).metadata.controller, {document.uid}
    if controller is not None:
        owners = await asked.cluster.owners(document.namespace, controller, asked.policy.kinds)
        uids |= {controller.uid, *(each.uid for each in owners)}
    return await last_eviction(
        asked, document.namespace, lambda event: (event.get("involvedObject") or {}).get("uid") in uids
    )
