"""Dotted places in objects, `spec.tasks.*.template`: how the table of kinds says where something stands."""

from collections.abc import Iterator
from typing import Any

Found = tuple[tuple[str, ...], object]
"""The steps taken, with the keys and indices that a `*` stood for, and what lies there."""


def at(holder: object, path: str) -> object:
    """What lies at a dotted path of maps; None where the way ends."""
    for step in steps(path):
        if not isinstance(holder, dict):
            return None
        holder = holder.get(step)
    return holder


def with_at(holder: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The map with a value at a dotted path of maps, made where there are none; what it was made of stays as it is."""
    step, _, rest = path.partition(".")
    inner = holder.get(step)
    return {**holder, step: with_at(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def all_at(tree: object, path: str) -> Iterator[Found]:
    """What lies at a path in which `*` is each list item or map value; also None, where the last step leads to it."""
    return _walk(tree, steps(path), ())


def steps(path: str) -> list[str]:
    """The steps of a path; the empty one has none."""
    return path.split(".") if path else []


def _walk(tree: object, path: list[str], taken: tuple[str, ...]) -> Iterator[Found]:
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
