"""Reads a PriorityClass; never whether it is a tier's."""

from webhook.policy.objects import Metadata
from webhook.policy.tiers import PriorityClass
from webhook.policy.view import View, view


class _Class(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


def priority_class(tree: object) -> PriorityClass:
    """A PriorityClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _Class)
    return PriorityClass(found.metadata.name, found.value, found.preemption_policy, found.global_default)
