"""Finds contradictions between fields of the policy file, such as unknown and duplicate names."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.config.errors import steps_to
from webhook.config.model import PolicyFile
from webhook.objects.view import Tree
from webhook.policy.workloads.kind_table import BUILT_IN


def crosscheck(file: PolicyFile) -> list[str]:
    """Every contradiction between fields, each with its path."""
    checks = (_missing, _duplicates, _reserved_names, _unknown_tiers, _unknown_kinds, _contradictions)
    return [problem for check in checks for problem in check(file)]


REFERRED_TO = ("tiers", "kinds")
"""Lists whose names stand in other fields: while one is misspelt, what names an entry of it is no mistake."""


def crosschecked_rest(tree: Tree, errors: Iterable[ErrorDetails]) -> list[str]:
    """The contradictions between the fields of a file that have none of these errors, where that can be told."""
    rest = deepcopy(tree)
    if not all(_dropped(rest, steps_to(each)) for each in errors):
        return []
    try:
        return crosscheck(PolicyFile.model_validate(rest))
    except ValidationError:
        return []


def _dropped(tree: Tree, path: Sequence[int | str]) -> bool:
    """Leaves a field out of a tree; False where it can't be, or where others then name what is not there."""
    holder: Any = tree
    try:
        for step in path[:-1]:
            holder = holder[step]
        if isinstance(holder, list) or (holder is tree and get_close_matches(str(path[-1]), REFERRED_TO)):
            return False
        del holder[path[-1]]
    except (LookupError, TypeError):
        return False
    return True


def _missing(file: PolicyFile) -> Iterator[str]:
    if not file.tiers:
        yield "tiers: at least one is required"
    if not file.resources:
        yield "resources: at least one is required, or nothing counts as a GPU"


def _duplicates(file: PolicyFile) -> Iterator[str]:
    yield from _twice("tiers[{}].name", (tier.name for tier in file.tiers), "another tier has that name")
    yield from _twice("tiers[{}].value", (tier.value for tier in file.tiers), "another tier has that value")
    yield from _twice("resourceFlavors[{}].name", (flavor.name for flavor in file.resource_flavors), "listed twice")
    yield from _twice("kinds[{}]", (str(each) for each in file.kinds), "listed twice")
    yield from _twice("resources[{}]", (each.title for each in file.resources), "listed twice")


def _reserved_names(file: PolicyFile) -> Iterator[str]:
    """Names of PriorityClasses that a tier can't have: another tier's second class, and the API server's own prefix."""
    classes = {f"{tier.name}-nonpreempting": tier.name for tier in file.tiers}
    for index, tier in enumerate(file.tiers):
        if tier.name in classes:
            yield (
                f"tiers[{index}].name: {tier.name} is the name of the non-preempting class of tier "
                f"{classes[tier.name]}; write another"
            )
        if tier.name.startswith("system-"):
            yield f"tiers[{index}].name: {tier.name}: names that begin with system- are Kubernetes' own; write another"


def _twice(path: str, values: Iterable[str | int], what: str) -> Iterator[str]:
    met = set()
    for index, value in enumerate(values):
        if value in met:
            yield f"{path.format(index)}: {value}: {what}"
        met.add(value)


def _unknown_tiers(file: PolicyFile) -> Iterator[str]:
    known = {tier.name for tier in file.tiers}
    for path, name in _mentions(file):
        if name not in known:
            yield f"{path}: {name} is no tier; the tiers are {', '.join(tier.name for tier in file.tiers)}"


def _unknown_kinds(file: PolicyFile) -> Iterator[str]:
    known = {*BUILT_IN.by_kind, *(each.group_kind for each in file.kinds)}
    for index, rule in enumerate(file.rules):
        for place, each in enumerate(rule.match.kinds):
            if each.group_kind not in known:
                yield (
                    f"rules[{index}].match.kinds[{place}]: {each} is not in the table of workload kinds "
                    "(docs/workloads.md), so the rule could never apply; add it under kinds"
                )


def _contradictions(file: PolicyFile) -> Iterator[str]:
    for workload_type, name in file.workload_types.items():
        allowed = file.allowed_tiers_by_type.get(workload_type)
        if allowed is not None and name not in allowed:
            yield (
                f"workloadTypes.{workload_type}: {name}, but allowedTiersByType.{workload_type} allows "
                f"{'only ' + ', '.join(allowed) if allowed else 'none'}"
            )
    highest = max(file.tiers, key=lambda tier: tier.value).name if file.tiers else ""
    for index, name in enumerate(file.demote_to):
        if name in file.demote_to[:index]:
            yield f"demoteTo[{index}]: {name} stands there twice; keep one"
        if name == highest:
            yield f"demoteTo[{index}]: {name} is the highest tier, so nothing is demoted to it; write a lower one"
    if file.eviction_cost.kueue == "Write" and not file.kueue.workload_priority_classes:
        yield "evictionCost.kueue: Write needs kueue.workloadPriorityClasses: true, or Kueue may not know the tiers"


def _mentions(file: PolicyFile) -> Iterator[tuple[str, str]]:
    yield "defaultTier", file.default_tier
    yield from ((f"workloadTypes.{workload_type}", name) for workload_type, name in file.workload_types.items())
    for workload_type, names in file.allowed_tiers_by_type.items():
        yield from ((f"allowedTiersByType.{workload_type}[{index}]", name) for index, name in enumerate(names))
    yield from ((f"demoteTo[{index}]", name) for index, name in enumerate(file.demote_to))
    yield from ((f"rules[{index}].tier", rule.tier) for index, rule in enumerate(file.rules))
    yield from ((f"checkpoint.tiers.{name}", name) for name in file.checkpoint.tiers)
    caps = file.checkpoint.max_grace_period_seconds_by_tier
    yield from ((f"checkpoint.maxGracePeriodSecondsByTier.{name}", name) for name in caps)
    yield from ((f"placement.{name}", name) for name in file.placement)
    yield from ((f"scheduling.{name}", name) for name in file.scheduling)
