"""The parts of Kubernetes' own Workloads that decisions read (scheduling.k8s.io, KEP-4671).

Controllers make PodGroups of their templates. What else is called a workload here makes pods.
"""

from typing import Any

from webhook.objects.pods import Metadata
from webhook.objects.view import View


class PodGroupTemplate(View, frozen=True):
    """What a PodGroup is made of. The API server looks no class of it up, and fills nothing in."""

    name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    disruption_mode: Any = None


class SchedulingWorkloadSpec(View, frozen=True):
    """Its templates."""

    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class SchedulingWorkload(View, frozen=True):
    """A Workload of scheduling.k8s.io."""

    metadata: Metadata = Metadata()
    spec: SchedulingWorkloadSpec = SchedulingWorkloadSpec()

    def template(self, name: str) -> PodGroupTemplate | None:
        """Its template of that name."""
        return next((each for each in self.spec.pod_group_templates if each.name == name), None)
