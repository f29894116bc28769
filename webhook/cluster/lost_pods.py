"""Finds pods on lost nodes that their Jobs do not replace: nothing reports that such a pod has ended.

A pod is deleted some minutes after its node stops reporting, and stays until the kubelet confirms the end. With
`podReplacementPolicy: Failed` the Job waits for that. The out-of-service taint ends the wait (KEP-2268).
"""

from collections.abc import Collection, Iterable

import msgspec

from webhook.cluster.gpu_nodes import GpuNode
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import OwnerReference
from webhook.objects.view import View, read


class EndingOnNode(msgspec.Struct, frozen=True):
    """A pod that is being deleted and has not ended, and the Job that makes it."""

    namespace: str
    name: str
    node: str
    job: str


class _JobSpec(View, frozen=True):
    pod_replacement_policy: str = ""


class _Job(View, frozen=True):
    spec: _JobSpec = _JobSpec()


def ending_on_node(
    namespace: str, name: str, node: str, owner: OwnerReference | None, *, ends: bool
) -> EndingOnNode | None:
    """The pod where it ends on a node and a Job makes it."""
    of_job = owner is not None and (owner.group, owner.kind) == ("batch", "Job")
    return EndingOnNode(namespace, name, node, owner.name) if owner and of_job and node and ends else None


async def lost_pods(
    client: Client, pods: Iterable[EndingOnNode | None], nodes: Collection[GpuNode]
) -> tuple[EndingOnNode, ...]:
    """Those of the pods that no Job replaces before their node is dealt with. Raises ApiError.

    Jobs are read only where a pod ends on a lost node, which is rare.
    """
    lost = {each.name for each in nodes if each.lost}
    found = [pod for pod in pods if pod and pod.node in lost]
    waiting = {each: await _waits_for_end(client, *each) for each in {(pod.namespace, pod.job) for pod in found}}
    return tuple(pod for pod in found if waiting[pod.namespace, pod.job])


async def _waits_for_end(client: Client, namespace: str, job: str) -> bool:
    named = client.list_pages(path("batch/v1", "jobs", namespace), {"fieldSelector": f"metadata.name={job}"})
    return any([read(raw, _Job).spec.pod_replacement_policy == "Failed" async for raw in listed_objects(named)])


def way_out(node: str) -> str:
    """What ends the wait."""
    taint = f"kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    return f"If the node is off and stays so: {taint}, or delete the Node"
