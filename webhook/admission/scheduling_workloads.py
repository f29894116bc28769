"""Reviews of Kubernetes' own Workloads at CREATE: PodGroups are made of their templates, which are immutable."""

from webhook.admission import patch
from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import facts_of
from webhook.admission.podgroups import group_verdict
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.objects.refusal import Reason
from webhook.objects.scheduling_workloads import SchedulingWorkload
from webhook.objects.view import read
from webhook.policy.decide_scheduling_workload import (
    class_missing,
    decide_scheduling_workload,
    priority_disagrees,
    templates_disagree,
)
from webhook.policy.values.tier_policy import TierPolicy


async def mutate(request: Request, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """The class of its templates as a patch. One that a controller made stays: its PodGroups are told by their owner.

    Templates that differ are refused already here. The API server of 1.37 refuses them before it asks the validating
    webhook, and does not name them.
    """
    found = read(request.object, SchedulingWorkload)
    if (problem := templates_disagree(found, policy)) is not None:
        return Verdict(refusal=problem, reason=Reason.CONTRADICTION)
    if found.metadata.controller is not None:
        return Verdict()
    facts = await facts_of(found.metadata, request.namespace, cluster, policy)
    decision = decide_scheduling_workload(found, facts, policy)
    if decision is None:
        return Verdict()
    return group_verdict(decision, operations=tuple(patch.of_scheduling_workload(found, decision)))


async def validate(request: Request, cluster: Cluster, policy: TierPolicy) -> Verdict:
    """Whether PodGroups can be made of it. One that bears no tier is let in: its PodGroups get theirs."""
    found = read(request.object, SchedulingWorkload)
    if (problem := templates_disagree(found, policy)) is not None:
        return Verdict(refusal=problem, reason=Reason.CONTRADICTION)
    facts = await facts_of(found.metadata, request.namespace, cluster, policy)
    decision, missing = decide_scheduling_workload(found, facts, policy), class_missing(found, facts, policy)
    if decision is None:
        return Verdict(warnings=(missing,) if missing else ())
    return group_verdict(decision, refusal=missing or priority_disagrees(found, decision))
