"""Finds out why a workload's pods do not run, or why there are none."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.asked_kueue import kueue_about
from webhook.cli.documents import Document
from webhook.cli.explanation import refusal_of
from webhook.cli.other_tiers import kubectl_name
from webhook.cli.waiting_pod import pod_waits
from webhook.cli.workload_now import last_refusal, pods_of_workload
from webhook.objects.refusal import Refused
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.lifecycle import has_ended, is_suspended
from webhook.policy.workloads.templates import pod_templates
from webhook.readmodel.refused_pods import RefusedPods
from webhook.readmodel.waiting import PENDING, Standing, WhyPending, standing

Tree = dict[str, Any]

_BY_ANNOTATION = ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")


async def workload_waits(asked: AskedCluster, document: Document, now: datetime) -> WhyPending:
    """The answer about a workload. Raises ApiError."""
    pods = await pods_of_workload(asked, document.namespace, document.uid)
    found = WhyPending(f"{document.kind}/{document.name}", document.namespace, ())
    waiting = [each for each in pods if standing(each).state in PENDING]
    if waiting:
        found = await pod_waits(asked, Document("the cluster", {"apiVersion": "v1", "kind": "Pod", **waiting[0]}), now)
        first = (
            f"{len(waiting)} of {len(pods)} pods {'are' if len(waiting) > 1 else 'is'} pending, such as {found.pod}."
        )
        found = replace(found, object=f"{document.kind}/{document.name}", sentences=(first, *found.sentences))
    refused = await last_refusal(asked, document.namespace, document.uid, pods)
    if refused is None:
        return found if waiting else await _without_refusal(asked, document, found, [standing(each) for each in pods])
    return await _with_refusal(asked, document, found, refused, now)


async def _with_refusal(
    asked: AskedCluster, document: Document, found: WhyPending, refused: RefusedPods, now: datetime
) -> WhyPending:
    still = refusal_of(await asked.desk.finding(document), booked=False)
    told = [f"Its pods are refused at admission: {refused.sentence}", refused.said(now)]
    if not refused.ours:
        told.append("It is not gpu-tiers that refuses them: the sentence names who does.")
    elif not still:
        told.append("There is room now: the next try should pass.")
    elif still != refused.sentence:
        told.append(f"Now it would be told: {still}")
    controller = refused.controller if refused.controller_kind in _BY_ANNOTATION else ""
    retry = f'kubectl annotate {controller.lower()} -n {document.namespace} --overwrite example.com/retry="$(date +%s)"'
    return replace(
        found, sentences=(*told, *found.sentences), refused=refused, retry=retry if controller else "", waits=True
    )


async def _without_refusal(
    asked: AskedCluster, document: Document, found: WhyPending, pods: list[Standing]
) -> WhyPending:
    if pods and not has_ended(document.tree):
        running = sum(each.state == "running" for each in pods)
        return replace(found, sentences=(f"None of its pods is pending: {running} of {len(pods)} run.",))
    return replace(found, sentences=tuple([each async for each in _without_pods(asked, document)]))


async def _without_pods(asked: AskedCluster, document: Document) -> AsyncIterator[str]:
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    if has_ended(document.tree):
        yield "It has ended, and makes no pods any more."
    elif is_suspended(document.tree):
        yield "It is suspended (spec.suspend), so it has no pods: whoever queues it releases it."
        for each in await kueue_about(asked, document):
            yield each
    elif row and not _asks_for_pods(document.tree, row):
        yield "It asks for no pod: its count is 0."
    else:
        yield "It has no pod, and no event tells of a refusal: does what makes its pods run? Its events may say more:"
        yield f"kubectl describe {kubectl_name(document.group_kind, document.name)} -n {document.namespace}"


def _asks_for_pods(tree: Tree, row: KindRow) -> bool:
    try:
        counts = [each.count for each in pod_templates(tree, row)]
    except Refused:
        return True
    return any(counts) or not counts
