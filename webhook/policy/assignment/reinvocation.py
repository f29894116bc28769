"""The assignment of a pod that has passed the webhook already (reinvocationPolicy: IfNeeded, then validation).

Such a pod bears the label and the class that we wrote. The assigned-by annotation says how they came there. Anybody
can write it, so it counts only where the same line comes out again without our marks: a forgery gains nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from webhook.objects.refusal import Refused
from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import ASSIGNED_BY, Assignment, TierRequest
from webhook.policy.assignment.steps import assign

_DEMOTED = "; demoted from "


def earlier_assignment(request: TierRequest, assigned_by: str) -> Assignment | None:
    """The assignment of an earlier pass, by the annotation that it wrote; None where the annotation isn't ours."""
    line, _, higher = assigned_by.partition(_DEMOTED)
    for unmarked in _before_our_marks(request, higher):
        try:
            found = assign(unmarked)
        except Refused:
            continue
        marked = _as_marked(found, request, higher) if str(found) == line else None
        if marked is not None:
            return marked
    return None


def demoted_from(annotations: Mapping[str, str]) -> str:
    """The tier from which our annotation says that its object was demoted; "" where it says nothing of it."""
    return annotations.get(ASSIGNED_BY, "").partition(_DEMOTED)[2]


def _before_our_marks(request: TierRequest, higher: str) -> Iterator[TierRequest]:
    """What the pod may have been before: without our label, without our class, or with the tier it was demoted from."""
    for label in dict.fromkeys((None, request.label, higher or None)):
        for class_name in dict.fromkeys(("", request.class_name, higher)):
            yield replace(request, label=label, class_name=class_name)


def _as_marked(found: Assignment, request: TierRequest, higher: str) -> Assignment | None:
    """The assignment, where the marks on the pod are the ones it would have made."""
    if not higher:
        return found if request.label == (found.tier.name if found.tier else None) else None
    lower, tenant = request.policy.tiers.get(request.label or ""), request.facts.tenant
    if lower not in acceptable(request) or tenant is None or tenant.on_exceed != "Demote":
        return None
    if found.tier is None or found.tier.name != higher or lower.value >= found.tier.value:
        return None
    return replace(found, tier=lower, demoted_from=higher)
