"""Warnings on how a workload's type was told, with the one label that settles it."""

from collections.abc import Iterator

from webhook.policy.assignment.defaulted import held_back
from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.values.warning_texts import said


def type_warnings(request: TierRequest, assignment: Assignment) -> Iterator[str]:
    """A guess that was held back, or a type that nothing tells; nothing where a person named the tier."""
    given = assignment.tier
    if given is None or assignment.asked or not request.holds_gpus:
        return
    others = [tier for tier in acceptable(request) if tier != given]
    better = held_back(request)
    if request.evidence and assignment.step in _WE_CHOSE and better in others and better.value > given.value:
        clue, workload_type = request.evidence.text, request.evidence.type
        yield said("guess-held-back", clue=clue, type=workload_type, tier=better.name)
    elif request.evidence is None and assignment.step == "policy-default" and others:
        yield said("type-unknown", tier=given.name, tiers=_either([tier.name for tier in others]))


def _either(names: list[str]) -> str:
    *all_but_last, last = names
    return f"{', '.join(all_but_last)} or {last}" if all_but_last else last


_WE_CHOSE = ("workload-type", "namespace-default", "policy-default")
