"""Explains what happens to a pod on a node that is not Ready, and to a Job whose pods failed or were evicted."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec

from webhook.cli.cluster.one_object import AskedCluster, events_about, evicted_pods_of, eviction_of
from webhook.cli.manifests.documents import Document
from webhook.cluster.listed import OUT_OF_SERVICE, way_out
from webhook.kube.client import RFC_3339, path
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.node_fit import Taint, first_toleration
from webhook.objects.pods import Named, Pod
from webhook.objects.view import Tree, View, at, listed, view
from webhook.report.waiting import State, failed_at, ignores_failures, long_time, next_pod_of_job

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
    """A node that has not been Ready `since` a time in RFC 3339. `taint` is the key of the taint that Kubernetes sets.

    `out_of_service`: somebody has set the taint by which Kubernetes removes its pods.
    """

    name: str
    since: str
    taint: str
    out_of_service: bool = False


async def lost_node(asked: AskedCluster, name: str) -> LostNode | None:
    """Return a node if it is not Ready; None if it is Ready or gone, or the user may not read it. Raises ApiError."""
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
    """Return the sentences on each of these running pods whose node is not Ready, by the pod's name."""
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
    """Return what Kubernetes does with the pod, by its toleration of the node's taint; 0 s without a toleration."""
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


PAUSES = (
    "The Job controller waits 10 seconds after the first failed, evicted or deleted pod, twice as long after each "
    "further one, and at most 10 minutes."
)


async def back_off(asked: AskedCluster, document: Document, pods: Iterable[Tree], due: int) -> str:
    """Return when a Job's controller replaces its last pod; "" if no pod failed, was evicted or was deleted.

    The controller counts failures in its memory, also those that a podFailurePolicy ignores and the status leaves out.
    Here Events about evictions count those, so the wait may be longer if some Events have expired.
    """
    about, found = view(document.tree, Named).metadata, list(pods)
    last_eviction = await eviction_of(asked, document.namespace, about)
    ends = [*filter(None, map(failed_at, found)), *([last_eviction.at] if last_eviction else [])]
    counted, last = at(document.tree, "status.failed"), max(ends, default=None)
    failed = counted if isinstance(counted, int) else 0
    if last is None or not (failed or last_eviction):
        lost = await _has_lost_a_pod(asked, document, due)
        return f"The Job controller makes the next pod after a pause. {PAUSES}" if lost else ""
    evicted = len(await evicted_pods_of(asked, document.namespace, about))
    # the status may not count the last one yet
    ignored, failed = (evicted, failed) if ignores_failures(document.tree) else (0, max(failed, evicted, 1))
    due_at = next_pod_of_job(max(failed + ignored, 1), last)
    left = due_at - datetime.now(UTC)
    why = "was evicted" if last_eviction and last_eviction.at >= last else "has failed"
    after_end = f" ({long_time(due_at - last)} after the last one ended)"
    pause = f"within {long_time(left)}{after_end}" if left > timedelta() else "at any moment"
    counted = [f"{failed} failed"] * (failed > 0) + [f"{ignored} evicted (ignored by its podFailurePolicy)"] * (
        ignored > 0
    )
    so_far = f" Its pods so far: {', '.join(counted)}." if counted else ""
    return f"Its last pod {why}. The Job controller makes the next one {pause}.{so_far} {PAUSES}"


async def _has_lost_a_pod(asked: AskedCluster, document: Document, due: int) -> bool:
    """Tell whether the Events say that a Job has created as many pods as are due, so that a missing one was lost.

    False with backoffLimitPerIndex, because a failed index gets no other pod.
    """
    if at(document.tree, "spec.backoffLimitPerIndex") is not None:
        return False
    events = await events_about(asked, document.namespace, document.uid) or ()
    made = sum(each.get("count") or 1 for each in events if each.get("reason") == "SuccessfulCreate")
    done = at(document.tree, "status.succeeded")
    return made - (done if isinstance(done, int) else 0) >= due > 0


async def failed_by_evictions(asked: AskedCluster, document: Document, pods: Iterable[Tree]) -> tuple[str, ...]:
    """Return sentences: evictions used up a Job's backoffLimit, what to do, and the last eviction; none otherwise."""
    conditions = [each for each in listed(at(document.tree, "status.conditions")) if isinstance(each, dict)]
    reasons = [each.get("reason") for each in conditions if each.get("type") == "Failed"]
    if document.kind != "Job" or "BackoffLimitExceeded" not in reasons or ignores_failures(document.tree):
        return ()
    about = view(document.tree, Named).metadata
    disrupted = {str(at(each, "metadata.name")): each for each in pods if _disruption(each)}
    evicted = (await evicted_pods_of(asked, document.namespace, about)) | disrupted.keys()
    if not evicted:
        return ()
    limit, failed = at(document.tree, "spec.backoffLimit"), at(document.tree, "status.failed")
    number = f"{len(evicted)} eviction{'s' if len(evicted) > 1 else ''}"
    more = failed - len(evicted) if isinstance(failed, int) else 0
    others = f" and {more} other failure{'s' if more > 1 else ''}" if more > 0 else ""
    last = await eviction_of(asked, document.namespace, about)
    said = str(last) if last else max(map(_disruption, disrupted.values()))
    return (
        (
            f"It has failed: {number}{others} used up its backoffLimit of {6 if limit is None else limit}. Delete it "
            "and apply it again with restartPolicy: Never and a podFailurePolicy that ignores DisruptionTarget."
        ),
        f"Its last eviction: {said}.",
    )


def _disruption(pod: Tree) -> str:
    """Return when and why a pod was evicted, by its condition; "" if it was not."""
    conditions = (each for each in listed(at(pod, "status.conditions")) if at(each, "type") == "DisruptionTarget")
    found = next((each for each in conditions if at(each, "status") == "True"), None)
    name = at(pod, "metadata.name")
    return f"at {at(found, 'lastTransitionTime')}, Pod/{name}: {at(found, 'message')}".rstrip(".") if found else ""
