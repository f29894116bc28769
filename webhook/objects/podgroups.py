"""The parts of PodGroups and of Kubernetes' own Workloads that decisions read (scheduling.k8s.io, KEP-4671).

Controllers make PodGroups of a Workload's templates. Any other workload in gpu-tiers makes pods.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from webhook.objects.pods import ManagedFields, Metadata, PodClaim
from webhook.objects.view import View, at


class PodGroupTemplate(View, frozen=True):
    """A template of PodGroups. The API server neither looks its class up nor fills anything in."""

    name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    disruption_mode: Any = None


class CompositePodGroupTemplate(PodGroupTemplate, frozen=True):
    """A template of CompositePodGroups, with the templates of the groups below it (alpha in 1.37, beta in 1.38)."""

    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple["CompositePodGroupTemplate", ...] = ()


class SchedulingWorkloadSpec(View, frozen=True):
    """The templates of a Workload."""

    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class SchedulingWorkload(View, frozen=True):
    """A Workload of scheduling.k8s.io."""

    metadata: Metadata = Metadata()
    spec: SchedulingWorkloadSpec = SchedulingWorkloadSpec()

    def templates(self) -> Iterator[tuple[str, PodGroupTemplate]]:
        """Yield all templates of the tree, each with its field such as `spec.podGroupTemplates[0]`."""
        return _templates_below("spec", self.spec)

    def template(self, name: str) -> PodGroupTemplate | None:
        return next((each for _, each in self.templates() if each.name == name), None)


def _templates_below(
    field: str, found: SchedulingWorkloadSpec | CompositePodGroupTemplate
) -> Iterator[tuple[str, PodGroupTemplate]]:
    for index, leaf in enumerate(found.pod_group_templates):
        yield f"{field}.podGroupTemplates[{index}]", leaf
    for index, inner in enumerate(found.composite_pod_group_templates):
        below = f"{field}.compositePodGroupTemplates[{index}]"
        yield below, inner
        yield from _templates_below(below, inner)


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class PodGroupMetadata(Metadata, frozen=True):
    """A PodGroup's metadata."""

    managed_fields: tuple[ManagedFields, ...] = ()


class SchedulingPolicy(View, frozen=True):
    """The scheduling of a group's pods: `gang` for all or none, with a minCount."""

    gang: Any = None


class TemplateReference(View, frozen=True):
    """The template of a Workload that a PodGroup was made of. Kubernetes 1.36 calls it podGroupTemplateName."""

    workload_name: str = ""
    template_name: str = ""
    pod_group_template_name: str = ""

    @property
    def template(self) -> str:
        return self.template_name or self.pod_group_template_name


class PodGroupTemplateReference(View, frozen=True):
    """The field that Kubernetes 1.36 has around a TemplateReference."""

    workload: TemplateReference | None = None


class PodGroupSpec(View, frozen=True):
    """The priority and the disruption of a PodGroup, the CompositePodGroup above it, and the claims that pods share.

    `scheduling_constraints` say which topology its pods must share.
    """

    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    disruption_mode: Any = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    workload_ref: TemplateReference | None = None
    pod_group_template_ref: PodGroupTemplateReference | None = None
    parent_composite_pod_group_name: str = ""
    scheduling_constraints: Any = None
    resource_claims: tuple[PodClaim, ...] = ()


class PodGroup(View, frozen=True):
    """A gang as the scheduler knows it (scheduling.k8s.io, KEP-4671): a PodGroup or a CompositePodGroup.

    Both have the same fields of priority and disruption. A CompositePodGroup has groups in it, and no pods of its own.
    """

    api_version: str = ""
    kind: str = ""
    metadata: PodGroupMetadata = PodGroupMetadata()
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def template(self) -> TemplateReference | None:
        """Return the template of a Workload that it was made of, if it names one."""
        older = self.spec.pod_group_template_ref
        return self.spec.workload_ref or (older.workload if older else None)

    @property
    def whole(self) -> object:
        """Return the disruptionMode by which all of its pods go together, in its version's form (KEP-5710)."""
        return "PodGroup" if self.api_version.endswith("/v1alpha2") else {"all": {}}

    @property
    def goes_whole(self) -> bool:
        """Tell whether its disruptionMode makes all of its pods go together, in the form of any version."""
        mode = self.spec.disruption_mode
        return mode == "PodGroup" or (isinstance(mode, dict) and mode.get("all") is not None)

    @property
    def mode_is_written(self) -> bool:
        """Tell whether somebody wrote the disruptionMode. The API server fills it in, so only an apply proves it.

        An object without managedFields has not been through an API server: it has exactly what its file says.
        """
        if not self.metadata.managed_fields:
            return self.spec.disruption_mode is not None
        applied = [each.fields_v1 for each in self.metadata.managed_fields if each.operation == "Apply"]
        if any(at(each, "f:spec.f:disruptionMode") is not None for each in applied):
            return True
        with suppress(ValueError, RecursionError):
            sent = json.loads(self.metadata.annotations.get(LAST_APPLIED, ""))
            return at(sent, "spec.disruptionMode") is not None
        return False
