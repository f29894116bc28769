"""The fields that a tier adds to a pod for schedulers and autoscalers: nodes, neighbours, the queue, protection.

Only fields that the pod does not set are added, so a second pass adds nothing. A gang's pods are close together (Pack),
replicas are apart (Spread). Both are wishes to the scheduler and never keep a pod from running. Both name the node in
addition to the tier's topology key: a gang fits best on few nodes of one rack, and replicas that share a rack want two
nodes. A label that all pods of a gang have identifies the gang. The operator that makes the pods writes it.

Volcano makes a PodGroup for a pod without one, in the queue of the pod's annotation (createNormalPodPG of its podgroup
controller). KAI does so for every pod, by labels of its owners and then of the pod. It treats a priority of 100 or more
as non-preemptible, as all tiers of our presets have (GetPodGroupMetadata of its pod grouper).

Annotations tell autoscalers whether they may remove the node. Karpenter takes "true", or since v1.12 how long the pod
is protected from its start; no value allows the removal. Source:
https://karpenter.sh/preview/reference/annotations/

Cluster Autoscaler takes "false", for the pod's whole life. "true" also lets it end pods that it spares by default:
those with local storage, and those without a controller, which nobody would create again. Source:
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-types-of-pods-can-prevent-ca-from-removing-a-node
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from webhook.objects.pods import Pod
from webhook.objects.view import Tree, listed
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Placement, Scheduling, TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.workload import Workload, gang_among

HOSTNAME = "kubernetes.io/hostname"
_REVISIONS = ("pod-template-hash", "rollouts-pod-template-hash")
"""Labels of one revision's replicas (Deployment; Argo Rollout). A rollout must not mix revisions."""
_WEIGHTS = (100, 50)

_NARROWER: Mapping[str, str] = {
    # https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go
    "leaderworkerset.sigs.k8s.io/name": "leaderworkerset.sigs.k8s.io/group-key",
}
"""Labels that span several gangs, each with the label that separates them."""

_GROUPS = ("scheduling.x-k8s.io/pod-group", "kueue.x-k8s.io/pod-group-name")
"""Labels that people write on pods of one group: Coscheduling's, Kueue's."""

_OF_ONE_POD = frozenset({"paddle-res-name"})
"""Labels with another value on each pod (https://github.com/PaddleFlow/paddle-operator)."""


class GangLabel(msgspec.Struct, frozen=True):
    """The pods with one value of a label. `size` is their number if the workload says it, or 0."""

    key: str
    value: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def gang_label_of(labels: Mapping[str, str], owners: Sequence[Workload], kinds: KindTable) -> GangLabel | None:
    """Return the gang of a pod with these labels, its owners the nearest first; None if no label identifies it."""
    # 1. The labels that may identify the gang, the best first, each with the gang's size: those of the workload that
    #    is a gang, then those of the nearest owner. Trials of an Experiment are no gang, nor are steps of a pipeline.
    gang, candidates = gang_among(owners), list[tuple[str, int]]()
    for owner in (*([gang] if gang else []), *(owner for owner in owners if owner.row.at_once)):
        size, row = sum(member.count for member in owner.members), owner.row
        # An operator's label with a fixed value is on all pods of the kind.
        named = (key for key, value in row.labels.items() if value is None and key not in _OF_ONE_POD)
        candidates += ((key, size) for key in (row.gang_label, *named) if key)
    candidates += ((key, 0) for key in (*(() if owners else sorted(kinds.gang_labels)), *_GROUPS))

    # 2. The first of them that the pod has.
    for key, size in candidates:
        narrower = _NARROWER.get(key, key)
        if narrower in labels:
            return GangLabel(narrower, labels[narrower], size if narrower == key else 0)
        if key in labels:
            return GangLabel(key, labels[key], size)
    return None


def siblings_of(labels: Mapping[str, str], facts: Facts, kinds: KindTable) -> Tree | None:
    """Return the selector of the nearest owner's replicas: its template's labels, a revision's by matchLabelKeys.

    If the pod lacks labels of each template, the gang's label selects them. None without such a label.
    """
    members = facts.owners[0].members if facts.owners else ()
    templates = (member.template.metadata.labels for member in members)
    common = next((each for each in templates if each and each.items() <= labels.items()), {})
    revision = [key for key in _REVISIONS if key in labels]
    selected = {key: value for key, value in common.items() if key not in revision}
    if not selected and (gang_label := gang_label_of(labels, facts.owners, kinds)):
        selected = {gang_label.key: gang_label.value}
    if not selected:
        return None
    return {"labelSelector": {"matchLabels": selected}} | ({"matchLabelKeys": revision} if revision else {})


class PlacementPlan(msgspec.Struct, frozen=True):
    """The fields that are added to a pod; `said` sums up the strategy's effect and its reason."""

    said: str = ""
    pod_affinity: Tree | None = None
    spread_constraints: list[Tree] | None = None
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = msgspec.field(default_factory=dict)
    active_deadline_seconds: int | None = None


def plan_placement(pod: Pod, facts: Facts, kinds: KindTable, placement: Placement) -> PlacementPlan:
    """Return the fields that a placement adds to a pod, without those that the pod sets itself."""
    # A toleration without a key is for every taint, and one without an effect for all effects.
    own = [
        tuple(each.get(field) or None for field in ("key", "effect"))
        for each in listed(pod.spec.tolerations)
        if isinstance(each, dict)
    ]
    missing = tuple(
        each
        for each in placement.tolerations
        if not any(key in (None, each.get("key")) and effect in (None, each.get("effect")) for key, effect in own)
    )
    strategy, plan = placement.strategy, PlacementPlan()
    if strategy is not None and node_chosen(pod, facts):
        plan = PlacementPlan(f"{strategy} changes nothing: its node is chosen already")
    elif strategy is not None:
        plan = _neighbours(pod, facts, kinds, placement)
    return msgspec.structs.replace(
        plan,
        tolerations=missing,
        node_selector=missing_node_selector(pod, facts, placement.node_selector),
        active_deadline_seconds=None if pod.spec.active_deadline_seconds else placement.max_runtime,
    )


def _neighbours(pod: Pod, facts: Facts, kinds: KindTable, placement: Placement) -> PlacementPlan:
    """Return the fields of the strategy Pack or Spread; only `said` if it changes nothing."""
    # 1. Pack needs a label of the gang, and Spread one of the replicas.
    labels, topology_key = pod.metadata.labels, placement.topology_key
    keys = tuple(dict.fromkeys((topology_key, HOSTNAME)))
    if placement.strategy == "Pack":
        gang = gang_label_of(labels, facts.owners, kinds)
        if gang is None and facts.owners:
            wanted = PlacementPlan(f"Pack changes nothing: no label is known that all pods of {facts.owners[-1]} bear")
        elif gang is None:
            wanted = PlacementPlan("Pack changes nothing: the pod has no owner")
        elif gang.size == 1:
            wanted = PlacementPlan(f"Pack changes nothing: {gang} is a single pod")
        else:
            selector = {"labelSelector": {"matchLabels": {gang.key: gang.value}}}
            terms = [
                {"weight": weight, "podAffinityTerm": {**selector, "topologyKey": key}}
                for weight, key in zip(_WEIGHTS, keys, strict=False)
            ]
            affinity_to_gang = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
            wanted = PlacementPlan(f"Pack by {topology_key} with {gang}", affinity_to_gang)
    elif member := next((key for key in labels if key in kinds.gang_labels), None):
        wanted = PlacementPlan(f"Spread changes nothing: the pod is one of a gang, by its label {member}")
    elif siblings := siblings_of(labels, facts, kinds):
        shown = ", ".join(f"{key}={value}" for key, value in siblings["labelSelector"]["matchLabels"].items())
        rule = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **siblings}
        rules = [{"topologyKey": key, **rule} for key in keys]
        wanted = PlacementPlan(f"Spread by {topology_key} from {shown}", None, rules)
    else:
        wanted = PlacementPlan("Spread changes nothing: no label is known that only its replicas bear")

    # 2. Fields that a person or a controller has set stay. A pod with exactly the wanted fields got them in an earlier
    #    pass.
    affinity, constraints = pod.spec.affinity, pod.spec.topology_spread_constraints or None
    own = (each for each in (affinity.pod_affinity, affinity.pod_anti_affinity) if isinstance(each, dict))
    if not constraints and not any(any(each.values()) for each in own):
        return wanted
    there = affinity.pod_affinity or None, constraints
    if any(there) and there == (wanted.pod_affinity, wanted.spread_constraints):
        return PlacementPlan(wanted.said)
    return PlacementPlan(f"{placement.strategy} changes nothing: the pod says itself how it lies to other pods")


ON_EVERY_NODE = "DaemonSet"
"""The kind whose controller chooses the node before its pod is created, in any API group."""


def missing_node_selector(pod: Pod, facts: Facts, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Return the node labels of a tier whose keys the pod's node selector and required node affinity lack.

    None are returned for a pod whose node is chosen already.
    """
    if not wanted or node_chosen(pod, facts):
        return {}
    lines = (line for term in pod.spec.node_terms for line in term.match_expressions)
    said = {line.key for line in lines} | pod.spec.node_selector.keys()
    return {key: value for key, value in wanted.items() if key not in said}


def node_chosen(pod: Pod, facts: Facts) -> bool:
    """Tell whether no scheduler chooses this pod's node: the pod names it, or runs on every node."""
    return bool(pod.spec.node_name) or on_every_node(pod, facts)


def on_every_node(pod: Pod, facts: Facts) -> bool:
    controller = pod.metadata.controller
    nearest = controller.kind if controller else facts.owners[0].row.kind if facts.owners else ""
    return nearest == ON_EVERY_NODE


UNNAMED = ("", "default-scheduler")
"""The scheduler names of pods that name none. The API server writes the second before any webhook sees the pod."""

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""A pod with this annotation is in a PodGroup already, and the group names the queue."""

KAI_QUEUE = "kai.scheduler/queue"
_KAI_PROJECT = "project"
"""Without a queue's name KAI uses the queue with this label's value."""
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"


class SchedulingPlan(msgspec.Struct, frozen=True):
    """The fields that are added to a pod. `scheduler` is "" where it keeps its own."""

    scheduler: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


def plan_scheduling(pod: Pod, facts: Facts, policy: TierPolicy, tier: Tier) -> SchedulingPlan:
    """Return the fields for a pod of that tier; none if the pod needs no scheduler."""
    if node_chosen(pod, facts):
        return SchedulingPlan()
    wanted = policy.scheduling.get(tier.name, Scheduling())
    # All pods of a gang need the same scheduler: if one of its templates names a scheduler, each keeps its own. A pod
    # of Kubernetes' own PodGroup also keeps its scheduler, because no other scheduler knows the group.
    gang = gang_among(facts.owners)
    named = (member.template.spec.scheduler_name for member in gang.members) if gang else ()
    ours = pod.spec.scheduling_group is None and pod.spec.scheduler_name in UNNAMED
    scheduler = wanted.scheduler if (ours and all(name in UNNAMED for name in named)) else ""
    queue, labels, annotations = wanted.queue, dict[str, str](), dict[str, str]()
    match policy.systems.get(scheduler or pod.spec.scheduler_name):
        case "Volcano":
            chosen = {VOLCANO_QUEUE, _VOLCANO_GROUP} & pod.metadata.annotations.keys()
            if queue is not None and queue.system == "Volcano" and not chosen:
                annotations[VOLCANO_QUEUE] = queue.name
        case "KAI":
            borne = (pod.metadata.labels, *(owner.labels for owner in facts.owners))
            chosen = {KAI_QUEUE, _KAI_PROJECT} & {*borne[0], *borne[-1]}
            if queue is not None and queue.system == "KAI" and not chosen:
                labels[KAI_QUEUE] = queue.name
            # A tier that another one evicts is preemptible. KAI decides for the highest tier, and a person for any.
            evicted = any(each.value > tier.value and each.preemption_policy != "Never" for each in policy.tiers)
            if evicted and not any(KAI_PREEMPTIBILITY in each for each in borne):
                labels[KAI_PREEMPTIBILITY] = "preemptible"
    return SchedulingPlan(scheduler, labels, annotations)


KARPENTER = "karpenter.sh/do-not-disrupt"
CLUSTER_AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
MOST_SHOWN = 40
"""Characters of the author's value."""


class AutoscalerPlan(msgspec.Struct, frozen=True):
    """The annotations that a pod lacks. `said` sums up those that it will have, and its author's that stay."""

    said: str
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


NO_PLAN = AutoscalerPlan("")


def plan_autoscaler(pod: Pod, facts: Facts, wanted: str) -> AutoscalerPlan:
    """Return the annotations for a pod whose tier wants `Protect`, `Allow`, or a protection for so long (24h)."""
    # 1. Each autoscaler has its own words. A DaemonSet's pod ends with its node, and would keep every node.
    if on_every_node(pod, facts):
        return AutoscalerPlan(f"{wanted} changes nothing: a pod of a DaemonSet ends with its node")
    if wanted != "Allow":
        written = {KARPENTER: "true" if wanted == "Protect" else wanted, CLUSTER_AUTOSCALER: "false"}
    elif pod.metadata.controller or facts.owners:
        written = {CLUSTER_AUTOSCALER: "true"}
    else:
        return AutoscalerPlan("Allow changes nothing: the pod has no controller that would create it again")

    # 2. An author's annotation stays, each by itself.
    there = pod.metadata.annotations
    own = [key for key in (KARPENTER, CLUSTER_AUTOSCALER) if key in there and there[key] != written.get(key)]
    added = ", ".join(f"{key}={value}" for key, value in written.items() if key not in own)
    stays = "".join(f"; the pod's own {key}={there[key][:MOST_SHOWN]} stays" for key in own)
    return AutoscalerPlan(
        f"{wanted}: {added or 'adds nothing'}{stays}",
        {key: value for key, value in written.items() if key not in there},
    )
