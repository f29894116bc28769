"""Finds out why a pod or a workload's pods do not run, or why there are none."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from webhook.cli.cluster.one_object import (
    AskedCluster,
    events_about,
    eviction_of,
    eviction_of_pod,
    last_refusal,
    pods_of_workload,
)
from webhook.cli.explain.explanation import has_all_pods, kubectl_name, refusal_of, running_pods
from webhook.cli.manifests.documents import Document
from webhook.cli.why_pending.queue_position import queued_for_quota, rollout_waits
from webhook.cli.why_pending.unscheduled import unscheduled
from webhook.cluster.listed import gpu_nodes, way_out
from webhook.cluster.pod_listing import PodSummary, lost_pods
from webhook.kube.client import path
from webhook.kube.discovery import resources_of
from webhook.kube.errors import ApiError
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, at, view
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import has_ended, is_suspended, manager_elsewhere
from webhook.report.waiting import (
    PENDING,
    RefusedPods,
    WhyPending,
    failed_at,
    failures_counted,
    kueue_says,
    long_time,
    next_pod_of_job,
    standing,
)


async def pod_waits(asked: AskedCluster, document: Document, now: datetime) -> WhyPending:
    """Return the answer about a pod. Raises ApiError."""
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
    if stands.state == "ending":
        return replace(found, sentences=(*found.sentences, *await on_lost_node(asked, [document.tree])))
    if stands.state == "gated":
        queued = await queued_for_quota(asked, pod) if pod.waits_for_quota else ()
        return replace(found, sentences=(*found.sentences, *queued, *await kueue_about(asked, document)))
    return await unscheduled(asked, document, pod, found, now) if stands.state == "unscheduled" else found


async def on_lost_node(asked: AskedCluster, pods: Iterable[Tree]) -> tuple[str, ...]:
    """Return sentences on the pods that their Job does not replace because their node is lost."""
    ending = [_ending(pod) for pod in pods if standing(pod).state == "ending"]
    if not any(each.job and each.node for each in ending):
        return ()
    lost, reader = "whether its node is lost", asked.reader
    nodes = await reader.part("nodes", gpu_nodes(reader.client, asked.policy), (), lost)
    found = await reader.part("lost_pods", lost_pods(reader.client, ending, nodes), (), lost)
    return tuple(
        f"Pod {each.name} ends on node {each.node}, which is not Ready. Its Job has podReplacementPolicy Failed, so it "
        f"makes no other one until the end is reported. {way_out(each.node)}."
        for each in found
    )


def _ending(tree: Tree) -> PodSummary:
    pod = view(tree, Pod)
    about, node = pod.metadata, pod.spec.node_name
    ends = about.deletion_timestamp or ""
    return PodSummary(about.namespace, about.name, node=node, owner=about.controller, ends=ends)


async def why_gone(asked: AskedCluster, namespace: str, pod: str) -> WhyPending | None:
    """Return the answer about a deleted pod: its evictor; None if unknown."""
    evicted = await eviction_of_pod(asked, namespace, pod)
    return WhyPending(f"Pod/{pod}", namespace, (f"It is gone: {evicted}.",)) if evicted else None


async def kueue_about(asked: AskedCluster, document: Document) -> tuple[str, ...]:
    """Return a sentence with Kueue's own; none if Kueue says nothing, or is not installed."""
    uids = {document.uid, *(each.get("uid", "") for each in document.metadata.get("ownerReferences") or ())}
    try:
        served = await resources_of(asked.reader.client, {"kueue.x-k8s.io"})
        version = next(each.api_version for each in served if each.plural == "workloads")
    except (ApiError, StopIteration):
        return ()
    plural, namespace = "workloads.kueue.x-k8s.io", document.namespace
    found = await asked.reader.objects(plural, namespace, path(version, "workloads", namespace), "what Kueue says")
    text = kueue_says(found or (), frozenset(uids))
    return (f"Kueue says: {text}",) if text else ()


YOUNG = 10.0
"""Seconds after its create within which a workload's controller may not have handled it."""
LOOKS, PAUSE = 20, 0.5
"""The number of retries and the seconds between them. Either clock may be behind the other."""
_BY_ANNOTATION = ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")


NO_ANSWER = (
    "gpu-tiers did not answer, so the API server refused all pods: this is an outage, not a mistake of the pods. If "
    "it lasts, tell your platform team; docs/break-glass.md has the way out."
)


async def controller_has_tried(asked: AskedCluster, document: Document) -> None:
    """Wait until a just applied workload has a pod, or a refusal of one. Raises ApiError."""
    asked.reader.steps.begin("what makes its pods has not tried yet")
    created = datetime.fromisoformat(document.metadata["creationTimestamp"])
    for _ in range(LOOKS):
        age = (datetime.now(UTC) - created).total_seconds()
        if has_ended(document.tree) or _weak_guess(asked, document) or age > YOUNG:
            return
        pods = await pods_of_workload(asked, document.namespace, document.uid)
        if pods is None or pods or await last_refusal(asked, document.namespace, document.uid, pods):
            return
        await asyncio.sleep(PAUSE)


async def workload_waits(asked: AskedCluster, document: Document, now: datetime) -> WhyPending:
    """Return the answer about a workload. Raises ApiError."""
    pods = await pods_of_workload(asked, document.namespace, document.uid)
    found = WhyPending(f"{document.kind}/{document.name}", document.namespace, ())
    waiting = [each for each in pods or () if standing(each).state in PENDING]
    if waiting:
        found = await pod_waits(asked, Document("the cluster", {"apiVersion": "v1", "kind": "Pod", **waiting[0]}), now)
        gated = view(waiting[0], Pod).waits_for_quota
        row = asked.policy.kinds.by_kind.get(document.group_kind)
        rollout = rollout_waits(document.tree, row) if gated and row else ()
        found = replace(found, object=f"{document.kind}/{document.name}", sentences=(*found.sentences, *rollout))
    lost = await on_lost_node(asked, pods or ())
    found = replace(found, sentences=(*lost, *found.sentences), waits=found.waits or bool(lost))
    there, due = len([*running_pods(pods or ())]), _due(asked, document)
    refused = None  # all its pods were admitted, or the refusal was of its update
    if not has_all_pods(document, there, due):
        lacks_pods = there < due and at(document.tree, "spec.schedule") is None
        refused = await last_refusal(asked, document.namespace, document.uid, pods or (), lacks_pods=lacks_pods)
    if refused is None and not waiting:
        return await _without_refusal(asked, document, found, pods)
    if refused is None:
        first = _of_how_many(found.pod, len(waiting), len(pods or ()))
        return replace(found, sentences=(first, *found.sentences))
    lacks = _lacks_pods(asked, document, found.pod, waiting, pods or [])
    return await _with_refusal(asked, document, found, refused, now, lacks)


def _of_how_many(pod: str, waiting: int, pods: int) -> str:
    if pods == 1:
        return f"Its pod {pod} is pending."
    return f"{waiting} of its {pods} pods {'are' if waiting > 1 else 'is'} pending, such as {pod}."


def _due(asked: AskedCluster, document: Document) -> int:
    """Return how many pods it asks for; 0 if unknown."""
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    return sum(_counts(document.tree, row)) if row else 0


def _lacks_pods(asked: AskedCluster, document: Document, pod: str, waiting: list[Tree], pods: list[Tree]) -> str:
    there = len([*running_pods(pods)])
    if not there:
        return "Its pods are refused"
    lacks = _due(asked, document) - there
    refused = f"{lacks} {'is' if lacks == 1 else 'are'} refused" if lacks > 0 else "others are refused"
    if not waiting:
        run = "runs" if there == 1 else "run"
        return f"{there} of its {f'{there + lacks} ' if lacks > 0 else ''}pods {run}; {refused}"
    if lacks <= 0:
        return f"{_of_how_many(pod, len(waiting), len(pods))} Others are refused"
    exist, is_ = ("exists", "is") if there == 1 else ("exist", "are")
    pending = f"and {is_} pending" if there == len(waiting) else f"({len(waiting)} pending)"
    return f"{there} of its {there + lacks} pods {exist} {pending}, such as {pod}; {refused}"


async def _with_refusal(
    asked: AskedCluster, document: Document, found: WhyPending, refused: RefusedPods, now: datetime, lacks: str
) -> WhyPending:
    still = refusal_of(await asked.judge.finding(document), booked=False)
    sentences = [f"{lacks} at admission: {refused.sentence}", refused.said(now)]
    if refused.unreached:
        sentences.append(NO_ANSWER)
    elif not refused.ours:
        sentences.append("It is not gpu-tiers that refuses them: the sentence names who does.")
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    in_groups = row is not None and bool(row.group_label)  # its own review does not say which group is refused
    if not (refused.ours or refused.unreached) or not asked.reader.sure or in_groups:
        pass
    elif not still and refused.unreached:
        sentences.append("It passes once gpu-tiers answers.")
    elif not still:
        sentences.append("There is room now: the next try should pass.")
    elif still != refused.sentence:
        sentences.append(f"Now it would be told: {still}")
    controller = refused.controller if refused.controller_kind in _BY_ANNOTATION else ""
    retry = f'kubectl annotate {controller.lower()} -n {document.namespace} --overwrite example.com/retry="$(date +%s)"'
    return replace(
        found, sentences=(*sentences, *found.sentences), refused=refused, retry=retry if controller else "", waits=True
    )


async def _without_refusal(
    asked: AskedCluster, document: Document, found: WhyPending, pods: list[Tree] | None
) -> WhyPending:
    there = [*running_pods(pods or ())]
    if there and not has_ended(document.tree):
        running = sum(standing(each).state == "running" for each in there)
        text = f"None of its pods is pending: {running} of {len(there)} run."
        due = _due(asked, document)
        lacks = 0 if has_all_pods(document, len(there), due) else due - len(there)
        backs_off = await _backs_off(asked, document, pods or ()) if lacks > 0 else ""
        missing = (f"{lacks} {'is' if lacks == 1 else 'are'} missing.", backs_off) if backs_off else ()
        return replace(found, sentences=(*found.sentences, text, *missing), waits=found.waits or bool(backs_off))
    waits = not has_ended(document.tree) and not _weak_guess(asked, document)
    without = _without_pods(asked, document, pods)
    return replace(found, sentences=tuple([each async for each in without]), waits=waits)


async def _without_pods(asked: AskedCluster, document: Document, pods: list[Tree] | None) -> AsyncIterator[str]:
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    backs_off = await _backs_off(asked, document, pods or ())
    if backs_off:
        yield backs_off
    if has_ended(document.tree):
        yield f"It has {_end_of(document.tree)}, and makes no pods any more."
    elif withheld_tier := _weak_guess(asked, document):
        yield withheld_tier
        for each in await kueue_about(asked, document):
            yield each
    elif row and (counts := _counts(document.tree, row)) and not any(counts):
        yield "It asks for no pod: its count is 0."
    elif schedule := at(document.tree, "spec.schedule"):
        last = at(document.tree, "status.lastScheduleTime")
        yield f"It makes pods by its schedule, {schedule}: {f'last at {last}' if last else 'none was due yet'}."
    elif asked.reader.sure and (refusal := refusal_of(await asked.judge.finding(document), booked=False)):
        no_pod = "That one" if backs_off else "It has no pod, and no event tells of a refusal. One"
        yield f"{no_pod} would be refused now: {refusal}"
    elif pods is not None and not backs_off and not asked.reader.unknown:
        yield "It has no pod, and no event tells of a refusal: does what makes its pods run? Its events may say more:"
        yield f"kubectl describe {kubectl_name(document.group_kind, document.name)} -n {document.namespace}"


PAUSES = (
    "The Job controller waits 10 seconds after a pod that was deleted or has failed, twice as long after each further "
    "one, and at most 10 minutes. Then it makes the next pod."
)
"""The note on a Job whose podFailurePolicy ignores pods that a drain deletes, so that its status counts none."""


async def _has_lost_a_pod(asked: AskedCluster, document: Document) -> bool:
    """Tell whether a Job that lacks pods has made some before. A failed index gets no other pod."""
    if at(document.tree, "spec.backoffLimitPerIndex") is not None:
        return False
    events = await events_about(asked, document.namespace, document.uid) or ()
    made = sum(each.get("count") or 1 for each in events if each.get("reason") == "SuccessfulCreate")
    return made >= _due(asked, document) > 0


async def _backs_off(asked: AskedCluster, document: Document, pods: Iterable[Tree]) -> str:
    """Return when a Job's controller replaces its last pod, which failed or was evicted; "" for no such Job.

    The controller's counts are in its memory, so this is the latest time.
    """
    if document.kind != "Job" or has_ended(document.tree) or _weak_guess(asked, document):
        return ""
    evicted = await eviction_of(asked, document.namespace, view(document.tree, Named).metadata)
    failed, ends = at(document.tree, "status.failed"), [*filter(None, map(failed_at, pods))]
    last = max([*ends, *([evicted.at] if evicted else [])], default=None)
    if last is None or not (failed or evicted):
        return PAUSES if await _has_lost_a_pod(asked, document) else ""
    left = next_pod_of_job(failures_counted(document.tree), last) - datetime.now(UTC)
    why = "was evicted" if evicted and evicted.at >= last else "has failed"
    when = f"within {long_time(left)}" if left > timedelta() else "at any moment"
    return f"Its last pod {why}. The Job controller waits longer after each that fails: the next one comes {when}."


def _weak_guess(asked: AskedCluster, document: Document) -> str:
    """Return why its own controller makes no pods, by its spec; "" if it does."""
    if is_suspended(document.tree):
        return "It is suspended (spec.suspend), so it has no pods: whoever queues it releases it."
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    if row and row.managed_by and (manager := manager_elsewhere(document.tree, row)):
        return f"{manager} manages it ({row.managed_by.field}), so its own controller makes no pods here."
    return ""


def _end_of(tree: Tree) -> str:
    """Return how it ended, with its controller's words on a failure."""
    conditions = at(tree, "status.conditions")
    found = [each for each in conditions if isinstance(each, dict)] if isinstance(conditions, list) else []
    failed = next((each for each in found if each.get("type") == "Failed" and each.get("status") == "True"), None)
    return f"failed ({failed.get('reason')}: {failed.get('message')})" if failed else "ended"


def _counts(tree: Tree, row: KindRow) -> list[int]:
    """Return the number of pods by template; none if unknown."""
    try:
        return [each.count for each in pod_templates(tree, row)]
    except Refused:
        return []
