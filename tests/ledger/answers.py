"""Requests, and answers as they look on the wire."""

import json
from collections.abc import Callable, Mapping

import msgspec

from tests.ledger.history import Tree


def unversioned(stored: Tree, patch: Tree) -> Tree:
    """Return the change that a merge patch makes; it minds the version only where it bears one."""
    if "resourceVersion" in patch.get("metadata", {}):
        return stored
    metadata = {name: value for name, value in stored["metadata"].items() if name != "resourceVersion"}
    return {**stored, "metadata": metadata}


def merged(tree: object, patch: object) -> Tree:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch  # type: ignore[return-value]
    now = dict(tree) if isinstance(tree, dict) else {}
    for name, value in patch.items():
        if value is None:
            now.pop(name, None)
        else:
            now[name] = merged(now.get(name), value)
    return now


def selection(namespace: str, query: Mapping[str, str]) -> Callable[[Tree], bool]:
    """Return the predicate of a list or watch: by namespace, a field selector and labels."""
    terms = [term for term in query.get("fieldSelector", "").split(",") if term]
    labels = [tuple(term.split("=")) for term in query.get("labelSelector", "").split(",") if term]

    def selects(tree: Tree) -> bool:
        if namespace and tree["metadata"].get("namespace") != namespace:
            return False
        has = tree["metadata"].get("labels", {})
        return all(has.get(key) == value for key, value in labels) and all(_meets(tree, term) for term in terms)

    return selects


def _meets(tree: Tree, term: str) -> bool:
    name, equal, value = term.partition("!=") if "!=" in term else term.partition("=")
    found: object = tree
    for part in name.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return (found == value) is (equal == "=")


def raw(tree: Tree, metadata_only: bool) -> msgspec.Raw:
    shown = {"kind": "PartialObjectMetadata", "metadata": tree["metadata"]} if metadata_only else tree
    return msgspec.Raw(json.dumps(shown).encode())
