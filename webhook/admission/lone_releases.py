"""The update by which Kueue lets run a workload that is no gang.

Its pods are booked one by one, and would be refused out of Kueue's sight: it would keep its own quota for them.
"""

from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Booked, Booking, Ledger
from webhook.objects.pods import Named
from webhook.objects.view import read
from webhook.policy.assignment.kueue import QUEUE_NAME, queues_workload
from webhook.policy.assignment.limits import acceptable
from webhook.policy.decide import pod_fit
from webhook.policy.decide_workload import WorkloadDecision, lower_tiers
from webhook.policy.values.tier_policy import TierPolicy


async def looked_at(
    verdict: Verdict, decision: WorkloadDecision, request: Request, ledger: Ledger, policy: TierPolicy
) -> Verdict:
    """The verdict, refused if its tenant's rows have no room now for what Kueue queues. Nothing is booked."""
    first, own, tenant = decision.decisions[0].tier_request, decision.own, decision.facts.tenant
    charges = tuple(each.charge for each in decision.decisions if each.charge)
    if tenant is None or not any(tenant.charges(each.gpus) for each in charges):
        return verdict
    if QUEUE_NAME not in own.labels and not queues_workload(decision.facts, policy):
        return verdict
    holder = read(request.object, Named).metadata.uid or request.uid
    answer = await ledger.book(Booking(holder, request.namespace, tenant, charges), dry_run=True)
    if isinstance(answer, Booked) or any(lower_tiers(decision, answer)):
        return verdict
    return verdict.fitted(pod_fit(answer, tenant, acceptable(first), what=f"this {own.kind}"))
