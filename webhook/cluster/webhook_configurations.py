"""Lists webhook configurations, and our ValidatingAdmissionPolicies, by which the API server refuses on its own.

Sources:
https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/mutating-webhook-configuration-v1/
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from webhook.kube.client import Client, listed_objects, path
from webhook.objects.pods import Metadata
from webhook.objects.view import View, read
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tenants import Requirement

GROUP = "admissionregistration.k8s.io/v1"
OURS = ".gpu-tiers.dev"
"""The end of the name of each of our entries, which does not depend on the release's name."""
OF_PODS = "pods.validate.gpu-tiers.dev"
"""The entry for each new pod with GPUs."""

Kind = Literal["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
KINDS: tuple[Kind, ...] = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
MUTATING, VALIDATING = KINDS


class ServiceReference(View, frozen=True):
    """The Service that an entry calls."""

    name: str = ""
    namespace: str = ""
    path: str = ""


class ClientConfig(View, frozen=True):
    """The address at which the API server calls an entry."""

    service: ServiceReference | None = None
    ca_bundle: str = ""


class _Rule(View, frozen=True):
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    def meets_new_pods(self) -> bool:
        return (
            not {"", "*"}.isdisjoint(self.api_groups)
            and not {"pods", "*", "*/*"}.isdisjoint(self.resources)
            and not {"CREATE", "*"}.isdisjoint(self.operations)
        )


class WebhookEntry(View, frozen=True):
    """One webhook of a configuration."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    failure_policy: str = "Fail"
    rules: tuple[_Rule, ...] = ()
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()

    @property
    def is_ours(self) -> bool:
        """True if it belongs to a gpu-tiers installation."""
        return self.name.endswith(OURS)

    @property
    def meets_new_pods(self) -> bool:
        """True if it may be asked about pods that are created."""
        return any(rule.meets_new_pods() for rule in self.rules)

    @property
    def namespaces(self) -> tuple[Requirement, ...]:
        """The requirements on a namespace's labels for the API server to call the entry."""
        return tuple(requirements_of(self.namespace_selector))

    @property
    def objects(self) -> tuple[Requirement, ...]:
        """The requirements on an object's labels."""
        return tuple(requirements_of(self.object_selector))


class WebhookConfiguration(View, frozen=True):
    """A configuration of either kind. The reader sets `kind`, because the items of a list lack it."""

    kind: str = ""
    metadata: Metadata = Metadata()
    webhooks: tuple[WebhookEntry, ...] = ()

    @property
    def is_ours(self) -> bool:
        return any(entry.is_ours for entry in self.webhooks)

    def __str__(self) -> str:
        return f"{self.kind}/{self.metadata.name}"


def leaves_out(configurations: Iterable[WebhookConfiguration], labels: Mapping[str, str]) -> bool:
    """Tell whether an entry of ours for pods excludes namespaces with these labels; False without such an entry."""
    entries = (entry for each in configurations if each.is_ours for entry in each.webhooks if entry.name == OF_PODS)
    return any(not line.matches(labels) for entry in entries for line in entry.namespaces)


def exempt_namespaces(configurations: Iterable[WebhookConfiguration]) -> frozenset[str]:
    """Return the namespaces that are exempt by their names, as the chart writes them."""
    entries = (entry for each in configurations if each.is_ours for entry in each.webhooks if entry.name == OF_PODS)
    lines = (line for entry in entries for line in entry.namespaces)
    return frozenset(
        name for line in lines if (line.key, line.operator) == (NAME_LABEL, "NotIn") for name in line.values
    )


def missing_kinds(configurations: Iterable[WebhookConfiguration]) -> tuple[Kind, ...]:
    """Return the kinds without a configuration of ours."""
    there = {each.kind for each in configurations if each.is_ours}
    return tuple(kind for kind in KINDS if kind not in there)


def without(kinds: Collection[Kind]) -> Iterator[tuple[Kind, str]]:
    """Yield each missing kind with its effect. In Enforce the validating webhook refuses pods without a tier."""
    if MUTATING in kinds:
        yield MUTATING, "no pod gets a tier" + ("" if VALIDATING in kinds else ", and in Enforce GPU pods are refused")
    if VALIDATING in kinds:
        yield VALIDATING, "nothing is refused, and no quota holds"


async def webhook_configurations(client: Client) -> tuple[WebhookConfiguration, ...]:
    """List the configurations of both kinds. Raises ApiError."""
    found: list[WebhookConfiguration] = []
    for kind in KINDS:
        pages = client.list_pages(path(GROUP, f"{kind.lower()}s"))
        found += [
            msgspec.structs.replace(read(raw, WebhookConfiguration), kind=kind) async for raw in listed_objects(pages)
        ]
    return tuple(found)


OF_OURS = {"labelSelector": "app.kubernetes.io/name=gpu-tiers"}
OF_GATES = "-hold"
"""The end of the name of the policy that protects the gates of queued pods, in a release of any name."""
ALWAYS = (OF_GATES, "-ceilings", "-claims-in-use")
"""The ends of the names of the policies that a release has with any values."""


class AdmissionPolicy(View, frozen=True):
    """A policy by its name, with the actions of its bindings: Deny, Warn, Audit, or none.

    `exists`: False for a policy that was deleted, and that a binding still names.
    """

    name: str
    actions: frozenset[str] = frozenset()
    exists: bool = True

    @property
    def keeps_gates(self) -> bool:
        return self.name.endswith(OF_GATES)

    def __str__(self) -> str:
        return f"ValidatingAdmissionPolicy/{self.name}"


class _Binding(View, frozen=True):
    """The spec of a binding. A policy's spec is not read."""

    policy_name: str = ""
    validation_actions: frozenset[str] = frozenset()


class _Listed(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Binding = _Binding()


async def admission_policies(client: Client) -> tuple[AdmissionPolicy, ...]:
    """List our ValidatingAdmissionPolicies, and those that our bindings name, with their actions. Raises ApiError."""
    there = [each.metadata.name for each in await _all_of_ours(client, "validatingadmissionpolicies")]
    actions: dict[str, frozenset[str]] = dict.fromkeys(there, frozenset())
    for each in await _all_of_ours(client, "validatingadmissionpolicybindings"):
        actions[each.spec.policy_name] = actions.get(each.spec.policy_name, frozenset()) | each.spec.validation_actions
    return tuple(AdmissionPolicy(name=name, actions=its, exists=name in there) for name, its in actions.items())


async def _all_of_ours(client: Client, plural: str) -> list[_Listed]:
    return [read(raw, _Listed) async for raw in listed_objects(client.list_pages(path(GROUP, plural), OF_OURS))]
