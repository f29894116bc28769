"""Finds out why a pod or a workload's pods do not run, or why there are none."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from decimal import Decimal

from msgspec.structs import replace

from webhook.admission.facts import usage_met
from webhook.cli.cluster.one_object import (
    AskedCluster,
    asks_for_none,
    events_about,
    eviction_of_pod,
    has_all_pods,
    kubectl_name,
    last_refusal,
    messages_of,
    pods_due,
    pods_of_workload,
)
from webhook.cli.cluster.target import OF_A_VERDICT
from webhook.cli.explain.explanation import explained, next_decision, refusal_of
from webhook.cli.explain.replacement import charge_of_existing, evicted_first, ledger_without
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.judge import judge_of
from webhook.cli.why_pending.lost_pods import (
    back_off,
    failed_by_evictions,
    lost_node,
    pod_on_lost_node,
    running_on_lost_nodes,
)
from webhook.cli.why_pending.queue_position import no_native_room, queued_for_quota
from webhook.cli.why_pending.unscheduled import unscheduled
from webhook.cluster.listed import PodSummary, gpu_nodes, lost_pods, way_out
from webhook.kube.client import RFC_3339, path
from webhook.kube.discovery import resources_of
from webhook.kube.errors import ApiError
from webhook.objects.pods import Pod
from webhook.objects.view import Tree, at, listed, view
from webhook.policy.quota.charges import Charge, never_fits, shortfall
from webhook.policy.quota.queue_status import ends_surge
from webhook.policy.quota.refusals import TOO_LARGE
from webhook.policy.values.tenants import Tenant
from webhook.policy.workloads.workload import has_ended
from webhook.report.waiting import (
    PENDING,
    UPDATE_REFUSED,
    RefusedPods,
    WhyPending,
    kueue_says,
    running_pods,
    standing,
)
from webhook.sentences.sentence import sentence


async def pod_waits(asked: AskedCluster, document: Document, now: datetime) -> WhyPending:
    """Return the answer about a pod. Raises ApiError."""
    pod, stands = view(document.tree, Pod), standing(document.tree, now)
    tier = asked.policy.tiers.of_class(pod.spec.priority_class_name)
    found = WhyPending(
        object=f"{document.kind}/{document.name}",
        namespace=document.namespace,
        sentences=(stands.sentence,),
        pod=document.name,
        tier=tier.name if tier else "",
        waits=stands.state in PENDING,
    )
    if stands.state == "ending" and (lost_pods_said := await on_lost_node(asked, [document.tree])):
        return replace(found, sentences=lost_pods_said)
    if pod.spec.node_name and stands.state != "ended" and (lost := await lost_node(asked, pod.spec.node_name)):
        sentences = (pod_on_lost_node(pod, lost, stands.state),)
        return replace(found, sentences=sentences, waits=stands.state != "ending")
    if stands.state == "gated":
        queued = await queued_for_quota(asked, document, pod) if pod.waits_for_quota else ()
        return replace(found, sentences=(*queued, *found.sentences, *await kueue_about(asked, document)))
    return await unscheduled(asked, document, pod, found, now) if stands.state == "unscheduled" else found


async def on_lost_node(asked: AskedCluster, pods: Iterable[Tree]) -> tuple[str, ...]:
    """Return sentences on ending pods that their Job does not replace because their node is not Ready."""
    ending = [_ending(pod) for pod in pods if standing(pod).state == "ending"]
    if not any(each.job and each.node for each in ending):
        return ()
    lost, reader = "whether its node is lost", asked.reader
    nodes = await reader.part("nodes", gpu_nodes(reader.client, asked.policy), (), lost)
    found = await reader.part("lost_pods", lost_pods(reader.client, ending, nodes), (), lost)
    return tuple(
        f"Pod {each.name} is being deleted on node {each.node}, which is not Ready. Its Job has podReplacementPolicy "
        f"Failed, so the next pod is made only when the node reports the end. {way_out(each.node)}."
        for each in found
    )


def _ending(tree: Tree) -> PodSummary:
    pod = view(tree, Pod)
    about, node = pod.metadata, pod.spec.node_name
    ends = about.deletion_timestamp or ""
    return PodSummary(about.namespace, about.name, node=node, owner=about.controller, ends=ends)


async def why_gone(asked: AskedCluster, namespace: str, pod: str) -> WhyPending | None:
    """Return the answer about a deleted pod: its last eviction; None if no Event reports one."""
    evicted = await eviction_of_pod(asked, namespace, pod)
    return WhyPending(f"Pod/{pod}", namespace, (f"It is gone: {evicted}.",)) if evicted else None


async def kueue_about(asked: AskedCluster, document: Document) -> tuple[str, ...]:
    """Return Kueue's reason for not admitting the object; none if Kueue gives no reason, or is not installed."""
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
"""The age in seconds up to which a workload's controller may not have handled it yet."""
LOOKS, PAUSE = 20, 0.5
"""The most looks at a new workload, and the seconds between them. They bound the wait if the clocks differ."""
_BY_ANNOTATION = ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")


NO_ANSWER = (
    "gpu-tiers did not answer, so the API server refused new GPU pods: this is an outage, not a mistake of the "
    "pods. gpu-tiers check shows what is wrong; docs/break-glass.md has the platform team's way out."
)


AFTER_AN_OUTAGE = "Its pods are admitted at the next try once gpu-tiers answers or enforcement has ended."


async def controller_has_tried(asked: AskedCluster, document: Document) -> None:
    """Wait until a workload has a pod or a refusal of one, for LOOKS looks at most. Raises ApiError.

    Don't wait if it is older than YOUNG, asks for no pods or is a CronJob, or if the user may not list pods.
    """
    asked.reader.steps.begin("what makes its pods has not tried yet")
    created = datetime.fromisoformat(document.metadata["creationTimestamp"])
    for _ in range(LOOKS):
        age = (datetime.now(UTC) - created).total_seconds()
        if age > YOUNG or at(document.tree, "spec.schedule") or asks_for_none(document, asked.policy.kinds):
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
        found = replace(found, object=f"{document.kind}/{document.name}")
    lost = await on_lost_node(asked, pods or ())
    found = replace(found, sentences=(*lost, *found.sentences), waits=found.waits or bool(lost))
    there, due = len([*running_pods(pods or ())]), pods_due(document, asked.policy.kinds)
    refused = None  # all its pods were admitted, it wants none, or the refusal was of its update
    if not (has_all_pods(document, there, due) or asks_for_none(document, asked.policy.kinds)):
        lacks_pods = there < due and at(document.tree, "spec.schedule") is None
        refused = await last_refusal(asked, document.namespace, document.uid, pods or (), lacks_pods=lacks_pods)
    if refused is None and not waiting:
        return await _without_refusal(asked, document, found, pods)
    queued = any(view(each, Pod).waits_for_quota for each in waiting)
    stuck = await stuck_rollout(asked, document, pods or ()) if queued or (refused and refused.ours) else ""
    if refused is None:
        first = _of_how_many(found.pod, len(waiting), len(pods or ()))
        conclusion = (*found.sentences, first) if len(pods or ()) == 1 else (first, *found.sentences)
        return replace(found, sentences=(stuck, first) if stuck else conclusion)
    lacks = (
        "Its Job is refused"
        if refused.controller_kind == "CronJob"
        else _lacks_pods(asked, document, found.pod, waiting, pods or [])
    )
    if stuck:
        sentences = (stuck, f"{lacks} at admission: {refused.sentence}", *found.sentences)
        return replace(found, sentences=sentences, refused=refused, waits=True)
    return await _with_refusal(asked, document, found, refused, now, lacks)


def _of_how_many(pod: str, waiting: int, pods: int) -> str:
    if pods == 1:
        return f"Its pod {pod} is pending."
    return f"{waiting} of its {pods} pods {'are' if waiting > 1 else 'is'} pending, such as {pod}."


def _lacks_pods(asked: AskedCluster, document: Document, pod: str, waiting: list[Tree], pods: list[Tree]) -> str:
    there = len([*running_pods(pods)])
    if not there:
        return "Its pods are refused"
    lacks = pods_due(document, asked.policy.kinds) - there
    one_by_one = document.kind == "StatefulSet" and at(document.tree, "spec.podManagementPolicy") != "Parallel"
    several = "the next is refused" if one_by_one else f"{lacks} are refused"
    refused = "1 is refused" if lacks == 1 else several if lacks > 0 else "others are refused"
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
    sentences = [f"{lacks} at admission: {refused.sentence}"]
    if refused.unreached:
        sentences.append(NO_ANSWER)
    elif not refused.ours:
        sentences.append("Another webhook or a ResourceQuota refuses them, not gpu-tiers: the sentence above names it.")
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    in_groups = row is not None and bool(row.group_label)  # its own review does not say which group is refused
    finding = await _judged_now(asked, document) if (refused.ours or refused.unreached) and not in_groups else None
    still = refusal_of(finding, booked=False) if finding else None
    whole = finding.verdict.refusal if finding else None
    if whole is not None and whole.id == TOO_LARGE:
        sentences.append(f"All of its pods together never have room: {sentence(whole)}")
    elif still == "" and refused.unreached:
        sentences.append(AFTER_AN_OUTAGE)
    elif still == "" and (left := await no_native_room(asked, document.namespace, finding)):
        still = left
        sentences.append(f"The tenant's quota has room now, but {left}.")
    elif still == "":
        sentences.append(await _next_try(asked, document, finding))
    elif still is not None and still != refused.sentence:
        sentences.append(f"The next try would be refused with: {still}")
    # Offer a retry only if the next try would pass here. Whether another webhook refuses it again is unknown.
    passes = still == "" or not (refused.ours or refused.unreached or refused.of_resource_quota)
    controller = refused.controller if passes and refused.controller_kind in _BY_ANNOTATION else ""
    retry = f'kubectl annotate {controller.lower()} -n {document.namespace} --overwrite example.com/retry="$(date +%s)"'
    if controller and refused.unreached:  # while gpu-tiers is down, a try only lengthens the wait for the next one
        sentences.append(f"To have it tried at once then: {retry}")
    now_helps = controller and not refused.unreached
    sentences += [refused.said(now), *found.sentences]
    return replace(found, sentences=tuple(sentences), refused=refused, retry=retry if now_helps else "", waits=True)


async def _next_try(asked: AskedCluster, document: Document, finding: Finding | None) -> str:
    """Return the sentence on the next pod, which would be admitted: it waits in the queue, or the try passes."""
    decisions = [part.verdict.decision for part in finding.parts] if finding else []
    queues = any(each.on_exceed == "Hold" for each in decisions if each)
    waits_for = (await explained(asked, document.tree)).waits_for if queues else ""
    return (
        f"The next try should pass, and its pod {waits_for}."
        if waits_for
        else "There is room now: the next try should pass."
    )


async def _judged_now(asked: AskedCluster, document: Document) -> Finding | None:
    """Return the finding on a workload and its next pods if they were created now; None without a right it needs."""
    finding = await asked.judge.finding(document)
    asked.reader.without("whether its next pod would be admitted now", *OF_A_VERDICT)
    return finding if asked.reader.sure else None


async def _without_refusal(
    asked: AskedCluster, document: Document, found: WhyPending, pods: list[Tree] | None
) -> WhyPending:
    found = await _by_its_pods(asked, document, found, pods)
    events = await events_about(asked, document.namespace, document.uid) or ()
    refused = messages_of(each for each in events if each.get("reason") == UPDATE_REFUSED)
    if not refused:
        return found
    last, message = max(refused)
    when = last.strftime(RFC_3339)
    writes = (each for each in listed(document.metadata.get("managedFields")) if not each.get("subresource"))
    if any(each.get("time", "") > when for each in writes):
        return found  # a later update was admitted
    said = f"An update was refused at {when}, and changed nothing: {message}"
    return replace(found, sentences=(*found.sentences, said))


async def _by_its_pods(
    asked: AskedCluster, document: Document, found: WhyPending, pods: list[Tree] | None
) -> WhyPending:
    there = [*running_pods(pods or ())]
    if there and not has_ended(document.tree):
        running = [each for each in there if standing(each).state == "running"]
        lost = await running_on_lost_nodes(asked, running)
        text = f"None of its pods is pending: {len(running) - len(lost)} of {len(there)} run."
        due = pods_due(document, asked.policy.kinds)
        lacks = 0 if has_all_pods(document, len(there), due) else due - len(there)
        backs_off = await _backs_off(asked, document, pods or ()) if lacks > 0 else ""
        missing = (f"{lacks} {'is' if lacks == 1 else 'are'} missing.", backs_off) if backs_off else ()
        sentences = (*found.sentences, text, *list(lost.values())[:1], *missing)
        return replace(found, sentences=sentences, waits=found.waits or bool(backs_off or lost))
    waits = not asks_for_none(document, asked.policy.kinds)
    without = _without_pods(asked, document, pods)
    return replace(found, sentences=tuple([each async for each in without]), waits=waits)


async def _without_pods(asked: AskedCluster, document: Document, pods: list[Tree] | None) -> AsyncIterator[str]:
    if none := asks_for_none(document, asked.policy.kinds):
        for each in await failed_by_evictions(asked, document, pods or ()):
            yield each
        yield none
        for each in () if has_ended(document.tree) else await kueue_about(asked, document):
            yield each
        return
    backs_off = await _backs_off(asked, document, pods or ())
    if backs_off:
        yield backs_off
    if schedule := at(document.tree, "spec.schedule"):
        last = at(document.tree, "status.lastScheduleTime")
        yield f"It makes pods by its schedule, {schedule}: {f'last at {last}' if last else 'none was due yet'}."
    elif (finding := await _judged_now(asked, document)) and (refusal := refusal_of(finding, booked=False)):
        yield f"{'That pod' if backs_off else 'It has no pod, and a new one'} would be refused now: {refusal}"
    elif pods is not None and not backs_off and not asked.reader.unknown:
        name = kubectl_name(document.group_kind, document.name)
        yield (
            "It has no pod, and no Event reports a refusal: perhaps its controller is not running. Its own Events say "
            f"more: kubectl describe {name} -n {document.namespace}"
        )


async def _backs_off(asked: AskedCluster, document: Document, pods: Iterable[Tree]) -> str:
    makes_pods = document.kind == "Job" and not asks_for_none(document, asked.policy.kinds)
    return await back_off(asked, document, pods, pods_due(document, asked.policy.kinds)) if makes_pods else ""


_PATCH = '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
_DEFAULT_UNAVAILABLE = "25%"


async def stuck_rollout(asked: AskedCluster, document: Document, pods: Iterable[Tree]) -> str:
    """Return the sentence that a rollout waits for GPUs of its own old pods, and how to go on; "" if it does not.

    Usage of other workloads may end by itself. The old pods don't end, because they run until the new ones do.
    """
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    there, new = at(document.tree, "status.replicas"), at(document.tree, "status.updatedReplicas") or 0
    setting = ends_surge(document.tree, row) if row else ""
    if not setting or not there or there == new or _replaces_without_surge(document):
        return ""
    tenant = asked.cluster.known.tenant(await asked.cluster.known.namespace(document.namespace))
    decision = await next_decision(asked, document)
    charge = decision.charge if decision else None
    bounding = _bounding(tenant, charge) if tenant and charge else None
    if bounding is None or charge is None:
        return ""
    charged = [each for each in running_pods(pods) if not view(each, Pod).waits_for_quota]
    charges = [each for pod in charged if (each := await charge_of_existing(asked, pod))]
    first = evicted_first(charged)
    own_usage = {
        row: sum((each.gpus for each in charges if row.counts(each.tier, each.flavor)), Decimal(0))
        for row in bounding.bounds
    }
    if first is None or shortfall((charge,), bounding, own_usage) is None:
        return ""
    without = await ledger_without(asked, [first])
    own = {view(each, Pod).metadata.uid for each in pods}  # the queue reserves GPUs under the uid of a pod
    usage, _ = usage_met(without, bounding, asked.policy.tiers.rank(charge.tier), own=own)
    in_its_place = judge_of(asked.cluster, without, asked.policy)
    if shortfall((charge,), bounding, usage) or refusal_of(await in_its_place.finding(document), booked=False):
        return ""  # the old pod would end for nothing
    if document.kind != "Deployment":
        return f"A rollout is under way: its new pods wait for the quota that its old pods use. Set {setting}."
    return (
        "The rollout is stuck: its old pods use the quota that its new pods need, so waiting does not help. To have it "
        f"replace pods one by one: kubectl patch deployment {document.name} -n {document.namespace} -p '{_PATCH}'"
    )


def _bounding(tenant: Tenant, charge: Charge) -> Tenant | None:
    """Return the tenant with the rows that limit a new pod; None if the end of old pods gives it no room."""
    spent = [row for row in charge.rows(tenant) if row.spent]
    if never_fits(charge, tenant) or any(row.tier is None or tenant.action(row) != "Demote" for row in spent):
        return None  # used up hours stay so when the old pods have ended
    # new pods are demoted to tiers that a budget of one tier does not count
    return replace(tenant.bounding_every_tier() if spent else tenant, spent=())


def _replaces_without_surge(document: Document) -> bool:
    """Tell whether a Deployment ends old pods before the new ones run: its maxUnavailable is rounded down."""
    if document.kind != "Deployment":
        return False
    value = at(document.tree, "spec.strategy.rollingUpdate.maxUnavailable")
    text, replicas = str(_DEFAULT_UNAVAILABLE if value is None else value), at(document.tree, "spec.replicas")
    number = text.removesuffix("%")
    if not number.isdecimal():
        return False
    pods = replicas if isinstance(replicas, int) else 1
    return (pods * int(number) // 100 if text.endswith("%") else int(number)) > 0
