"""Reads the node selector that the API server writes on each pod of a namespace, by an annotation of the namespace.

Two admission plugins do that: PodNodeSelector of Kubernetes, and OpenShift's, which leaves a namespace alone that has
the annotation of the first. Each plugin also has a default for the whole cluster, which no API shows. Nobody can see
whether a plugin runs. So the selector only tells where pods that a workload makes will land; a pod under review shows
itself what was written on it.
Source: admission-controllers/#podnodeselector of the Kubernetes documentation.
"""

from collections.abc import Mapping

import msgspec

from webhook.objects.pods import Pod
from webhook.objects.view import Tree

ANNOTATIONS = ("scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector")


class NamespaceSelector(msgspec.Struct, frozen=True):
    """The node labels that all pods of a namespace ask for, and the annotation that says so."""

    annotation: str
    labels: Mapping[str, str]

    def added_to(self, pod: Pod) -> Pod:
        """The pod with these labels in its node selector; its own stay, also where the plugin refuses them."""
        if self.labels.items() <= pod.spec.node_selector.items():
            return pod
        merged = {**self.labels, **pod.spec.node_selector}
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_selector=merged))

    def conflicts(self, pod: Pod) -> tuple[str, ...]:
        """The keys for which a pod asks for another value: the plugin refuses such a pod."""
        own = pod.spec.node_selector
        return tuple(key for key, value in self.labels.items() if own.get(key, value) != value)


def with_selector(tree: Tree, selector: NamespaceSelector | None) -> Tree:
    """A pod as it is when it reaches the webhook: the plugin comes before."""
    spec = tree.get("spec")
    if selector is None or not isinstance(spec, dict):
        return tree
    own = spec.get("nodeSelector") or {}
    return {**tree, "spec": {**spec, "nodeSelector": {**selector.labels, **own}}} if isinstance(own, dict) else tree


def namespace_selector(annotations: Mapping[str, str]) -> NamespaceSelector | None:
    """The selector that a namespace's annotations give; None where they give none, or one that can't be read.

    A plugin refuses every pod of a namespace whose selector it can't read.
    """
    annotation = next((each for each in ANNOTATIONS if each in annotations), None)
    if annotation is None:
        return None
    pairs = [each.split("=") for each in annotations[annotation].split(",") if annotations[annotation].strip()]
    if not pairs or any(len(each) != 2 or not each[0].strip() for each in pairs):  # noqa: PLR2004 - key and value
        return None
    return NamespaceSelector(annotation, {key.strip(): value.strip() for key, value in pairs})
