"""Reads a PriorityClass."""

from webhook.objects.pods import Metadata
from webhook.objects.view import View, view
from webhook.policy.values.tiers import PriorityClass


class _Class(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


def priority_class(tree: object) -> PriorityClass:
    """A PriorityClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _Class)
    return PriorityClass(found.metadata.name, found.value, found.preemption_policy, found.global_default)
