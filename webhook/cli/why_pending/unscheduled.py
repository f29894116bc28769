"""Finds out why the scheduler has no node for a pod: its volumes, its group, the GPUs of the nodes."""

from collections.abc import AsyncIterator
from datetime import datetime

from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster, events_about
from webhook.cli.manifests.documents import Document
from webhook.cli.why_pending.room_on_nodes import room
from webhook.kube.errors import Forbidden, NotFound
from webhook.kube.paths import path
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import all_at, at, view
from webhook.policy.workloads.pod_groups import kueue_group, named_groups
from webhook.report.waiting import WhyPending, lacks_a_volume, scheduler_says
from webhook.sentences.sentence import told


async def unscheduled(
    asked: AskedCluster, document: Document, pod: Pod, found: WhyPending, now: datetime
) -> WhyPending:
    nominated = str((document.tree.get("status") or {}).get("nominatedNodeName") or "")
    events = await events_about(asked, document.namespace, document.uid)
    told = scheduler_says(document.tree, events or ())
    volumes = await volumes_awaited(asked, document, told)
    there = None if volumes else await room(asked, pod, document.tree, nominated, now)
    sentences = [*volumes, *await waits_for_group(asked, pod, document.namespace), *(there.sentences if there else ())]
    if not told and not nominated and events is not None:
        sentences.append("The scheduler has said nothing of it yet.")
    return replace(found, sentences=tuple(sentences) or (() if told else found.sentences), room=there, scheduler=told)


async def volumes_awaited(asked: AskedCluster, document: Document, scheduler: str) -> list[str]:
    """The claims of its volumes without which it can't be scheduled, whatever GPUs are free."""
    claims = [name for _, name in all_at(document.tree, "spec.volumes.*.persistentVolumeClaim.claimName")]
    told = [await _claim(asked, document.namespace, str(name), scheduler) for name in claims]
    return [each for each in told if each]


async def _claim(asked: AskedCluster, namespace: str, name: str, scheduler: str) -> str:
    try:
        found = await asked.reader.client.get(path("v1", "persistentvolumeclaims", namespace, name))
    except NotFound:
        return f"It waits for its volume: there is no PersistentVolumeClaim {name}."
    except Forbidden:
        return ""
    phase = at(found, "status.phase")
    if phase == "Lost" or (phase == "Pending" and lacks_a_volume(scheduler)):
        return f"It waits for its volume: PersistentVolumeClaim {name} is {phase}."
    return ""


async def waits_for_group(asked: AskedCluster, pod: Pod, namespace: str) -> list[str]:
    try:
        return [each async for each in _groups(asked, pod, namespace)]
    except (Refused, Unreadable) as problem:
        return [f"Its group can't be read: {told(problem)}."]


async def _groups(asked: AskedCluster, pod: Pod, namespace: str) -> AsyncIterator[str]:
    metadata, scheduled, groups = pod.metadata, pod.spec.scheduling_group, asked.cluster.lookups
    if scheduled:
        name, needed = scheduled.pod_group_name, (await groups.pod_group(namespace, scheduled.pod_group_name)).pods
    elif named := next(named_groups(metadata), None):
        name, needed = named[1], (await groups.schedulers_group(namespace, *named)).pods
    elif group := kueue_group(metadata):
        name, needed = group.name, group.count
    else:
        return
    if needed > 1:
        yield f"Its PodGroup {name} starts when {needed} of its pods have room at once."
    lost = "whether its group is whole"
    pods = await asked.reader.objects("pods", namespace, path("v1", "pods", namespace), lost)
    there = sum(_group_name(view(each, Pod)) == name for each in pods or ())
    if needed > there > 0:
        yield f"{there} of these pods exist: the scheduler waits for the others."


def _group_name(pod: Pod) -> str:
    scheduled, group = pod.spec.scheduling_group, kueue_group(pod.metadata)
    named = next(named_groups(pod.metadata), None)
    return scheduled.pod_group_name if scheduled else named[1] if named else group.name if group else ""
