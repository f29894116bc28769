"""What a PodGroup is to its pods, from the object as it is stored."""

from typing import Any

from webhook.objects.field_paths import at
from webhook.objects.podgroups import PodGroup
from webhook.policy.assignment.reinvocation import demoted_from
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.values.facts import Group


def group_of(found: PodGroup, name: str, *, prioritized: bool) -> Group:
    """The group of that name. `prioritized`: the API server keeps a class and a priority on it.

    Else its tier label says what its class would be, and so it does in a file, where no class was written yet.
    """
    written = found.spec.priority_class_name
    stored = prioritized and bool(found.metadata.managed_fields)
    label = "" if stored else found.metadata.labels.get(TIER_LABEL, "")
    return Group(
        name,
        written or label,
        prioritized=prioritized,
        demoted_from=demoted_from(found.metadata.annotations),
        pods=_min_count(found.spec.scheduling_policy.gang),
    )


def size_of(tree: dict[str, Any]) -> int:
    """The pods that the PodGroup of Volcano or of the coscheduling plugin needs together."""
    found = at(tree, "spec.minMember")
    return found if type(found) is int and found > 0 else 0


def _min_count(gang: object) -> int:
    found = gang.get("minCount") if isinstance(gang, dict) else None
    return found if type(found) is int and found > 0 else 0
