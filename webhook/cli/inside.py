"""What an object of a kind that no row describes has inside: pod templates and whole objects, known by their shape.

The webhook is not asked about such an object, only about the pods and objects that come of it.
"""

from collections.abc import Iterator
from typing import Any

from webhook.cli.documents import Document
from webhook.policy.kinds import KindTable
from webhook.policy.kinds.row import Form, Row, Templates
from webhook.policy.objects import Pod
from webhook.policy.scope import may_hold_gpus
from webhook.policy.templates import pod_templates
from webhook.policy.tier_policy import TierPolicy
from webhook.policy.view import view
from webhook.policy.words import Kind

Tree = dict[str, Any]
Found = tuple[tuple[str, ...], Tree]
"""The steps from the root, `*` for each list item, and what stands there."""

_NOT_SEARCHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_BLUEPRINTS = ("Class", "Policy", "Profile", "Runtime", "Template")
"""How kinds end that others are made after, such as ClusterTrainingRuntime: nothing comes of them alone."""


def row_by_shape(document: Document) -> Row:
    """A row for this one object, with the places of what looks like a pod template in it."""
    forms = {steps: _form(node) for steps, node in _inside(document.tree) if not _is_object(node)}
    templates = tuple(_templates(steps, form) for steps, form in forms.items() if form)
    return Row(document.group, document.kind, "", "the object's own shape", templates=templates)


def gpus_elsewhere(document: Document, policy: TierPolicy) -> tuple[str, ...]:
    """Where pod templates with GPUs lie by their shape, if there is none where the kind's own row expects one.

    Raises Refused where what looks like a template is none.
    """
    row = policy.kinds.by_kind[Kind(document.group, document.kind)]
    if not row.templates or any(True for _ in pod_templates(document.tree, row)):
        return ()
    found = pod_templates(document.tree, row_by_shape(document))
    return tuple(each.path for each in found if may_hold_gpus(view(each.pod, Pod), policy))


def objects_inside(document: Document) -> Iterator[tuple[str, Document]]:
    """The whole objects in this one, as an AppWrapper or a ManifestWork carries them, each with its place."""
    for steps, node in _inside(document.tree):
        if _is_object(node):
            metadata = {"namespace": document.namespace, "name": document.name} | (node.get("metadata") or {})
            yield ".".join(steps), Document(document.source, {**node, "metadata": metadata})


def with_objects_inside(document: Document, kinds: KindTable) -> Iterator[Document]:
    """The object, and those in it where no row describes its kind: all that a cluster would hold."""
    yield document
    if Kind(document.group, document.kind) not in kinds.by_kind:
        for _, each in objects_inside(document):
            yield from with_objects_inside(each, kinds)


def _inside(tree: Tree) -> Iterator[Found]:
    searched = {} if str(tree["kind"]).endswith(_BLUEPRINTS) else tree
    for field, item in searched.items():
        if field not in _NOT_SEARCHED:
            yield from _found(item, (str(field),))


def _found(node: object, steps: tuple[str, ...]) -> Iterator[Found]:
    if isinstance(node, dict):
        if _is_object(node) or _form(node):
            yield steps, node
            return
        for key, item in node.items():
            yield from _found(item, (*steps, str(key)))
    elif isinstance(node, list):
        for item in node:
            yield from _found(item, (*steps, "*"))


def _is_object(node: Tree) -> bool:
    """A reference to an object has a name and no spec."""
    told = isinstance(node.get("apiVersion"), str) and isinstance(node.get("kind"), str)
    return told and isinstance(node.get("metadata", {}), dict) and isinstance(node.get("spec"), dict)


def _form(node: Tree) -> Form | None:
    if _is_pod_spec(node.get("spec")):
        return "template"
    if _is_pod_spec(node):
        return "spec"
    return "container" if isinstance(node.get("image"), str) and isinstance(node.get("resources"), dict) else None


def _is_pod_spec(node: object) -> bool:
    containers = node.get("containers") if isinstance(node, dict) else None
    return isinstance(containers, list) and all(isinstance(each, dict) for each in containers) and bool(containers)


def _templates(steps: tuple[str, ...], form: Form) -> Templates:
    *holder, last = steps
    if last == "*":
        return Templates(".".join(steps), "", _replicas, form)
    return Templates(".".join(holder), last, _replicas, form)


def _replicas(holder: Tree) -> int:
    """As many as stand beside it; what an unknown kind calls replicas may be anything."""
    found = holder.get("replicas")
    return found if isinstance(found, int) and found > 0 else 1
