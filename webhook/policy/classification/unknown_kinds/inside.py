"""What an object of a kind that no row describes has inside: pod templates and whole objects, known by their shape.

The webhook is not asked about such an object, only about the pods and objects that come of it.
"""

from collections.abc import Iterator
from typing import Any

from webhook.objects.manifests import Manifest
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.classification.unknown_kinds.fields import (
    asks_by_field,
    gpu_resources,
    packed_in,
    runs_in,
    says_all,
)
from webhook.policy.classification.unknown_kinds.shapes import form_of, is_blueprint, is_object, shapes_in
from webhook.policy.quota.demand import may_hold_gpus
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import Form, KindRow, Templates
from webhook.policy.workloads.made_pods import created_by, pod_of, pods_of
from webhook.policy.workloads.templates import pod_templates

Tree = dict[str, Any]


def row_by_shape(manifest: Manifest) -> KindRow:
    """A row for this one object, with the places of what looks like a pod template in it."""
    forms = {steps: form_of(node) for steps, node in shapes_in(manifest.tree) if not is_object(node)}
    templates = tuple(_templates(steps, form) for steps, form in forms.items() if form)
    return KindRow(manifest.group, manifest.kind, "", "the object's own shape", templates=templates)


def gpus_elsewhere(manifest: Manifest, policy: TierPolicy) -> tuple[str, ...]:
    """Where pod templates with GPUs lie by their shape, if there is none where the kind's own row expects one."""
    row = policy.kinds.by_kind[manifest.group_kind]
    if not row.templates or any(_may_hold_gpus(each.pod, policy) for each in pod_templates(manifest.tree, row)):
        return ()
    found = pod_templates(manifest.tree, row_by_shape(manifest))
    return tuple(each.path for each in found if _may_hold_gpus(each.pod, policy))


def _may_hold_gpus(template: object, policy: TierPolicy) -> bool:
    try:
        return may_hold_gpus(view(template, Pod), policy)
    except Refused:
        return False  # it only looked like one


def pod_of_unknown(manifest: Manifest) -> Tree | None:
    """The pod of an object that asks for GPUs in a field of its own kind; None where it has no such field.

    Raises Refused where what looks like a template isn't one.
    """
    spec = manifest.tree.get("spec")
    if is_blueprint(manifest.tree) or says_all(spec) or not asks_by_field(spec):
        return None
    row = row_by_shape(manifest)
    for _, _, pod in pods_of(manifest, row):
        return pod
    main = {"name": "main", "image": packed_in(spec), "args": runs_in(spec)}
    return pod_of(manifest, {"spec": {"containers": [main]}}, row)


def uncounted(manifest: Manifest, policy: TierPolicy) -> tuple[str, ...]:
    """Resources of its containers that are called GPUs but are not in the policy."""
    return tuple(name for name in gpu_resources(manifest.tree.get("spec")) if name not in policy.weights)


def objects_inside(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """The whole objects in this one, as a ManifestWork carries them, each with its place."""
    for steps, node in shapes_in(manifest.tree):
        if is_object(node):
            metadata = {"namespace": manifest.namespace, "name": manifest.name} | (node.get("metadata") or {})
            yield ".".join(steps), Manifest(manifest.source, {**node, "metadata": metadata})


def with_objects_inside(manifest: Manifest, kinds: KindTable) -> Iterator[Manifest]:
    """The object, and those in it that it creates, or of an unknown kind all: what a cluster would hold."""
    yield manifest
    row = kinds.by_kind.get(manifest.group_kind)
    inside = (
        objects_inside(manifest) if row is None else ((place, each) for place, each, _ in created_by(manifest, row))
    )
    for _, each in inside:
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
