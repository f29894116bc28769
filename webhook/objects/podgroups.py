"""The parts of PodGroups that decisions read (scheduling.k8s.io, KEP-4671)."""

from webhook.objects.pods import Metadata
from webhook.objects.view import View


class PodGroupSpec(View, frozen=True):
    """What a PodGroup says of priority."""

    priority_class_name: str = ""
    priority: int | None = None


class PodGroup(View, frozen=True):
    """A gang as the scheduler knows it (scheduling.k8s.io, KEP-4671)."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
