"""Patch operations that write a decision on an object, without values that the object has already.

They are built by hand, because a diff of two copies costs some 400 us a pod. An `add` on a present key replaces it (RFC
6902, 4.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.admission.facts import gang_uid
from webhook.admission.review import Operation
from webhook.objects.manifests import FROM_FILE
from webhook.objects.podgroups import PodGroup, PodGroupSpec, SchedulingWorkload
from webhook.objects.pods import QUOTA_GATE, Affinity, Container, Metadata, NodeRequirement, Pod, PodSpec, is_filled_in
from webhook.objects.view import Tree, at, listed, steps
from webhook.policy.assignment import kueue
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, assigned_by
from webhook.policy.assignment.request import GANG, TIER_LABEL, class_asked
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.decide import Decision
from webhook.policy.decide_workload import WorkloadDecision
from webhook.policy.metadata_keys import EVICTABLE_VOLUMES, due
from webhook.policy.placement import PlacementPlan, SchedulingPlan
from webhook.policy.preemption.node_state import ReservedNodesAccess, undue
from webhook.policy.quota.demand import CLAIMED, claimed
from webhook.policy.values.tier_policy import Scheduling, TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.templates import TEMPLATE_CLASS
from webhook.policy.workloads.workload import Member

Operations = tuple[Operation, ...]
VOLUME = "gpu-tiers-checkpoint"
_NOTHING = SchedulingPlan()
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of_pod(pod: Pod, decision: Decision) -> Iterator[Operation]:
    """Yield the decision on a pod: priority fields, labels and annotations, hook, tolerations, placement, scheduler.

    The three priority fields agree, because the admission plugin Priority refuses any mix.
    """
    if decision.live is not None:
        yield from _priority(pod.spec, decision.live)
    asked, metadata = decision.tier_request, pod.metadata
    hook = decision.hook.plan if decision.hook else None
    marks = {key: text for each in (hook.volumes if hook else ()) for key, text in each.annotations.items()}
    if hook is not None:
        containers = [pod.spec.containers[index] for index in hook.containers]
        mounts = {mount.name for each in containers for mount in each.volume_mounts}
        if VOLUME in mounts.union(mount["name"] for each in containers for mount in _missing_mounts(each, hook)):
            # The author's list gets ours at its end. This is the only foreign annotation to which we add, because it is
            # a list: each entry keeps its text and its meaning, and no selector reads annotations. Without our entry a
            # list with all of the author's volumes would lose its effect: Cluster Autoscaler removes no node with an
            # emptyDir that the list lacks (getNonBlockingVolumes in its utils/drain splits at commas alone).
            listed_there = metadata.annotations.get(EVICTABLE_VOLUMES, "")
            names = listed_there.split(",") if listed_there else []
            marks[EVICTABLE_VOLUMES] = listed_there if VOLUME in names else ",".join((*names, VOLUME))

    # The leader counts a pod by these: the request of its claims, and its gang. The pod's controller may be that gang,
    # but any user who may edit pods can change the controller. A gang in a file has no uid. A mark that somebody else
    # wrote, or that was copied with the pod, is overwritten.
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
    """Yield our scheduling gate, unless the pod has it."""
    if not pod.waits_for_quota:
        yield from _items("/spec/schedulingGates", pod.spec.scheduling_gates, [{"name": QUOTA_GATE}])


def of_group(group: PodGroup, decision: Decision) -> Iterator[Operation]:
    """Yield a PodGroup's class and priority, disruptionMode, label and annotations; nothing without a class.

    Yield preemptionPolicy only if it has one already.
    """
    if decision.live is None:
        return
    yield from _priority(group.spec, decision.live)
    if decision.disruption_mode is not None:
        yield add("/spec/disruptionMode", decision.disruption_mode)
    yield from _marks(group.metadata, decision, {})


def of_scheduling_workload(found: SchedulingWorkload, decision: Decision) -> Iterator[Operation]:
    """Yield the class of each template, and the label and annotations of the Workload; nothing without a class.

    The priority is written when the PodGroup is created.
    """
    live = decision.live
    if live is None:
        return
    for field, template in found.templates():
        if template.priority_class_name != live.name:
            pointer = "/" + field.replace(".", "/").replace("[", "/").replace("]", "")
            yield add(f"{pointer}/priorityClassName", live.name)
    yield from _marks(found.metadata, decision, {})


def _priority(spec: PodSpec | PodGroupSpec, live: PriorityClass) -> Iterator[Operation]:
    wanted: dict[str, tuple[object, object]] = {
        "priorityClassName": (spec.priority_class_name, live.name),
        "priority": (spec.priority, live.value),
    }
    if isinstance(spec, PodSpec) or spec.preemption_policy is not None:
        wanted["preemptionPolicy"] = spec.preemption_policy, live.preemption_policy
    for field, (there, value) in wanted.items():
        if there != value:
            yield add(f"/spec/{field}", value)


def _marks(
    metadata: Metadata, decision: Decision, of_this_pod: Mapping[str, str], selects: frozenset[str] = frozenset()
) -> Iterator[Operation]:
    """Yield our tier label and annotations, and those for the tier's scheduler and Kueue that the object lacks.

    A label in `selects`, by which the pod's controller selects, is not written.
    """
    tier, of_scheduler = decision.assignment.tier, decision.scheduling or _NOTHING
    labels = {TIER_LABEL: tier.name, **of_scheduler.labels} if tier else {}
    annotations = {ASSIGNED_BY: str(assigned_by(decision.assignment)), **of_scheduler.annotations, **of_this_pod}
    if decision.queue_class is not None:
        labels[kueue.PRIORITY_CLASS] = annotations[kueue.QUEUE_CLASS] = decision.queue_class
    yield from entries("/metadata/labels", metadata.labels, due(metadata.labels, labels, selects))
    yield from entries("/metadata/annotations", metadata.annotations, due(metadata.annotations, annotations))


def _hook(pod: Pod, plan: HookPlan) -> Iterator[Operation]:
    """Yield the grace period, the variables, the preStop and mounts of each hooked container, and volumes."""
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


def _missing_mounts(container: Container, plan: HookPlan) -> list[dict[str, Any]]:
    """Return the missing mounts of a container.

    Each container has its own folder of the protocol, because two hooks would take each other's answer.
    """
    own = [{"name": VOLUME, "mountPath": plan.folder, "subPath": container.name}] if plan.folder else []
    mounted = {mount.mount_path.rstrip("/") for mount in container.volume_mounts}
    wanted = (*own, *(each.mount for each in plan.volumes))
    return [each for each in wanted if each["mountPath"].rstrip("/") not in mounted]


def _reserved_nodes(pod: Pod, access: ReservedNodesAccess) -> Iterator[Operation]:
    # 1. The tolerations of the taint of reserved nodes are those of its tier, whatever its author wrote.
    there, wanted = listed(pod.spec.tolerations), access.tolerations
    for place in undue(pod, wanted):
        yield {"op": "remove", "path": f"/spec/tolerations/{place}"}
    yield from _items("/spec/tolerations", there, [each for each in wanted if each not in there])
    if not access.needs_affinity(pod):
        return

    # 2. Each term of the required node affinity gets the expression, because a node has to match one of them. An empty
    #    term matches no node, and stays so.
    affinity, terms, expression = pod.spec.affinity, pod.spec.node_terms, access.expression
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
    """Add the plan to the spec. The plan has no field that the pod sets itself.

    The operations for `access` come before, so the affinity and the tolerations that it needs exist.
    """
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


def of_workload(
    tree: Tree, decision: WorkloadDecision, policy: TierPolicy, *, queued: bool, applied: bool, rank: str
) -> Iterator[Operation]:
    """Yield a workload's tier where Kueue, Volcano and readers of templates look for it.

    All keys of one map are collected first, so that an absent map is created once. `queued`: Kueue reads the workload's
    label. `applied`: a person wrote its templates. `rank` is the class by which Volcano is to rank it, "" for none.
    """
    own, labels, annotations = decision.own, dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    # 1. The label for Kueue, also on the templates into which Kueue would copy it later.
    due_class = kueue.workload_class_due(own, decision.assignment) if queued else None
    if due_class is not None and kueue.queues_workload(decision.facts, policy):
        copies = own.members if own.row.kueue == "Copies" else ()
        for path in ("", *(member.path for member in copies if _reaches(tree, member))):
            labels[path], annotations[path] = {kueue.PRIORITY_CLASS: due_class}, {kueue.QUEUE_CLASS: due_class}

    # 2. The class on each template that is ours and names no class, unless a template is out of reach. Each is marked.
    classes: dict[str, str] = {}
    if applied and policy.templates == "Mutate":
        placed = {id(member.template): member for member in own.members}
        members = [(placed[id(each.tier_request.pod)], each.live) for each in decision.decisions]
        if all(_reaches(tree, member) for member, _ in members):
            classes = {each.path: live.name for each, live in members if live and not class_asked(each.template)}
    if rank:
        classes[""] = rank
    for path, name in classes.items():
        annotations.setdefault(path, {})[TEMPLATE_CLASS] = name
        if at(at(tree, path), "spec.priorityClassName") != name:
            yield add(f"{_pointer(path)}/spec/priorityClassName", name)

    # 3. Labels and annotations, without values that the object has already.
    for path, marks in annotations.items():
        there, where = at(at(tree, path), "metadata"), f"{_pointer(path)}/metadata"
        wanted = {"labels": labels.get(path, {}), "annotations": marks}
        if not isinstance(there, dict):
            yield add(where, {kind: each for kind, each in wanted.items() if each})
            continue
        for kind, each in wanted.items():
            written = there.get(kind) or {}
            yield from entries(f"{where}/{kind}", written, due(written, each))


def _reaches(tree: Tree, member: Member) -> bool:
    """Tell whether a template is in the object itself, complete, and only below maps."""
    return member.form == "template" and isinstance(at(at(tree, member.path), "spec"), dict)


def _pointer(path: str) -> str:
    return "".join(f"/{escaped(step)}" for step in steps(path))


def volcano_queue(tree: Tree, decision: WorkloadDecision, policy: TierPolicy) -> Iterator[Operation]:
    """Yield the tier's queue for a Job that names none; its PodGroup and its pods get it from there.

    Volcano's own webhook, which the API server asks before ours, fills in `default`.
    """
    tier, there = decision.assignment.tier, at(tree, "spec.queue")
    wanted = policy.scheduling.get(tier.name, Scheduling()).queue if tier else None
    if wanted is None or wanted.system != "Volcano":
        return
    if not there or (there == "default" and is_filled_in(tree, "spec", "queue")):
        yield add("/spec/queue", wanted.name)


def entries(path: str, there: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[Operation]:
    """Yield keys of a map that may be absent, because an `add` below an absent map fails the patch with status 500."""
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
