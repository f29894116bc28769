"""What parts of an object look like: pod templates, containers, whole objects.

Shapes are all that is known of an object whose kind no row describes.
"""

from collections.abc import Iterator
from typing import Any

from webhook.policy.workloads.kinds.row import Form

Tree = dict[str, Any]
Found = tuple[tuple[str, ...], Tree]
"""The steps from the root, `*` for each list item, and what stands there."""

_NOT_SEARCHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_BLUEPRINTS = tuple("Class Composition Config Definition Kind Policy Profile Revision Runtime Template".split())  # noqa: SIM905
_RECORDS = frozenset({"tekton.dev", "kueue.x-k8s.io"})
"""Groups whose kinds that no row describes are blueprints too (Task, Pipeline), or keep books (Workload)."""


def is_blueprint(tree: Tree) -> bool:
    """Whether an object only describes others, as a ClusterTrainingRuntime does: it makes no pods itself."""
    return str(tree["kind"]).endswith(_BLUEPRINTS) or str(tree["apiVersion"]).partition("/")[0] in _RECORDS


def shapes_in(tree: Tree) -> Iterator[Found]:
    """Each part of an object that has a form or is an object itself; nothing within those."""
    searched = {} if is_blueprint(tree) else tree
    for field, item in searched.items():
        if field not in _NOT_SEARCHED:
            yield from _found(item, (str(field),))


def _found(node: object, steps: tuple[str, ...]) -> Iterator[Found]:
    if isinstance(node, dict):
        if is_object(node) or form_of(node):
            yield steps, node
            return
        for key, item in node.items():
            yield from _found(item, (*steps, str(key)))
    elif isinstance(node, list):
        for item in node:
            yield from _found(item, (*steps, "*"))


def is_object(node: Tree) -> bool:
    """Whether it is a whole object; a reference to one has a name and no spec."""
    told = isinstance(node.get("apiVersion"), str) and isinstance(node.get("kind"), str)
    return told and isinstance(node.get("metadata", {}), dict) and isinstance(node.get("spec"), dict)


def form_of(node: Tree) -> Form | None:
    """The form of pod template that it looks like."""
    if _is_pod_spec(node.get("spec")):
        return "template"
    if _is_pod_spec(node):
        return "spec"
    return "container" if _is_container(node) else None


def _is_container(node: Tree) -> bool:
    """An image with resources or with a command."""
    return isinstance(node.get("image"), str) and any(node.get(field) for field in ("resources", "command", "args"))


def _is_pod_spec(node: object) -> bool:
    containers = node.get("containers") if isinstance(node, dict) else None
    return isinstance(containers, list) and all(isinstance(each, dict) for each in containers) and bool(containers)
