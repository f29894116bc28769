"""Patch operations that write a decision on an object; values that are there already are left out.

They are built by hand, because a diff of two copies costs some 400 us a pod. An `add` on a present key replaces it (RFC
6902, 4.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.admission.facts import gang_uid
from webhook.admission.review import Operation
from webhook.objects.manifests import FROM_FILE
from webhook.objects.podgroups import PodGroup, SchedulingWorkload
from webhook.objects.pods import QUOTA_GATE, Affinity, Container, Metadata, NodeRequirement, Pod, PodSpec
from webhook.objects.view import listed
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, assigned_by
from webhook.policy.assignment.kueue import PRIORITY_CLASS, QUEUE_CLASS
from webhook.policy.assignment.request import GANG, TIER_LABEL
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.decide import Decision
from webhook.policy.metadata_keys import EVICTABLE_VOLUMES, due
from webhook.policy.placement import PlacementPlan, SchedulingPlan
from webhook.policy.preemption.node_state import ReservedNodesAccess, undue
from webhook.policy.quota.demand import CLAIMED, claimed

Operations = tuple[Operation, ...]
VOLUME = "gpu-tiers-checkpoint"
_NOTHING = SchedulingPlan()
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of_pod(pod: Pod, decision: Decision) -> Iterator[Operation]:
    """Return the tier's three priority fields together (Priority admission refuses any mix), marks, hook and placement.

    A scheduler with its queue, and what autoscalers are told, are included.
    """
    live = decision.live
    if live is not None:
        wanted = {
            "priorityClassName": (pod.spec.priority_class_name, live.name),
            "priority": (pod.spec.priority, live.value),
            "preemptionPolicy": (pod.spec.preemption_policy, live.preemption_policy),
        }
        for field, (there, value) in wanted.items():
            if there != value:
                yield add(f"/spec/{field}", value)
    asked, metadata = decision.tier_request, pod.metadata
    hook = decision.hook.plan if decision.hook else None
    marks = {key: text for each in (hook.volumes if hook else ()) for key, text in each.annotations.items()}
    if hook is not None:
        containers = [pod.spec.containers[index] for index in hook.containers]
        mounts = {mount.name for each in containers for mount in each.volume_mounts}
        if VOLUME in mounts.union(mount["name"] for each in containers for mount in _missing_mounts(each, hook)):
            marks[EVICTABLE_VOLUMES] = _with_our_volume(metadata.annotations.get(EVICTABLE_VOLUMES, ""))

    # The leader counts a pod by these: the request of its claims, and its gang. The pod's controller may be that gang,
    # but whoever may edit pods may change the controller. A gang in a file has no uid. A mark that somebody else wrote,
    # or that was copied with the pod, counts for nothing.
    uid, devices = gang_uid(metadata, asked.facts), asked.facts.devices
    uid = "" if uid.startswith(FROM_FILE) else uid
    claims = claimed(devices, asked.policy) if devices else ""
    of_leader = {CLAIMED: claims, GANG: uid}
    marks = {key: text for key, text in of_leader.items() if text or key in metadata.annotations} | marks
    yield from _marks(metadata, decision, {**marks, **decision.autoscaler.annotations}, asked.facts.selects)
    if hook is not None:
        yield from _hook(pod, hook)
    if (access := decision.reserved_nodes) is not None:
        yield from _reserved_nodes(pod, access)
    if decision.placement is not None:
        yield from _placement(pod, decision.placement, access)
    if decision.scheduling is not None and decision.scheduling.scheduler:
        yield add("/spec/schedulerName", decision.scheduling.scheduler)


def gate(pod: Pod) -> Iterator[Operation]:
    """Yield our scheduling gate."""
    if not pod.waits_for_quota:
        yield from _items("/spec/schedulingGates", pod.spec.scheduling_gates, [{"name": QUOTA_GATE}])


def of_group(group: PodGroup, decision: Decision) -> Iterator[Operation]:
    """Yield a PodGroup's class and priority, which go together, and its preemptionPolicy if Kubernetes has set one."""
    live = decision.live
    if live is None:
        return
    if group.spec.priority_class_name != live.name:
        yield add("/spec/priorityClassName", live.name)
    if group.spec.priority != live.value:
        yield add("/spec/priority", live.value)
    if group.spec.preemption_policy not in (None, live.preemption_policy):
        yield add("/spec/preemptionPolicy", live.preemption_policy)
    if decision.disruption_mode is not None:
        yield add("/spec/disruptionMode", decision.disruption_mode)
    yield from _marks(group.metadata, decision, {})


def of_scheduling_workload(found: SchedulingWorkload, decision: Decision) -> Iterator[Operation]:
    """Yield the class of each template. Its priority is written on the PodGroup, when that is created."""
    live = decision.live
    if live is None:
        return
    for field, template in found.templates():
        if template.priority_class_name != live.name:
            pointer = "/" + field.replace(".", "/").replace("[", "/").replace("]", "")
            yield add(f"{pointer}/priorityClassName", live.name)
    yield from _marks(found.metadata, decision, {})


def _marks(
    metadata: Metadata, decision: Decision, of_this_pod: Mapping[str, str], selects: frozenset[str] = frozenset()
) -> Iterator[Operation]:
    """Yield the tier label, its scheduler's and Kueue's if there are none, and our annotations."""
    tier, of_scheduler = decision.assignment.tier, decision.scheduling or _NOTHING
    labels = {TIER_LABEL: tier.name, **of_scheduler.labels} if tier else {}
    annotations = {ASSIGNED_BY: str(assigned_by(decision.assignment)), **of_scheduler.annotations, **of_this_pod}
    if decision.queue_class is not None:
        labels[PRIORITY_CLASS] = annotations[QUEUE_CLASS] = decision.queue_class
    yield from entries("/metadata/labels", metadata.labels, due(metadata.labels, labels, selects))
    yield from entries("/metadata/annotations", metadata.annotations, due(metadata.annotations, annotations))


def _hook(pod: Pod, plan: HookPlan) -> Iterator[Operation]:
    """Yield the grace period, preStop with the protocol's folder on each container that gets it, and variables."""
    if pod.spec.termination_grace_period_seconds != plan.grace:
        yield add("/spec/terminationGracePeriodSeconds", plan.grace)
    for index in dict.fromkeys(index for index, _, _ in plan.variables):
        wanted = {name: value for at, name, value in plan.variables if at == index}
        path, present = f"/spec/containers/{index}/env", pod.spec.containers[index].env
        places = {each.name: place for place, each in enumerate(present)}
        for name, value in wanted.items():  # a present variable keeps its position, because later ones may refer to it
            if name in places and present[places[name]].value != value:
                yield add(f"{path}/{places[name]}/value", value)
        more = [{"name": name, "value": value} for name, value in wanted.items() if name not in places]
        yield from _items(path, present, more)
    mounted = set[str]()
    for index in plan.containers:
        container, path = pod.spec.containers[index], f"/spec/containers/{index}"
        if container.lifecycle is None:
            yield add(f"{path}/lifecycle", {"preStop": plan.handler})
        elif container.lifecycle.pre_stop != plan.handler:
            yield add(f"{path}/lifecycle/preStop", plan.handler)
        mounts = _missing_mounts(container, plan)
        yield from _items(f"{path}/volumeMounts", container.volume_mounts, mounts)
        mounted.update(each["name"] for each in mounts)
    there = {volume.name for volume in pod.spec.volumes}
    brought = (each.volume for each in plan.volumes)
    volumes = [each for each in ({"name": VOLUME, "emptyDir": {}}, *brought) if each["name"] in mounted - there]
    yield from _items("/spec/volumes", pod.spec.volumes, volumes)


def _with_our_volume(listed: str) -> str:
    """Return the author's list of evictable volumes, with ours at the end.

    This is the only foreign annotation to which we add, because it is a list: each entry keeps its text and its
    meaning, and no selector reads annotations. Without our entry a list with all of the author's volumes would lose its
    effect: Cluster Autoscaler removes no node with an emptyDir that the list lacks, such as ours (getNonBlockingVolumes
    in its utils/drain splits at commas alone).
    """
    names = listed.split(",") if listed else []
    return listed if VOLUME in names else ",".join((*names, VOLUME))


def _missing_mounts(container: Container, plan: HookPlan) -> list[dict[str, Any]]:
    """Return the missing mounts of a container.

    Each container has its own folder of the protocol, because two hooks would take each other's answer.
    """
    own = [{"name": VOLUME, "mountPath": plan.folder, "subPath": container.name}] if plan.folder else []
    mounted = {mount.mount_path.rstrip("/") for mount in container.volume_mounts}
    wanted = (*own, *(each.mount for each in plan.volumes))
    return [each for each in wanted if each["mountPath"].rstrip("/") not in mounted]


def _reserved_nodes(pod: Pod, access: ReservedNodesAccess) -> Iterator[Operation]:
    """Write the tolerations of the taint of reserved nodes: those of its tier, whatever its author wrote."""
    there, wanted = listed(pod.spec.tolerations), access.tolerations
    for place in undue(pod, wanted):
        yield {"op": "remove", "path": f"/spec/tolerations/{place}"}
    yield from _items("/spec/tolerations", there, [each for each in wanted if each not in there])
    if access.needs_affinity(pod):
        yield from _avoid(pod, access.expression)


def _avoid(pod: Pod, expression: Mapping[str, Any]) -> Iterator[Operation]:
    """Add an expression to each term of the required node affinity: a node has to match one of them.

    An empty term matches no node, and stays so.
    """
    affinity, terms = pod.spec.affinity, pod.spec.node_terms
    if not terms:
        required = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        if affinity is PodSpec().affinity:
            yield add("/spec/affinity", {"nodeAffinity": required})
        elif affinity.node_affinity is Affinity().node_affinity:
            yield add("/spec/affinity/nodeAffinity", required)
        else:
            yield add(f"/spec/affinity/nodeAffinity/{_REQUIRED}", required[_REQUIRED])
    ours = NodeRequirement(expression["key"], expression["operator"], tuple(expression["values"]))
    for place, term in enumerate(terms):
        where = f"/spec/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms/{place}/matchExpressions"
        if ours not in term.match_expressions and (term.match_expressions or term.match_fields):
            yield from _items(where, term.match_expressions, [expression])


def _placement(pod: Pod, plan: PlacementPlan, access: ReservedNodesAccess | None) -> Iterator[Operation]:
    """Add the plan to the spec. The plan has no field that the pod sets itself; what `access` needs is there by now."""
    spec, borne = pod.spec, access is not None and bool(access.tolerations)
    has_affinity = spec.affinity is not PodSpec().affinity or (access is not None and access.needs_affinity(pod))
    if plan.pod_affinity is not None and not has_affinity:
        yield add("/spec/affinity", {"podAffinity": plan.pod_affinity})
    elif plan.pod_affinity is not None:
        yield add("/spec/affinity/podAffinity", plan.pod_affinity)
    if plan.spread_constraints is not None:
        yield add("/spec/topologySpreadConstraints", plan.spread_constraints)
    yield from _items("/spec/tolerations", spec.tolerations or borne, plan.tolerations)
    yield from entries("/spec/nodeSelector", spec.node_selector, plan.node_selector)
    if plan.active_deadline_seconds is not None:
        yield add("/spec/activeDeadlineSeconds", plan.active_deadline_seconds)


def entries(path: str, there: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[Operation]:
    """Yield keys of a map that may be absent: an `add` below an absent map fails the whole patch with status 500."""
    if wanted and not there:
        yield add(path, dict(wanted))
        return
    for key, value in wanted.items():
        if there.get(key) != value:
            yield add(f"{path}/{escaped(key)}", value)


def escaped(key: str) -> str:
    """Return a key as a step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _items(path: str, there: object, more: Sequence[object]) -> Iterator[Operation]:
    """Yield items for a list that may be absent."""
    if more and not there:
        yield add(path, list(more))
    else:
        yield from (add(f"{path}/-", each) for each in more)


def add(path: str, value: object) -> Operation:
    """Return the operation that sets a value at a path, whether or not there was one."""
    return {"op": "add", "path": path, "value": value}
