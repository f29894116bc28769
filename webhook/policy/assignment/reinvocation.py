"""The assignment of a pod that may have passed the webhook already: sees through our own marks, trusts none of them.

The API server calls a mutating webhook again after others, and the validating one after all. By then the pod bears
the label and the class that we wrote. The assigned-by annotation says how they came there; anyone can write it, so
it counts only where the same line comes out again without them. Then a forgery gains nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from webhook.objects.refusal import Refused
from webhook.policy.assignment.limits import acceptable, within_limits
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.assignment.steps import assign

ASSIGNED_BY = "gpu-tiers.dev/assigned-by"
_DEMOTED = "; demoted from "


def settle(request: TierRequest) -> Assignment:
    """The assignment within its limits, the same at every pass. Raises Refused."""
    claim = request.pod.metadata.annotations.get(ASSIGNED_BY)
    recalled = _recalled(request, claim) if claim else None
    return recalled or _decided(request)


def _decided(request: TierRequest) -> Assignment:
    return within_limits(assign(request), request)


def _recalled(request: TierRequest, claim: str) -> Assignment | None:
    line, _, demoted_from = claim.partition(_DEMOTED)
    for unmarked in _before_our_marks(request, demoted_from):
        try:
            found = _decided(unmarked)
        except Refused:
            continue
        marked = _as_marked(found, request, demoted_from) if str(found) == line else None
        if marked is not None:
            return marked
    return None


def _before_our_marks(request: TierRequest, demoted_from: str) -> Iterator[TierRequest]:
    """What the pod may have looked like before: without our label, our class, or with the tier it was demoted from."""
    for label in dict.fromkeys((None, request.label, demoted_from or None)):
        for class_name in dict.fromkeys(("", request.class_name, demoted_from)):
            yield replace(request, label=label, class_name=class_name)


def _as_marked(found: Assignment, request: TierRequest, demoted_from: str) -> Assignment | None:
    """The finding, where the marks on the pod are the ones it would have made."""
    if not demoted_from:
        return found if request.label == (found.tier.name if found.tier else None) else None
    lower, tenant = request.policy.tiers.get(request.label or ""), request.facts.tenant
    if lower not in acceptable(request) or tenant is None or tenant.on_exceed != "Demote":
        return None
    if found.tier is None or found.tier.name != demoted_from or lower.value >= found.tier.value:
        return None
    return replace(found, tier=lower, demoted_from=demoted_from)
