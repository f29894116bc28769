"""The nodes that a pod must run on, as its affinity says.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#NodeAffinity
"""

from typing import Any

from webhook.objects.view import View


class NodeRequirement(View, frozen=True):
    """One line of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True):
    """Lines that must all hold."""

    match_expressions: tuple[NodeRequirement, ...] = ()


class NodeSelector(View, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(View, frozen=True):
    """The nodes that a pod must run on; what it would rather have binds nobody."""

    required_during_scheduling_ignored_during_execution: NodeSelector = NodeSelector()


class Affinity(View, frozen=True):
    """A pod's affinity to nodes; of that to other pods only whether it says anything matters."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: Any = None
    pod_anti_affinity: Any = None
