"""Tells whether a node accepts a pod, by labels, required affinity and taints, like kube-scheduler's filters.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and …/taint-and-toleration/
"""

from collections.abc import Iterable, Mapping

from webhook.objects.pods import PodSpec
from webhook.objects.view import View, view


class Taint(View, frozen=True):
    """A taint of a node or of a device. NoSchedule keeps new pods off, NoExecute evicts as well."""

    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class Toleration(View, frozen=True):
    """A toleration of taints, by a pod or by a request for devices."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether it tolerates the taint; an empty key with Exists is for all keys, an empty effect for any."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.key != "" and self.value == taint.value)


class _Tolerations(View, frozen=True):
    tolerations: tuple[Toleration, ...] = ()


def first_toleration(spec: PodSpec, taint: Taint) -> Toleration | None:
    """Return the first of a pod's tolerations that tolerates a taint; None without one."""
    borne = view({"tolerations": spec.tolerations}, _Tolerations).tolerations
    return next((each for each in borne if each.tolerates(taint)), None)


def obstacle(spec: PodSpec, name: str, labels: Mapping[str, str], taints: Iterable[Taint]) -> str:
    """Return why the node of this name does not accept the pod, to follow `is`; "" if it does."""
    missing = [f"{key}={value}" for key, value in spec.node_selector.items() if labels.get(key) != value]
    if missing:
        return f"without the label {missing[0]} of its nodeSelector"
    if spec.node_terms and not any(term.matches(name, labels) for term in spec.node_terms):
        return "ruled out by its node affinity"
    binding = (each for each in taints if each.effect in ("NoSchedule", "NoExecute"))
    for taint in binding:
        if first_toleration(spec, taint) is None:
            return f"tainted with {taint}, which it does not tolerate"
    return ""
