"""Whether the gang that a pod is scheduled with is whole."""

from collections.abc import AsyncIterator

from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.workload_now import read_list
from webhook.kube.paths import path
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.workloads.pod_groups import kueue_group, named_group


async def waits_for_group(asked: AskedCluster, pod: Pod, namespace: str) -> list[str]:
    """What is said of a gang that is scheduled together."""
    try:
        return [each async for each in _groups(asked, pod, namespace)]
    except (Refused, Unreadable) as problem:
        return [f"Its group can't be read: {problem}."]


async def _groups(asked: AskedCluster, pod: Pod, namespace: str) -> AsyncIterator[str]:
    metadata, scheduled = pod.metadata, pod.spec.scheduling_group
    if scheduled:
        name, needed = scheduled.pod_group_name, (await asked.cluster.group(namespace, scheduled.pod_group_name)).pods
    elif named := named_group(metadata):
        name, needed = named[1], await asked.cluster.group_size(namespace, named[0].kind, named[1])
    elif group := kueue_group(metadata):
        name, needed = group.name, group.count
    else:
        return
    instead = f"You may not list pods in {namespace}: whether its group is whole is left out."
    pods = [view(each, Pod) for each in await read_list(asked, path("v1", "pods", namespace), instead)]
    there = sum(_group_name(each) == name for each in pods)
    if needed > there > 0:
        yield f"Its PodGroup {name} needs {needed} pods at once, and {there} exist: the scheduler waits for the others."
    elif needed > 1:
        yield f"Its PodGroup {name} starts when {needed} of its pods have room at once."


def _group_name(pod: Pod) -> str:
    scheduled, named, group = pod.spec.scheduling_group, named_group(pod.metadata), kueue_group(pod.metadata)
    return scheduled.pod_group_name if scheduled else named[1] if named else group.name if group else ""
