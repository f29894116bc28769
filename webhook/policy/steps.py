"""Which tier a pod or a workload gets: the first step that finds one; never whether there is room for it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from webhook.policy.assignment import Ask, Assignment
from webhook.policy.by_choice import by_default, by_namespace, by_type
from webhook.policy.by_name import by_class, by_group, by_label, by_rule
from webhook.policy.tiers import NONPREEMPTING

STEPS: tuple[tuple[str, Callable[[Ask], Assignment | None]], ...] = (
    ("group", by_group),
    ("label", by_label),
    ("rule", by_rule),
    ("class", by_class),
    ("workload-type", by_type),
    ("namespace-default", by_namespace),
    ("policy-default", by_default),
)
"""What somebody named comes before what we choose; a PodGroup comes first, since its pods have no choice."""


def assign(ask: Ask) -> Assignment:
    """The first step that finds a tier. Raises Refused where what was asked for names no tier or contradicts itself."""
    trace = []
    for name, step in STEPS:
        found = step(ask)
        trace.append(f"{name}: {found.reason if found else _silence(name, ask)}")
        if found is not None:
            warnings = (*found.warnings, *_replaced(found, ask))
            return replace(found, step=name, evidence=ask.evidence, trace=tuple(trace), warnings=warnings)
    raise AssertionError("the default tier is the last step and always finds one")


def _silence(step: str, ask: Ask) -> str:
    """Why a step says nothing, where a person would wonder: the policy has a tier for the type, and it isn't given."""
    evidence = ask.evidence
    if step != "workload-type" or evidence is None or not ask.policy.tier_of_type.get(evidence.type):
        return "-"
    return f"- ({evidence.type} is a guess, which never raises)"


def _replaced(found: Assignment, ask: Ask) -> Iterator[str]:
    """Said where a class that a person wrote gives way to a rule, or to a policy that replaces what is no tier's."""
    if found.tier is None or not ask.class_name:
        return
    twin = ask.class_name.endswith(NONPREEMPTING) and not ask.policy.adoption
    if twin or ask.policy.tiers.of_class(ask.class_name) != found.tier:
        yield f"priorityClassName {ask.class_name} is replaced by {found.tier.name} ({found.reason})"
