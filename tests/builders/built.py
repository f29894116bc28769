"""The base of all builders: a value that holds an object's tree, of which each call makes a new one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from webhook.policy.assignment.request import TIER_LABEL

Tree = dict[str, Any]


@dataclass(frozen=True)
class Built:
    """An object under construction."""

    tree: Tree = field(default_factory=dict)

    def json(self) -> Tree:
        """The object as a person writes it; the caller may change it."""
        return copied(self.tree)

    def unplaced(self) -> Tree:
        """The object without a namespace, to be created in any."""
        tree = self.json()
        tree["metadata"].pop("namespace", None)
        return tree

    def named(self, name: str) -> Self:
        return self.having("metadata.name", name)

    def labelled(self, labels: Mapping[str, str]) -> Self:
        return self.having("metadata.labels", labels)

    def annotated(self, annotations: Mapping[str, str]) -> Self:
        return self.having("metadata.annotations", annotations)

    def of_tier(self, tier: str) -> Self:
        """Return a copy with the tier label."""
        return self.labelled({TIER_LABEL: tier})

    def of_class(self, name: str) -> Self:
        return self.having("spec.priorityClassName", name)

    def owned_by(self, owner: "Built") -> Self:
        """Return a copy whose controller is `owner`."""
        return self.having("metadata.ownerReferences", [owner.reference()])

    def reference(self) -> Tree:
        """Return the owner reference by which the objects that it controls name it."""
        metadata = self.tree["metadata"]
        kind = {"apiVersion": self.tree["apiVersion"], "kind": self.tree["kind"]}
        identity = {"name": metadata["name"], "uid": metadata["uid"]}
        return {**kind, **identity, "controller": True, "blockOwnerDeletion": True}

    def having(self, path: str, value: object) -> Self:
        """Return a copy with a value at a dotted path, which extends a map or list; numbers are positions in lists."""
        return type(self)(_with(self.tree, path.split("."), copied(value)))


def _with(place: Any, steps: list[str], value: Any) -> Any:
    """Return a copy of a tree with a value at the path `steps`; the old tree stays as it is."""
    step, *rest = steps
    key: Any = int(step) if isinstance(place, list) else step
    there = place[key] if isinstance(place, list) else place.get(key)
    changed = list(place) if isinstance(place, list) else dict(place)
    changed[key] = _with({} if there is None else there, rest, value) if rest else _added(there, value)
    return changed


def _added(there: Any, value: Any) -> Any:
    if isinstance(there, dict) and isinstance(value, dict):
        return there | value
    return there + value if isinstance(there, list) and isinstance(value, list) else value


def copied(tree: Any) -> Any:
    """Return a copy of a tree that shares no map and no list with it."""
    if isinstance(tree, Mapping):
        return {key: copied(value) for key, value in tree.items()}
    return [copied(each) for each in tree] if isinstance(tree, list) else tree
