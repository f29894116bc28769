"""The nodes that a pod must run on, as its affinity says.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#NodeAffinity
"""

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
    """A pod's affinity, as far as nodes are concerned."""

    node_affinity: NodeAffinity = NodeAffinity()
