"""What parts of an object look like: pod templates, containers, whole objects, fields that ask for GPUs.

Shapes are all that is known of an object whose kind no row describes.
"""

import re
from collections.abc import Iterator
from typing import Any

from webhook.policy.kinds.row import Form

Tree = dict[str, Any]
Found = tuple[tuple[str, ...], Tree]
"""The steps from the root, `*` for each list item, and what stands there."""

_NOT_SEARCHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_RUNS = ("command", "args")
_PLACEMENT = frozenset({"affinity", "nodeSelector", "tolerations"})
_GPU_FIELD = re.compile(r"(?i)(?:num|number_?of|n)?_?gpus?_?(?:count|num|number|limit|request|quantity|per_?\w{1,20})?")
_BLUEPRINTS = (
    "Class",
    "Composition",
    "Config",
    "Definition",
    "Kind",
    "Policy",
    "Profile",
    "Revision",
    "Runtime",
    "Template",
)
_RECORDS = frozenset({"tekton.dev", "kueue.x-k8s.io"})
"""Groups whose kinds that no row describes are blueprints too (Task, Pipeline), or keep books (Workload)."""


def is_blueprint(tree: Tree) -> bool:
    """Whether others are made after such an object, as after a ClusterTrainingRuntime: nothing comes of it alone."""
    return str(tree["kind"]).endswith(_BLUEPRINTS) or str(tree["apiVersion"]).partition("/")[0] in _RECORDS


def shapes_in(tree: Tree) -> Iterator[Found]:
    """Each part of an object that has a form or is an object itself; nothing within those."""
    searched = {} if is_blueprint(tree) else tree
    for field, item in searched.items():
        if field not in _NOT_SEARCHED:
            yield from _found(item, (str(field),))


def _found(node: object, steps: tuple[str, ...]) -> Iterator[Found]:
    if isinstance(node, dict):
        if is_object(node) or form_of(steps[-1], node):
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


def form_of(field: str, node: Tree) -> Form | None:
    """As which form of a pod template a field's value could be taken."""
    if _is_pod_spec(node.get("spec")):
        return "template"
    if _is_pod_spec(node):
        return "spec"
    if _is_container(node):
        return "container"
    return "resources" if field.startswith("resources") and _ask_for_devices(node) else None


def _is_container(node: Tree) -> bool:
    """An image with resources or with a command."""
    runs = isinstance(node.get("resources"), dict) or any(isinstance(node.get(each), list) for each in _RUNS)
    return isinstance(node.get("image"), str) and runs


def _ask_for_devices(node: Tree) -> bool:
    """Whether requests or limits ask for devices; their image stands somewhere else."""
    asked = node.get("limits") or node.get("requests")
    return isinstance(asked, dict) and any("/" in str(name) for name in asked)


def _is_pod_spec(node: object) -> bool:
    containers = node.get("containers") if isinstance(node, dict) else None
    return isinstance(containers, list) and all(isinstance(each, dict) for each in containers) and bool(containers)


def _fields(node: object) -> Iterator[tuple[str, object]]:
    """All fields at any depth, but for those that only say where to run."""
    if isinstance(node, dict):
        for field, value in node.items():
            if field not in _PLACEMENT:
                yield str(field), value
                yield from _fields(value)
    elif isinstance(node, list):
        for item in node:
            yield from _fields(item)


def asks_by_field(tree: object) -> bool:
    """Whether it runs an image, and a field at any depth is `gpus: 2`, `gpusPerNode: 8`, `gpuCount: "1"` or the like.

    Without an image it may be a quota or a queue.
    """
    asks = any(_GPU_FIELD.fullmatch(field) and _is_positive(value) for field, value in _fields(tree))
    return asks and any(field == "image" and isinstance(value, str) for field, value in _fields(tree))


def _is_positive(value: object) -> bool:
    """Also of `gpu: {count: 1, type: l4}`."""
    if isinstance(value, dict):
        return any(_is_positive(value.get(field)) for field in ("count", "quantity", "limit"))
    return str(value).isdecimal() and int(str(value)) > 0
