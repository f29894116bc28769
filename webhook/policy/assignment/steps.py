"""The steps by which a pod gets its tier: the first that finds one decides."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from webhook.policy.assignment.defaulted import by_default, by_namespace, by_type, held_back
from webhook.policy.assignment.explicit import by_class, by_group, by_label, by_rule
from webhook.policy.assignment.limits import within_limits
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.values.tiers import NONPREEMPTING

STEPS: tuple[tuple[str, Callable[[TierRequest], Assignment | None]], ...] = (
    ("group", by_group),
    ("label", by_label),
    ("rule", by_rule),
    ("class", by_class),
    ("workload-type", by_type),
    ("namespace-default", by_namespace),
    ("policy-default", by_default),
)
"""What somebody named comes before what we choose. A PodGroup comes first, since its pods must share its tier."""


def assign(request: TierRequest) -> Assignment:
    """The tier of the first step that finds one, within its limits.

    Raises Refused where a person asked for a tier that doesn't exist, contradicts another field, or isn't allowed.
    """
    return within_limits(_first(request), request)


def _first(request: TierRequest) -> Assignment:
    trace = []
    for name, step in STEPS:
        found = step(request)
        aside = _held_back(request) if name == "workload-type" else ""
        trace.append(f"{name}: {found.reason if found else '-'}{aside}")
        if found is not None:
            warnings = (*found.warnings, *_replaced(found, request))
            return replace(found, step=name, evidence=request.evidence, trace=tuple(trace), warnings=warnings)
    raise AssertionError("the default tier is the last step and always finds one")


def _held_back(request: TierRequest) -> str:
    """What the trace says of a guess that is too weak to raise the tier."""
    evidence, policy = request.evidence, request.policy
    if evidence is None or held_back(request) is None:
        return ""
    grade, needed = evidence.grade.name.lower(), policy.raise_by.name
    return f" ({evidence}, is {grade}: too weak to raise the tier, raiseBy is {needed})"


def _replaced(found: Assignment, request: TierRequest) -> Iterator[str]:
    """The warning that a class gives way to a rule, or to a policy that replaces classes outside the tiers."""
    if found.tier is None or not request.class_name:
        return
    twin = request.class_name.endswith(NONPREEMPTING) and not request.policy.adoption
    if twin:
        yield f"priorityClassName {request.class_name} is for adoption, which is off: replaced by {found.tier.name}"
    elif request.policy.tiers.of_class(request.class_name) != found.tier:
        yield f"priorityClassName {request.class_name} is replaced by {found.tier.name} ({found.reason})"
