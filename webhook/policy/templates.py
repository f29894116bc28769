"""Which pods a workload makes, by its row's paths; never what they are for."""

from collections.abc import Iterator
from typing import Any

from webhook.policy.facts import Kind, Member, Workload
from webhook.policy.kinds import ROW_OF, Templates
from webhook.policy.objects import Metadata, Named, Pod, PodSpec, view
from webhook.policy.refusal import Refused

Tree = dict[str, Any]

_MOST_PODS = 1_000_000
"""More pods than any cluster holds: a count above it is a mistake, not a workload."""


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
    )


def members(tree: Tree, kind: Kind) -> Iterator[Member]:
    """The pod templates of a workload, in the table's order, each with the pods it makes."""
    row = ROW_OF.get(kind)
    for templates in row.templates if row else ():
        for steps, found in _walk(tree, templates.path.split("."), ()):
            path = ".".join(steps)
            yield Member(path, _template(found, path, bare=templates.bare), _count(tree, templates, steps))


def _walk(tree: object, path: list[str], taken: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if not path:
        if tree is not None:
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


def _template(found: object, path: str, *, bare: bool) -> Pod:
    try:
        if not bare:
            return view(found, Pod)
        return Pod(metadata=Metadata(), spec=view(_with_model(found), PodSpec))
    except Refused as refused:
        raise Refused(f"{path}.{refused}") from None


def _with_model(found: object) -> object:
    """KServe's predictor holds its one container under `model`, beside any further containers."""
    if isinstance(found, dict) and isinstance(found.get("model"), dict):
        return {**found, "containers": [*(found.get("containers") or []), found["model"]]}
    return found


def _count(tree: Tree, templates: Templates, steps: tuple[str, ...]) -> int:
    pods = 1
    for index, path in enumerate(templates.counts):
        value = _at(tree, _bound(path, steps))
        if value is None:
            continue
        if not isinstance(value, int) or not 0 <= value <= _MOST_PODS:
            raise Refused(f"{path}: {str(value)[:40]!r} is no count of pods; write a whole number, 0 or more")
        pods *= max(value - templates.less, 0) if index == 0 else value
    return pods


def _bound(path: str, steps: tuple[str, ...]) -> list[str]:
    return [steps[place] if step == "*" else step for place, step in enumerate(path.split("."))]


def _at(tree: object, path: list[str]) -> object:
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list):
            tree = tree[int(step)]
        else:
            return None
    return tree
