"""Which pods a workload makes, by its row's paths; never what they are for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.policy.facts import Kind, Member, Workload, WorkloadType
from webhook.policy.kinds import ROW_OF, Templates
from webhook.policy.objects import Named, Pod, view
from webhook.policy.pod_counts import MOST_PODS, at
from webhook.policy.refusal import Refused

Tree = dict[str, Any]

_STEP_FIELDS = frozenset({"source", "script", "computeResources"})


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A template of a workload as the pod that comes of it, and how many. `path` is its place in the workload."""

    path: str
    pod: object
    count: int


def workload(tree: Tree, kind: Kind) -> Workload:
    """A workload object with its members. Raises Refused with the path of a template that is none."""
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    return Workload(
        kind=kind,
        name=metadata.shown_name,
        uid=metadata.uid,
        labels=metadata.labels,
        annotations=metadata.annotations,
        members=tuple(members(tree, kind)),
        type=_told_by_fields(tree, kind),
        runs=tuple(_commands(tree, kind)),
        brings_gpus=_brings_gpus(tree, kind),
    )


def _told_by_fields(tree: Tree, kind: Kind) -> WorkloadType | None:
    row = ROW_OF.get(kind)
    return next((told for path, told in row.fields if at(tree, path)), None) if row else None


def _commands(tree: Tree, kind: Kind) -> Iterator[str]:
    row = ROW_OF.get(kind)
    for path in row.runs if row else ():
        for _, found in _walk(tree, _steps(path), ()):
            text = _text(found)
            if text:
                yield text


def _text(found: object) -> str:
    """A command as one text: it stands there as a text, as a list, or as a container with command, args, script."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        return " ".join(each for each in found if isinstance(each, str))
    if isinstance(found, dict):
        return " ".join(filter(None, (_text(found.get(field)) for field in ("command", "args", "script", "source"))))
    return ""


def _brings_gpus(tree: Tree, kind: Kind) -> bool:
    """By a field of its own; else, where it says nothing of its pods, they are all its operator's."""
    row = ROW_OF.get(kind)
    if row is None or row.gpu_fields:
        return row is not None and any(_asked(tree, path) for path in row.gpu_fields)
    return not any(True for _ in _found(tree, kind))


def _asked(tree: Tree, path: str) -> bool:
    """Whether a field asks for anything: it is there, and no quantity of 0."""
    return any(found not in (None, 0, "0", "", [], {}) for _, found in _walk(tree, _steps(path), ()))


def members(tree: Tree, kind: Kind) -> Iterator[Member]:
    """The pod templates of a workload, in the table's order, each with the pods it makes."""
    for path, pod, count, form in _found(tree, kind):
        try:
            yield Member(path, view(pod, Pod), count)
        except Refused as refused:
            raise Refused(_placed(path, refused.sentence, form)) from None


def _placed(path: str, sentence: str, form: str) -> str:
    """A sentence about a pod, told of the template it came of."""
    if sentence.startswith("object:"):
        return f"{path or 'object'}{sentence.removeprefix('object')}"
    field = sentence if form == "template" else sentence.removeprefix("spec.")
    return f"{path}.{field}" if path else field


def pod_templates(tree: Tree, kind: Kind) -> Iterator[PodTemplate]:
    """The templates as pods with metadata and spec, whatever their form in the workload; not yet checked."""
    for path, pod, count, _ in _found(tree, kind):
        yield PodTemplate(path, pod, count)


def _found(tree: Tree, kind: Kind) -> Iterator[tuple[str, object, int, str]]:
    row = ROW_OF.get(kind)
    for templates in row.templates if row else ():
        for steps, holder in _walk(tree, _steps(templates.holder), ()):
            template = at(holder, templates.path)
            if isinstance(holder, dict) and template is not None:
                place = ".".join((*steps, *_steps(templates.path)))
                yield place, _pod(template, holder, templates), _count(holder, templates, steps), templates.form


def _steps(path: str) -> list[str]:
    return path.split(".") if path else []


def _walk(tree: object, path: list[str], taken: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if not path:
        yield taken, tree
    elif path[0] == "*":
        for key, item in _items(tree):
            yield from _walk(item, path[1:], (*taken, key))
    elif isinstance(tree, dict):
        yield from _walk(tree.get(path[0]), path[1:], (*taken, path[0]))


def _items(tree: object) -> Iterator[tuple[str, object]]:
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, list):
        yield from ((str(index), item) for index, item in enumerate(tree))


def _pod(template: object, holder: Tree, templates: Templates) -> object:
    match templates.form:
        case "resources":
            return {"spec": {"containers": [{"name": "node", "resources": template}]}}
        case "container":
            return {"spec": {"containers": [_with_script(template)]}}
        case "spec":
            return {"metadata": _beside(holder), "spec": _with_containers(template, templates.containers)}
    return template


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


def _count(holder: Tree, templates: Templates, steps: tuple[str, ...]) -> int:
    where = "".join(f"{step}." for step in steps)
    try:
        count = templates.count(holder)
    except Refused as refused:
        raise Refused(f"{where}{refused}") from None
    if count > MOST_PODS:
        raise Refused(f"{'.'.join(steps) or 'object'}: makes {count} pods; a workload may make {MOST_PODS} at most")
    return count
