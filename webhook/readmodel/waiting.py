"""What a pod waits for, as far as the pod itself says it."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from webhook.readmodel.gpu_room import Room
from webhook.readmodel.refused_pods import RefusedPods
from webhook.readmodel.shown import Shown

Tree = dict[str, Any]

State = Literal["running", "ended", "ending", "gated", "starting", "unscheduled"]

PENDING: tuple[State, ...] = ("gated", "unscheduled", "starting")

_GATES = {
    "kueue.x-k8s.io/admission": "Kueue has not admitted it",
    "kueue.x-k8s.io/topology": "Kueue has not chosen its nodes",
    "kueue.x-k8s.io/elastic-job": "Kueue has not admitted this part of its job",
}
_OTHER_GATE = "whoever set it has not lifted it"


class Standing(Shown, frozen=True):
    """Where a pod stands, in a word and in a sentence."""

    state: State
    sentence: str


class WhyPending(Shown, frozen=True):
    """Why an object's pods do not run. `sentences` have the causes, the first that counts first.

    `pod` is the one that was looked at, `retry` has the controller try again at once. `waits`: it does not run.
    """

    object: str
    namespace: str
    sentences: tuple[str, ...]
    pod: str = ""
    tier: str = ""
    scheduler: str = ""
    room: Room | None = None
    refused: RefusedPods | None = None
    retry: str = ""
    waits: bool = False
    unread: tuple[str, ...] = ()


def standing(pod: Tree) -> Standing:
    """Where a pod stands."""
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    phase, node = status.get("phase"), spec.get("nodeName")
    gates = [str(each.get("name")) for each in spec.get("schedulingGates") or ()]
    if phase in ("Succeeded", "Failed"):
        return Standing("ended", f"It has ended: {phase}.")
    if metadata.get("deletionTimestamp"):
        return Standing("ending", f"It is being deleted, and ends at {metadata['deletionTimestamp']} at the latest.")
    if phase == "Running":
        return Standing("running", f"It runs on {node}.")
    if gates:
        told = "; ".join(f"{each}: {_GATES.get(each, _OTHER_GATE)}" for each in gates)
        return Standing(
            "gated", f"It waits behind its scheduling gates, so the scheduler has not looked at it. {told}."
        )
    if node:
        return Standing("starting", f"It has its place on {node}, and its containers are starting{_slow(status)}.")
    return Standing("unscheduled", "It has no node yet.")


def scheduler_says(pod: Tree, events: Iterable[Tree]) -> str:
    """The scheduler's own words: of the pod's condition, else of its newest event; "" before it has looked."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    told = [each for each in conditions if each.get("type") == "PodScheduled" and each.get("status") == "False"]
    messages = [str(each["message"]) for each in told if each.get("message")]
    failed = [each for each in events if each.get("reason") == "FailedScheduling"]
    newest = max(failed, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime")), default=None)
    return messages[0] if messages else str(newest.get("message") or "") if newest else ""


def kueue_says(workloads: Iterable[Tree], uids: frozenset[str]) -> str:
    """Why Kueue has not admitted what one of these objects is; "" where it has, or has no Workload of it."""
    for each in workloads:
        owners = (each.get("metadata") or {}).get("ownerReferences") or ()
        if any(owner.get("uid") in uids for owner in owners):
            return next(_not_admitted(each), "")
    return ""


def _not_admitted(workload: Tree) -> Iterator[str]:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    for kind in ("QuotaReserved", "Admitted"):
        for each in conditions:
            if each.get("type") == kind and each.get("status") != "True" and each.get("message"):
                yield str(each["message"])


def _slow(status: Tree) -> str:
    """What a container waits for."""
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waits = (each.get("state") or {}).get("waiting") or {}
        if waits.get("reason"):
            message = f": {waits['message']}" if waits.get("message") else ""
            return f": {each.get('name')} waits ({waits['reason']}{message})"
    return ""
