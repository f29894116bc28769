"""Sound objects to begin with: the golden manifests and the examples, and the pods that come of them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.builders import Tree
from tests.builders.built import Built
from tests.builders.world import FakeApi
from tests.property.anything import SHAPES, places
from tests.property.pods import OWNERS

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "tests" / "workloads" / "golden", ROOT / "examples")
CLAIM = {
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}
}


@cache
def seeds() -> tuple[Tree, ...]:
    """Return the seeds, each once, and the shapes that the property tests spoil."""
    files = [file for folder in FOLDERS for file in sorted(folder.rglob("*.yaml"))]
    found = [each for file in files for each in yaml.load_all(file.read_text(), yaml.CSafeLoader) if _is_object(each)]
    return (*SHAPES, *found, *(pod for each in found for pod in _pods_of(each)))


@cache
def by_key() -> dict[str, list[Any]]:
    """Return the values of each key in all seeds; such a value is nearly right in another object."""
    found: dict[str, list[Any]] = {}
    for tree in seeds():
        for place in places(tree):
            if place and isinstance(place[-1], str):
                found.setdefault(place[-1], []).append(at(tree, place))
    return found


def at(tree: Any, place: tuple[Any, ...]) -> Any:
    """Return the value at a place."""
    for step in place:
        tree = tree[step]
    return tree


def cluster() -> tuple[Built, ...]:
    """Return the other objects of the cluster: owners, a claim and a template of one."""
    claims = [
        Built(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": "claim", "namespace": "team-alpha"},
                **spec,
            }
        )
        for kind, spec in (("ResourceClaim", CLAIM), ("ResourceClaimTemplate", {"spec": CLAIM}))
    ]
    return (*OWNERS, *claims)


def _is_object(tree: Any) -> bool:
    return isinstance(tree, dict) and {"apiVersion", "kind", "metadata"} <= tree.keys()


def _pods_of(tree: Tree) -> Iterator[Tree]:
    """A pod of each pod template, with the defaults of the API server."""
    for place in places(tree):
        template = at(tree, place)
        spec = template.get("spec") if place and isinstance(template, dict) else None
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            metadata = {"name": "work-0", "namespace": "team-alpha", **(template.get("metadata") or {})}
            yield FakeApi().sent({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
