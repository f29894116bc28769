"""Lists the ValidatingAdmissionPolicies of gpu-tiers, by which the API server refuses also while the webhook is down.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from collections.abc import Sequence

from webhook.cluster.webhook_configurations import GROUP
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Metadata
from webhook.objects.view import View, read

OF_OURS = {"labelSelector": "app.kubernetes.io/name=gpu-tiers"}
OF_GATES = "-hold"
"""Ends the name of the policy that keeps the gates of held pods shut, whatever the release is called."""


class AdmissionPolicy(View, frozen=True):
    """A policy by its name, with what its bindings tell the API server to do by it: Deny, Warn, Audit; else nothing."""

    name: str
    actions: frozenset[str] = frozenset()

    @property
    def keeps_gates(self) -> bool:
        return self.name.endswith(OF_GATES)

    def __str__(self) -> str:
        return f"ValidatingAdmissionPolicy/{self.name}"


class _Spec(View, frozen=True):
    """Of a binding; of a policy nothing is read."""

    policy_name: str = ""
    validation_actions: frozenset[str] = frozenset()


class _Listed(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()


async def admission_policies(client: Client) -> tuple[AdmissionPolicy, ...]:
    """All of ours. Raises ApiError."""
    policies = [each.metadata.name for each in await _all(client, "validatingadmissionpolicies")]
    bindings = [each.spec for each in await _all(client, "validatingadmissionpolicybindings")]
    return tuple(_with_actions(each, bindings) for each in policies)


def _with_actions(name: str, bindings: Sequence[_Spec]) -> AdmissionPolicy:
    told = (each.validation_actions for each in bindings if each.policy_name == name)
    return AdmissionPolicy(name=name, actions=frozenset().union(*told))


async def _all(client: Client, plural: str) -> list[_Listed]:
    return [read(raw, _Listed) async for raw in listed_objects(client.list_pages(path(GROUP, plural), OF_OURS))]
