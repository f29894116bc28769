"""Finds the pod templates of a workload by its row's paths, as the pods that come of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from webhook.objects.field_paths import all_at, at, steps
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Refused
from webhook.policy.workloads.kfp import container_in
from webhook.policy.workloads.kinds.row import Form, KindRow, Templates
from webhook.policy.workloads.pod_counts import MOST_PODS

Tree = dict[str, Any]

TEMPLATE_CLASS = "gpu-tiers.dev/template-class"
"""The annotation that holds the class which gpu-tiers wrote: of a pod template into that (`templates: Mutate`), of a
workload into its field for the class of all its pods."""

_STEP_FIELDS = frozenset({"source", "script", "computeResources"})


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A template of a workload as the pod that comes of it, and how many. `path` is its place in the workload.

    `least`: a gang is of no use with fewer of them.
    """

    path: str
    pod: object
    count: int
    least: int
    form: Form


def pod_templates(tree: Tree, row: KindRow) -> Iterator[PodTemplate]:
    """The templates as pods with metadata and spec, whatever their form in the workload; not yet checked.

    Those of the whole objects in it, too. Raises Refused with the path of a field that is no count of pods.
    """
    yield from own_templates(tree, row)
    for taken, inner, inner_row in objects_in(tree, row):
        with _placed(taken):
            for each in pod_templates(inner, inner_row):
                yield replace(each, path=".".join((*taken, *steps(each.path))))


def objects_in(tree: Tree, row: KindRow) -> Iterator[tuple[tuple[str, ...], Tree, KindRow]]:
    """The whole objects that a workload creates, each with its place and its row; those of other kinds are left out."""
    rows = {each.group_kind: each for each in row.wrapped}
    for taken, found in (each for place in row.wraps for each in all_at(tree, place)):
        if isinstance(found, dict):
            group = str(found.get("apiVersion", "")).rpartition("/")[0]
            inner_row = rows.get(GroupKind(group, str(found.get("kind", ""))))
            if inner_row is not None:
                yield taken, found, inner_row


def own_templates(tree: Tree, row: KindRow) -> Iterator[PodTemplate]:
    """The templates that stand in the workload itself."""
    named = class_named(tree, row)
    for templates in row.templates:
        for taken, holder in all_at(tree, templates.holder):
            template = _template(holder, templates)
            if isinstance(holder, dict) and template is not None:
                place = ".".join((*taken, *steps(templates.path)))
                with _placed(taken):
                    count, pod = templates.count(holder), _with_class(_pod(template, holder, templates), named)
                times = templates.times(tree, holder)
                least = count if templates.least is None else min(templates.least(tree, holder), count)
                yield PodTemplate(place, pod, _bounded(count * times, taken), least * times, templates.form)


def class_named(tree: Tree, row: KindRow) -> str:
    """The PriorityClass that a workload names for all of its pods; "" where it names none, or gpu-tiers wrote it."""
    name = at(tree, row.class_field) if row.class_field else None
    annotations = at(tree, "metadata.annotations")
    ours = isinstance(annotations, dict) and annotations.get(TEMPLATE_CLASS) == name
    return name if isinstance(name, str) and not ours else ""


def _with_class(pod: object, name: str) -> object:
    """The pod with a class of the workload's, where it names none itself."""
    spec = pod.get("spec") if name and isinstance(pod, dict) else None
    if not isinstance(pod, dict) or not isinstance(spec, dict) or spec.get("priorityClassName"):
        return pod
    return {**pod, "spec": {**spec, "priorityClassName": name}}


def _template(holder: object, templates: Templates) -> object:
    template = at(holder, templates.path)
    return container_in(template) if templates.form == "parameter" else template


def _pod(template: object, holder: Tree, templates: Templates) -> object:
    if templates.made is not None:
        return templates.made(template, holder) if isinstance(template, dict) else template
    match templates.form:
        case "resources":
            return {"spec": {"containers": [{"name": "node", "resources": template}]}}
        case "container" | "parameter":
            return {"spec": {"containers": [_named(_with_script(template))]}}
        case "spec":
            return {"metadata": _beside(holder), "spec": _with_containers(_bare(template), templates.containers)}
    return template


def _bare(template: object) -> object:
    """The spec; some write a whole pod template where the API has a bare spec."""
    inner = template.get("spec") if isinstance(template, dict) else None
    return inner if isinstance(inner, dict) else template


def _named(container: object) -> object:
    """Argo names the one container of a step main."""
    return {"name": "main", **container} if isinstance(container, dict) else container


def _with_script(container: object) -> object:
    """The container with its script as an argument (Argo: source; Tekton: script), and Tekton's computeResources."""
    if not isinstance(container, dict):
        return container
    made = {field: value for field, value in container.items() if field not in _STEP_FIELDS}
    scripts = [container[field] for field in ("source", "script") if isinstance(container.get(field), str)]
    if scripts:
        args = container.get("args")
        made["args"] = [*(args if isinstance(args, list) else ()), *scripts]
    if "computeResources" in container:
        made["resources"] = container["computeResources"]
    return made


def _beside(holder: Tree) -> Tree:
    """KServe writes the labels and annotations that stand beside a bare pod spec on its pods."""
    return {field: holder[field] for field in ("labels", "annotations") if field in holder}


def _with_containers(spec: object, fields: tuple[str, ...]) -> object:
    """The spec with the containers that stand in fields of their own, beside `containers`."""
    if not isinstance(spec, dict):
        return spec
    own = [spec[field] for field in fields if isinstance(spec.get(field), dict)]
    listed = spec.get("containers") or []
    return {**spec, "containers": [*listed, *own]} if own and isinstance(listed, list) else spec


@contextmanager
def _placed(taken: tuple[str, ...]) -> Iterator[None]:
    """Puts the holder's own path before that of a refused field in it."""
    where = "".join(f"{step}." for step in taken)
    try:
        yield
    except Refused as refused:
        raise Refused(f"{where}{refused}", refused.reason) from None


def _bounded(count: int, taken: tuple[str, ...]) -> int:
    if count > MOST_PODS:
        raise Refused(f"{'.'.join(taken) or 'object'}: makes {count} pods; a workload may make {MOST_PODS} at most")
    return count
