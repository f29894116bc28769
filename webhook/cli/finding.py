"""What the webhook says of one object and of all that comes of it, as a value."""

from dataclasses import dataclass
from typing import Any

from webhook.admission.review import Operation
from webhook.admission.verdict import Verdict
from webhook.cli.documents import Document
from webhook.policy.classification.evidence import Evidence

Tree = dict[str, Any]

OF_NO_NAMESPACE = {
    "Namespace": "",
    "PriorityClass": "scheduling.k8s.io",
    "TenantQuota": "gpu-tiers.dev",
    "DeviceClass": "resource.k8s.io",
    "ClusterTrainingRuntime": "trainer.kubeflow.org",
}
"""Kinds that belong to no namespace, with their groups; all of them are facts that others are reviewed with."""

CLUSTER_SCOPED = {
    "APIService": "apiregistration.k8s.io",
    "ClusterRole": "rbac.authorization.k8s.io",
    "ClusterRoleBinding": "rbac.authorization.k8s.io",
    "CustomResourceDefinition": "apiextensions.k8s.io",
    "IngressClass": "networking.k8s.io",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io",
    "Node": "",
    "PersistentVolume": "",
    "RuntimeClass": "node.k8s.io",
    "StorageClass": "storage.k8s.io",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
}
"""Other kinds that belong to no namespace, which often lie beside workloads."""

QUOTA_UNASKED = "it is there already, so its quota was not asked; a second one beside it would have no room now"
"""A note on an object that exists."""


@dataclass(frozen=True, slots=True)
class Finding:
    """All that is said of one object. `before` and `after` are the object without and with its patch.

    `pods` are the findings for the pods that a workload would make, one for each of its templates. Where the kind is
    not `known`, the webhook sees nothing but the pods and the objects `inside`, as far as their shape shows them. Where
    it is known and has no template where it should, `elsewhere` are the places of other templates that ask for GPUs.
    `uncounted` are resources that are called GPUs but are not in the policy. `unasked` is why a cluster could not be
    asked, `notes` what else is to know of its answer.
    """

    document: Document
    verdict: Verdict
    before: Tree
    after: Tree
    patch: tuple[Operation, ...] = ()
    guessed: Evidence | None = None
    pods: tuple["Finding", ...] = ()
    count: int = 1
    path: str = ""
    known: bool = True
    inside: tuple["Finding", ...] = ()
    elsewhere: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    unasked: str = ""
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        document = self.document
        clusters = CLUSTER_SCOPED.get(document.kind) == document.group
        place = document.name if self.of_no_namespace or clusters else f"{document.namespace}/{document.name}"
        return f"{document.kind} {place}"

    @property
    def of_no_namespace(self) -> bool:
        """Whether it is of a kind that is known to belong to no namespace."""
        return OF_NO_NAMESPACE.get(self.document.kind) == self.document.group

    @property
    def parts(self) -> tuple["Finding", ...]:
        """All that would come of it."""
        return (*self.pods, *self.inside)

    @property
    def tiered(self) -> bool:
        """Whether the object or anything that would come of it gets a tier."""
        return self.verdict.assignment is not None or any(part.tiered for part in self.parts)

    @property
    def allowed(self) -> bool:
        """Whether the object and all that would come of it would be let in."""
        return self.verdict.refusal is None and all(part.allowed for part in self.parts)

    @property
    def evidence(self) -> Evidence | None:
        """What tells the workload type, also where the tier was refused."""
        own = (self.verdict.assignment and self.verdict.assignment.evidence) or self.guessed
        return own if self.known else next((part.evidence for part in self.parts if part.evidence), own)

    @property
    def message(self) -> str | None:
        """The first refusal: the object's own, else that of what comes of it."""
        refusals = [self.verdict.refusal, *(part.message for part in self.parts)]
        return next((refusal for refusal in refusals if refusal), None)

    @property
    def refusal_kind(self) -> str:
        """What kind of refusal that first one is, in a word for programs."""
        verdicts = [self.verdict, *(part.verdict for part in self.parts)]
        first = next((each for each in verdicts if each.refusal), self.verdict)
        return "over-quota" if first.over_quota else "undecided" if first.undecided else "refused"

    @property
    def hook(self) -> Tree | None:
        """A pod's checkpoint hook: its kind, the containers that have it, and the grace period with it."""
        plan, containers = self.verdict.hook, self.after.get("spec", {}).get("containers", [])
        if plan is None:
            return None
        names = [containers[index].get("name", "") for index in plan.containers]
        return {"kind": plan.kind, "containers": names, "gracePeriodSeconds": plan.grace}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning once, those of what comes of it included."""
        said = [*self.verdict.warnings, *(warning for part in self.parts for warning in part.warnings)]
        return tuple(dict.fromkeys(said))
