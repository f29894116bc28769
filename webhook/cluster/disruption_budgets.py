"""Lists PodDisruptionBudgets.

Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/
"""

from collections.abc import Mapping

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
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
        """Whether it selects a pod. An empty selector selects all of the namespace."""
        return (
            namespace == self.namespace and self.lines is not None and all(each.matches(labels) for each in self.lines)
        )


class _Spec(View, frozen=True):
    selector: LabelSelector | None = None


class _Status(View, frozen=True):
    disruptions_allowed: int = 0


class _Budget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


async def disruption_budgets(client: Client) -> tuple[DisruptionBudget, ...]:
    """All of them. Raises ApiError."""
    pages = client.list_pages(path("policy/v1", "poddisruptionbudgets"))
    return tuple([_budget(raw) async for raw in listed_objects(pages)])


def _budget(raw: msgspec.Raw) -> DisruptionBudget:
    found = read(raw, _Budget)
    selector = found.spec.selector
    lines = None if selector is None else tuple(requirements_of(selector))
    return DisruptionBudget(found.metadata.namespace, found.metadata.name, lines, found.status.disruptions_allowed)
