"""Tells what becomes of a pod whose node has not been Ready for some time."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.listed import OUT_OF_SERVICE, way_out
from webhook.kube.client import RFC_3339, path
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.node_fit import Taint, first_toleration
from webhook.objects.pods import Pod
from webhook.objects.view import Tree, View, view
from webhook.report.waiting import State

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
"""The taints of a node whose kubelet reports a problem, and of one whose kubelet does not report."""


class _Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: str = ""


class _Status(View, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Spec(View, frozen=True):
    taints: tuple[Taint, ...] = ()


class _Node(View, frozen=True):
    spec: _Spec = _Spec()
    status: _Status = _Status()


class LostNode(msgspec.Struct, frozen=True):
    """A node that is not Ready `since` that time, in RFC 3339. Kubernetes sets the taint with the key `taint`."""

    name: str
    since: str
    taint: str
    out_of_service: bool = False


async def lost_node(asked: AskedCluster, name: str) -> LostNode | None:
    """Return a node that is not Ready; None for another one, or where the user may not read it. Raises ApiError."""
    try:
        found = view(await asked.reader.client.get(path("v1", "nodes", name=name)), _Node)
    except (Forbidden, NotFound):
        return None
    ready = next((each for each in found.status.conditions if each.type == "Ready"), _Condition(status="True"))
    if ready.status == "True":
        return None
    taint = NOT_READY if ready.status == "False" else UNREACHABLE
    out = any(each.key == OUT_OF_SERVICE for each in found.spec.taints)
    return LostNode(name, ready.last_transition_time, taint, out)


async def running_on_lost_nodes(asked: AskedCluster, pods: Iterable[Tree]) -> dict[str, str]:
    """Return the pods, by name, of those that run on nodes that are not Ready, with the sentences on each."""
    there = [view(each, Pod) for each in pods]
    names = list(dict.fromkeys(each.spec.node_name for each in there))
    found = await asyncio.gather(*(lost_node(asked, name) for name in names))
    lost = {each.name: each for each in found if each}
    return {
        each.metadata.name: f"Pod {each.metadata.name}: {pod_on_lost_node(each, lost[each.spec.node_name], 'running')}"
        for each in there
        if each.spec.node_name in lost
    }


def pod_on_lost_node(pod: Pod, node: LostNode, state: State) -> str:
    """Return the sentences on a pod of a lost node, by its state."""
    since = f"{node.name}, which has not been Ready{f' since {node.since}' if node.since else ''}"
    left = "" if node.out_of_service else f" {way_out(node.name)}."
    if state == "ending":
        return f"It is being deleted on {since}. It ends only when the node reports the end.{left}"
    was = f"It was {'running on' if state == 'running' else 'scheduled to'} {since}."
    return f"{was} {_what_comes_next(pod, node)}{left}"


def _what_comes_next(pod: Pod, node: LostNode) -> str:
    """Return what Kubernetes does with the pod, by its toleration of the node's taint. Without one it waits 0 s."""
    found = first_toleration(pod.spec, Taint(node.taint, "", "NoExecute"))
    if found is not None and found.toleration_seconds is None:
        return "Its tolerations keep it there until the node is Ready, or somebody deletes the pod."
    when = "soon"
    with suppress(ValueError):
        waits = timedelta(seconds=max(found.toleration_seconds or 0, 0) if found else 0)
        when = f"at about {(datetime.fromisoformat(node.since) + waits).strftime(RFC_3339)}"
    return (
        f"Unless the node is Ready before, Kubernetes deletes the pod {when}. The pod ends only when the node reports "
        "the end."
    )
