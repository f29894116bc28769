"""Which scheduler places a pod, from which of its queues, and what KAI is told: all as far as the pod names none.

Volcano makes a PodGroup of a pod that is in none, in the queue that the pod's annotation names (createNormalPodPG of
its podgroup controller). KAI does so for every pod, by labels of its owners and then of the pod, and takes whatever has
a priority of 100 or more for non-preemptible, as all tiers would be (GetPodGroupMetadata of its pod grouper).
"""

from collections.abc import Iterator, Mapping

import msgspec

from webhook.objects.pods import Pod
from webhook.policy.placement.plan import node_chosen
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Queue, Scheduling, TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload import gang_among

UNNAMED = ("", "default-scheduler")
"""The API server writes the latter where a pod names no scheduler, before any webhook sees the pod."""

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""A pod that bears this annotation is in a PodGroup already, and that names the queue."""

KAI_QUEUE = "kai.scheduler/queue"
_KAI_PROJECT = "project"
"""Without a queue's name KAI takes the queue of this name."""
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"


class SchedulingPlan(msgspec.Struct, frozen=True):
    """What is added to a pod. `scheduler` is "" where it keeps its own."""

    scheduler: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


def plan_scheduling(pod: Pod, facts: Facts, policy: TierPolicy, tier: Tier) -> SchedulingPlan:
    """What a pod of that tier gets. A pod that needs no scheduler gets nothing."""
    if node_chosen(pod, facts):
        return SchedulingPlan()
    wanted = policy.scheduling.get(tier.name, Scheduling())
    # All pods of a gang need the same: where one of its templates names a scheduler, each keeps its own. So does a pod
    # of a PodGroup of Kubernetes, which no other scheduler knows.
    gang = gang_among(facts.owners)
    named = (member.template.spec.scheduler_name for member in gang.members) if gang else ()
    ours = pod.spec.scheduling_group is None and pod.spec.scheduler_name in UNNAMED
    scheduler = wanted.scheduler if (ours and all(name in UNNAMED for name in named)) else ""
    match policy.systems.get(scheduler or pod.spec.scheduler_name):
        case "Volcano":
            return SchedulingPlan(scheduler, annotations=dict(_for_volcano(pod, wanted.queue)))
        case "KAI":
            labels = (*_queue_for_kai(pod, facts, wanted.queue), *_preemptibility(pod, facts, policy, tier))
            return SchedulingPlan(scheduler, labels=dict(labels))
    return SchedulingPlan(scheduler)


def _for_volcano(pod: Pod, queue: Queue | None) -> Iterator[tuple[str, str]]:
    named = {VOLCANO_QUEUE, _VOLCANO_GROUP} & pod.metadata.annotations.keys()
    if queue is not None and queue.system == "Volcano" and not named:
        yield VOLCANO_QUEUE, queue.name


def _queue_for_kai(pod: Pod, facts: Facts, queue: Queue | None) -> Iterator[tuple[str, str]]:
    outermost = facts.owners[-1].labels if facts.owners else {}
    named = {KAI_QUEUE, _KAI_PROJECT} & {*pod.metadata.labels, *outermost}
    if queue is not None and queue.system == "KAI" and not named:
        yield KAI_QUEUE, queue.name


def _preemptibility(pod: Pod, facts: Facts, policy: TierPolicy, tier: Tier) -> Iterator[tuple[str, str]]:
    """A tier that another one evicts is preemptible. Of the highest KAI decides, as of what a person has labelled."""
    evicted = any(each.value > tier.value and each.preemption_policy != "Never" for each in policy.tiers)
    labels = (pod.metadata.labels, *(owner.labels for owner in facts.owners))
    if evicted and not any(KAI_PREEMPTIBILITY in each for each in labels):
        yield KAI_PREEMPTIBILITY, "preemptible"
