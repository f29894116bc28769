"""One name, one thing: a file's or a function's name that stands in two rooms has its reason here."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

FILES = {
    "errors.py": "the errors of each room: of the policy file, of the API server",
    "facts.py": "the facts as values, and where they are gathered",
    "podgroups.py": "PodGroups as we read them, and their reviews",
    "pods.py": "pods as we read them, and their reviews",
    "posture.py": "who can evict whom, and the command that shows it",
    "tenants.py": "tenants as decisions take them, and as people are shown them",
    "snapshot.py": "a cluster as it is now: how it is read, and the values",
    "workloads.py": "workloads under review, and all those of a cluster",
}
NAMES = {
    "sentence": "of a value, and of a mistake in the policy file",
    "serve": "the command, and the server that it runs",
}


def modules() -> Iterator[Path]:
    for room in ("webhook", "certs"):
        yield from (each for each in (ROOT / room).rglob("*.py") if each.name != "__init__.py")


def twice(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in found.items() if len(places) > 1}


def test_files_of_one_name_are_about_one_thing() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in modules():
        found[file.name].append(str(file.relative_to(ROOT)))
    assert twice(found).keys() == FILES.keys(), twice(found)


def test_functions_and_classes_of_one_name_are_one_thing() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in modules():
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                found[node.name].append(str(file.relative_to(ROOT)))
    assert twice(found).keys() == NAMES.keys(), twice(found)
