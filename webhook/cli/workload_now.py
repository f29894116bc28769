"""What there is of a workload now: its pods, and the events about it and about what it makes."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec

from webhook.cli.asked_cluster import AskedCluster
from webhook.kube.errors import Forbidden
from webhook.kube.paths import path
from webhook.kube.wire import RFC_3339, listed_objects
from webhook.objects.pods import Metadata, Named, OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.objects.view import view
from webhook.readmodel.preemptions import EVENT
from webhook.readmodel.refused_pods import REASONS, RefusedPods, refused_pods

Tree = dict[str, Any]

_NO_EVENTS = "You may not list events in {}: what they tell of refusals, evictions and the scheduler is left out."


async def read_list(asked: AskedCluster, where: str, instead: str, params: dict[str, str] | None = None) -> list[Tree]:
    """All objects of a list; none where the person may not list them, and then `instead` is told with the rest."""
    try:
        return [msgspec.json.decode(raw) async for raw in listed_objects(asked.client.list_pages(where, params))]
    except Forbidden:
        asked.unread.append(instead)
        return []


async def pods_of_workload(asked: AskedCluster, namespace: str, uid: str) -> list[Tree]:
    """The pods that a workload makes, itself or by what it makes."""
    instead = f"You may not list pods in {namespace}: its pods are left out."
    pods = await read_list(asked, path("v1", "pods", namespace), instead)
    return [each async for each in _made_by(uid, pods, namespace, asked, lambda pod: _metadata(pod).controller)]


async def last_refusal(asked: AskedCluster, namespace: str, uid: str, pods: Iterable[Tree]) -> RefusedPods | None:
    """What a workload, or what it makes, was refused last, unless it has made one of its `pods` since then."""
    where, found = path("v1", "events", namespace), list[Tree]()
    for reason in REASONS:
        found += await read_list(asked, where, _NO_EVENTS.format(namespace), {"fieldSelector": f"reason={reason}"})
    theirs = [each async for each in _made_by(uid, found, namespace, asked, _regarding)]
    refused = refused_pods(theirs)
    newest = max((each["metadata"]["creationTimestamp"] for each in pods), default="")
    return refused if refused and refused.last.strftime(RFC_3339) >= newest else None


async def events_about(asked: AskedCluster, namespace: str, uid: str) -> list[Tree]:
    """All events about one object."""
    instead = _NO_EVENTS.format(namespace)
    fields = {"fieldSelector": f"involvedObject.uid={uid}"}
    return await read_list(asked, path("v1", "events", namespace), instead, fields)


async def last_eviction(asked: AskedCluster, namespace: str, concerns: Callable[[Tree], bool]) -> str:
    """What gpu-tiers told last of an eviction, of the events that concern an object; "" where it told of none."""
    selector = {"fieldSelector": f"reason={EVENT}"}
    found = await read_list(asked, path("v1", "events", namespace), _NO_EVENTS.format(namespace), selector)
    theirs = filter(concerns, found)
    newest = max(theirs, key=lambda each: str(each.get("lastTimestamp") or ""), default={})
    return str(newest.get("message") or "")


async def _made_by(
    uid: str,
    found: Iterable[Tree],
    namespace: str,
    asked: AskedCluster,
    controller: Callable[[Tree], OwnerReference | None],
) -> AsyncIterator[Tree]:
    known: dict[OwnerReference, bool] = {}
    for each in found:
        reference = controller(each)
        if reference is None:
            continue
        if reference not in known:
            known[reference] = reference.uid == uid or await _is_below(uid, reference, namespace, asked)
        if known[reference]:
            yield each


async def _is_below(uid: str, reference: OwnerReference, namespace: str, asked: AskedCluster) -> bool:
    try:
        owners = await asked.cluster.lookups.owners(namespace, reference, asked.policy.kinds)
    except Unreadable:  # it is gone, or the person may not read it
        return False
    return any(each.uid == uid for each in owners)


def _metadata(pod: Tree) -> Metadata:
    return view(pod, Named).metadata


def _regarding(event: Tree) -> OwnerReference | None:
    about = event.get("involvedObject") or {}
    return view({**about, "controller": True}, OwnerReference) if about.get("apiVersion") else None
