"""What an object of a kind that no row describes has inside: pod templates and whole objects, known by their shape.

The webhook is not asked about such an object, only about the pods and objects that come of it.
"""

from collections.abc import Iterator
from typing import Any

from webhook.cli.documents import Document
from webhook.cli.expand import pod_of, pods_of
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.assignment.scope import may_hold_gpus
from webhook.policy.classification.unknown_kinds.fields import (
    asks_by_field,
    gpu_resources,
    packed_in,
    runs_in,
    says_all,
)
from webhook.policy.classification.unknown_kinds.shapes import form_of, is_blueprint, is_object, shapes_in
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import Form, KindRow, Templates
from webhook.policy.workloads.templates import pod_templates

Tree = dict[str, Any]


def row_by_shape(document: Document) -> KindRow:
    """A row for this one object, with the places of what looks like a pod template in it."""
    forms = {steps: form_of(node) for steps, node in shapes_in(document.tree) if not is_object(node)}
    templates = tuple(_templates(steps, form) for steps, form in forms.items() if form)
    return KindRow(document.group, document.kind, "", "the object's own shape", templates=templates)


def gpus_elsewhere(document: Document, policy: TierPolicy) -> tuple[str, ...]:
    """Where pod templates with GPUs lie by their shape, if there is none where the kind's own row expects one."""
    row = policy.kinds.by_kind[GroupKind(document.group, document.kind)]
    if not row.templates or any(_may_hold_gpus(each.pod, policy) for each in pod_templates(document.tree, row)):
        return ()
    found = pod_templates(document.tree, row_by_shape(document))
    return tuple(each.path for each in found if _may_hold_gpus(each.pod, policy))


def _may_hold_gpus(template: object, policy: TierPolicy) -> bool:
    try:
        return may_hold_gpus(view(template, Pod), policy)
    except Refused:
        return False  # it only looked like one


def pod_of_unknown(document: Document) -> Tree | None:
    """A pod of an object that asks for GPUs in a field of its own kind's making; None where it asks for none so.

    Raises Refused where what looks like a template is none.
    """
    spec = document.tree.get("spec")
    if is_blueprint(document.tree) or says_all(spec) or not asks_by_field(spec):
        return None
    row = row_by_shape(document)
    for _, _, pod in pods_of(document, row):
        return pod
    main = {"name": "main", "image": packed_in(spec), "args": runs_in(spec)}
    return pod_of(document, {"spec": {"containers": [main]}}, row)


def uncounted(document: Document, policy: TierPolicy) -> tuple[str, ...]:
    """Resources of its containers that are called GPUs, and that the policy doesn't list."""
    return tuple(name for name in gpu_resources(document.tree.get("spec")) if name not in policy.weights)


def objects_inside(document: Document) -> Iterator[tuple[str, Document]]:
    """The whole objects in this one, as an AppWrapper or a ManifestWork carries them, each with its place."""
    for steps, node in shapes_in(document.tree):
        if is_object(node):
            metadata = {"namespace": document.namespace, "name": document.name} | (node.get("metadata") or {})
            yield ".".join(steps), Document(document.source, {**node, "metadata": metadata})


def with_objects_inside(document: Document, kinds: KindTable) -> Iterator[Document]:
    """The object, and those in it where no row describes its kind: all that a cluster would hold."""
    yield document
    if GroupKind(document.group, document.kind) not in kinds.by_kind:
        for _, each in objects_inside(document):
            yield from with_objects_inside(each, kinds)


def _templates(steps: tuple[str, ...], form: Form) -> Templates:
    *holder, last = steps
    if last == "*":
        return Templates(".".join(steps), "", _replicas, form)
    return Templates(".".join(holder), last, _replicas, form)


def _replicas(holder: Tree) -> int:
    """As many as stand beside it; what an unknown kind calls replicas may be anything."""
    found = holder.get("replicas")
    return found if isinstance(found, int) and found > 0 else 1
