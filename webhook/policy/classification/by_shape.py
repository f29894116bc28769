"""Reads objects whose kind has no row by their shape: pod templates and whole objects, wherever they lie.

The webhook does not see such an object, only the pods and objects that it creates.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.objects.group_kind import POD
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, view
from webhook.policy.classification.classify import classify, classify_workload
from webhook.policy.classification.evidence import Evidence
from webhook.policy.quota.demand import may_hold_gpus
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import Form, KindRow, KindTable, Templates
from webhook.policy.workloads.templates import created_by, pod_templates, workload

_NOT_SEARCHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_BLUEPRINTS = (
    *("Class", "Composition", "Config", "Definition", "Kind", "Policy", "Profile", "Revision", "Runtime", "Template"),
)
"""Endings of kinds that only describe others, such as ClusterTrainingRuntime: they make no pods themselves."""
_RECORDS = frozenset({"tekton.dev", "kueue.x-k8s.io"})
"""Groups whose kinds without a row are blueprints too (Task, Pipeline), or records (Workload)."""


def classify_manifest(manifest: Manifest, policy: TierPolicy) -> Evidence | None:
    """Return the evidence of a manifest's workload type; None if there is none.

    That is so without GPUs, for an unknown kind, and for an object that can't be read.
    """
    row = policy.kinds.by_kind.get(manifest.group_kind)
    try:
        if manifest.group_kind == POD:
            pod = view(manifest.tree, Pod)
            return classify(pod, (), policy.kinds) if may_hold_gpus(pod, policy) else None
        if row is None:
            return None
        seen = replace(row, templates=row_by_shape(manifest).templates) if gpus_elsewhere(manifest, policy) else row
        return classify_workload(workload(manifest.tree, seen), policy)
    except Refused:
        return None


def row_by_shape(manifest: Manifest) -> KindRow:
    """Return a row for this one object, with the places that look like pod templates."""
    forms = {steps: _form_of(node) for steps, node in _shapes_in(manifest.tree) if not _is_object(node)}
    templates = []
    for steps, form in ((steps, form) for steps, form in forms.items() if form):
        holder = steps if steps[-1] == "*" else steps[:-1]
        templates.append(Templates(".".join(holder), ".".join(steps[len(holder) :]), _replicas, form))
    return KindRow(manifest.group, manifest.kind, "", "the object's own shape", templates=tuple(templates))


def gpus_elsewhere(manifest: Manifest, policy: TierPolicy) -> tuple[str, ...]:
    """Return the paths of pod templates with GPUs by their shape, if the templates of the kind's row have no GPUs."""
    row = policy.kinds.by_kind[manifest.group_kind]
    if not row.templates or any(_may_hold_gpus(each.pod, policy) for each in pod_templates(manifest.tree, row)):
        return ()
    found = pod_templates(manifest.tree, row_by_shape(manifest))
    return tuple(each.path for each in found if _may_hold_gpus(each.pod, policy))


def objects_inside(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield the whole objects in this one, as a ManifestWork carries them, each with its place."""
    for steps, node in _shapes_in(manifest.tree):
        if _is_object(node):
            metadata = {"namespace": manifest.namespace, "name": manifest.name} | (node.get("metadata") or {})
            yield ".".join(steps), Manifest(manifest.source, {**node, "metadata": metadata})


def with_objects_inside(manifest: Manifest, kinds: KindTable) -> Iterator[Manifest]:
    """Yield the object and the whole objects in it, at any depth: those that a known kind creates, or all by shape."""
    yield manifest
    row = kinds.by_kind.get(manifest.group_kind)
    made = (each for _, each, _ in created_by(manifest, row)) if row else (each for _, each in objects_inside(manifest))
    for each in made:
        yield from with_objects_inside(each, kinds)


def _may_hold_gpus(template: object, policy: TierPolicy) -> bool:
    try:
        return may_hold_gpus(view(template, Pod), policy)
    except Refused:
        return False  # it only looked like an object


def _replicas(holder: Tree) -> int:
    """Return `replicas` next to a template; 1 if it is no number above 0, because an unknown kind may use it freely."""
    found = holder.get("replicas")
    return found if isinstance(found, int) and found > 0 else 1


def _shapes_in(tree: Tree) -> Iterator[tuple[tuple[str, ...], Tree]]:
    """Yield each part of an object that has a form or is an object itself, with its path, but no parts of these.

    A kind that only describes or records others has no such parts.
    """
    if not str(tree["kind"]).endswith(_BLUEPRINTS) and str(tree["apiVersion"]).partition("/")[0] not in _RECORDS:
        for field, item in tree.items():
            if field not in _NOT_SEARCHED:
                yield from _found(item, (str(field),))


def _found(node: object, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Tree]]:
    if isinstance(node, dict):
        if _is_object(node) or _form_of(node):
            yield steps, node
            return
        for key, item in node.items():
            yield from _found(item, (*steps, str(key)))
    elif isinstance(node, list):
        for item in node:
            yield from _found(item, (*steps, "*"))


def _is_object(node: Tree) -> bool:
    """Tell whether a map in an object is a whole object itself; a reference has a name and no spec."""
    is_typed = isinstance(node.get("apiVersion"), str) and isinstance(node.get("kind"), str)
    return is_typed and isinstance(node.get("metadata", {}), dict) and isinstance(node.get("spec"), dict)


def _form_of(node: Tree) -> Form | None:
    """Return the form of pod template that a map looks like; None for any other map.

    A container has an image, and resources, a command or arguments.
    """
    if _is_pod_spec(node.get("spec")):
        return "template"
    if _is_pod_spec(node):
        return "spec"
    has_image = isinstance(node.get("image"), str)
    return "container" if has_image and any(node.get(field) for field in ("resources", "command", "args")) else None


def _is_pod_spec(node: object) -> bool:
    containers = node.get("containers") if isinstance(node, dict) else None
    return isinstance(containers, list) and all(isinstance(each, dict) for each in containers) and bool(containers)
