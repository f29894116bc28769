"""Reads PodDisruptionBudgets.

Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/
"""

from collections.abc import Mapping

import msgspec

from webhook.objects.pods import Metadata
from webhook.objects.view import View, read
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.tenants import Requirement


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget. `lines` are its selector's; None selects no pod. `allowed` is how many may go now."""

    namespace: str
    name: str
    lines: tuple[Requirement, ...] | None
    allowed: int

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it selects a pod. An empty selector selects all of the namespace."""
        return (
            namespace == self.namespace and self.lines is not None and all(each.matches(labels) for each in self.lines)
        )


class _BudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0


class _Budget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


def disruption_budget(raw: msgspec.Raw | bytes) -> DisruptionBudget:
    """Return a budget from its JSON. Raises Refused."""
    found = read(raw, _Budget)
    about, selector = found.metadata, found.spec.selector
    lines = None if selector is None else tuple(requirements_of(selector))
    return DisruptionBudget(about.namespace, about.name, lines, found.status.disruptions_allowed)
