"""What Volcano is told of a Job at its CREATE: the queue of its tier, and its rank.

Volcano ranks Jobs by the class of their PodGroups alone, which it takes from the Job's `spec.priorityClassName`. A Job
without one has the priority of the cluster's default class, whatever its pods have (Volcano's priority plugin).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from webhook.admission.gang_booking import gang_booking
from webhook.admission.review import Operation, Request
from webhook.ledger.protocol import Ledger
from webhook.objects.field_paths import at
from webhook.objects.group_kind import GroupKind
from webhook.policy.decide_workload import WorkloadDecision, lower_tiers
from webhook.policy.quota.charges import Shortfall, shortfall
from webhook.policy.values.scheduling import Queue, Scheduling
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import live_class

KIND = GroupKind("batch.volcano.sh", "Job")

Tree = dict[str, Any]


def queue(tree: Tree, decision: WorkloadDecision, policy: TierPolicy) -> Iterator[Operation]:
    """The queue of its tier for a Job that names none; its PodGroup and its pods get it from there.

    Volcano's own webhook, which comes before ours, fills in `default`. What a person wrote stands in managedFields.
    """
    tier, there = decision.assignment.tier, at(tree, "spec.queue")
    wanted = _queue_of(policy.scheduling.get(tier.name, Scheduling())) if tier else None
    if wanted is None:
        return
    fields = at(tree, "metadata.managedFields")
    written = [at(each, "fieldsV1.f:spec.f:queue") for each in fields] if isinstance(fields, list) else []
    filled_in = there == "default" and bool(written) and all(each is None for each in written)
    if not there or filled_in:
        yield {"op": "add", "path": "/spec/queue", "value": wanted.name}


async def rank(request: Request, decision: WorkloadDecision, ledger: Ledger) -> str:
    """The class by which Volcano is to rank a Job; "" where a person has named one, or it has no tier.

    Of one that its tenant's quota demotes, the class of the tier to which it will be, by what is booked at this moment.
    """
    live, of_pods, tenant = decision.leading.live, decision.leading.tier_request, decision.facts.tenant
    if live is None or decision.own.class_name:
        return ""
    short = await _shortfall(request, decision, tenant, ledger) if tenant and tenant.demotes else None
    lower = next(lower_tiers(decision, short), None) if short else None
    if lower is None:
        return live.name
    return live_class(lower, of_pods.facts.classes, adoption=of_pods.policy.adoption).name


async def _shortfall(request: Request, decision: WorkloadDecision, tenant: Tenant, ledger: Ledger) -> Shortfall | None:
    """Where the whole has no room; of what is no gang, the first of its pods."""
    if decision.gang is None:
        charge, of_one = decision.leading.charge, decision.leading.least
        one_pod = replace(charge, gpus=of_one.gpus) if charge and of_one else charge
        return shortfall([one_pod], tenant, ledger.usage(tenant, decision.shared)) if one_pod else None
    answer = await ledger.book(gang_booking(request, decision.gang, tenant), dry_run=True)
    return answer if isinstance(answer, Shortfall) else None


def _queue_of(scheduling: Scheduling) -> Queue | None:
    return scheduling.queue if scheduling.queue and scheduling.queue.system == "Volcano" else None
