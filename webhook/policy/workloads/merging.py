"""Lays one object over another, as operators do that take patches of pods.

Source: strategic merge patch, sig-api-machinery/strategic-merge-patch.md of kubernetes/community.
"""

from typing import Any

Tree = dict[str, Any]


def patched(tree: Tree, patch: Tree) -> Tree:
    """The tree with the patch laid over it: maps are merged, lists too where their items have names."""
    return tree | {field: _merged(tree.get(field), value) for field, value in patch.items() if value is not None}


def mapped(found: object) -> Tree:
    """A map; an empty one where it is none."""
    return found if isinstance(found, dict) else {}


def listed(found: object) -> list[Any]:
    """A list; an empty one where it is none."""
    return found if isinstance(found, list) else []


def _merged(there: object, new: object) -> object:
    if isinstance(there, dict) and isinstance(new, dict):
        return patched(there, new)
    if isinstance(there, list) and isinstance(new, list) and all(_name(each) for each in (*there, *new)):
        by_name = {_name(each): each for each in there}
        return list((by_name | {_name(each): patched(by_name.get(_name(each), {}), each) for each in new}).values())
    return new


def _name(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""
