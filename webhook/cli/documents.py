"""Reads the manifests that a person names on the command line."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from webhook.cli.placeholders import filled
from webhook.config.yaml_text import NotYaml, trees
from webhook.objects.manifests import Manifest

Tree = dict[str, Any]

CONFIGURATION = "config.gpu-tiers.dev/"
"""The API group of the policy file: a file, and no kind that the API server knows."""

MOST_VALUES = 1_000_000
"""In one document; an object of the 3 MiB that an API server takes has fewer."""


class BadInput(Exception):  # noqa: N818 - answered with exit code 2 and the sentence
    """A file or document that can't be read; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class Document(Manifest):
    """A manifest of the command line. `placeholders` stood for numbers, which are filled in in its tree."""

    placeholders: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: str, tree: Tree) -> Self:
        """A document from an object as it was written."""
        return cls(source, *filled(tree))


def documents(where: str) -> Iterator[Document]:
    """All objects of a file, of the YAML and JSON files of a folder and those below, or of standard input ("-").

    Raises BadInput, also where there is no object at all: a mistyped folder must not pass for a good one.
    """
    count = 0
    for count, document in enumerate(_read(where), start=1):  # noqa: B007 - it is counted
        yield document
    if count == 0:
        raise BadInput(f"{where}: holds no Kubernetes object")


def _read(where: str) -> Iterator[Document]:
    if where == "-":
        yield from _parse("standard input", sys.stdin.read())
        return
    path = Path(where)
    if not path.exists():
        raise BadInput(f"{where}: there is no such file or folder")
    files = sorted(each for each in path.rglob("*") if each.suffix in {".yaml", ".yml", ".json"})
    for file in files if path.is_dir() else [path]:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{file}: can't be read: {error}") from None
        yield from _parse(str(file), text)


def _parse(source: str, text: str) -> Iterator[Document]:
    try:
        found = trees(text)
    except NotYaml as error:
        raise BadInput(f"{source}: {error}") from None
    for number, tree in enumerate(found, start=1):
        if tree is not None and not _is_policy_file(tree):
            _bounded(tree, source)
            yield from _objects(tree, source if len(found) == 1 else f"{source}:{number}")


def _is_policy_file(tree: object) -> bool:
    """Whether it is gpu-tiers' own configuration, which lies beside manifests and is no object of a cluster."""
    version = tree.get("apiVersion") if isinstance(tree, dict) else None
    return isinstance(version, str) and version.startswith(CONFIGURATION)


def _bounded(tree: object, source: str) -> None:
    """Refuse a document whose aliases unfold to more than any cluster would take."""
    open_, met = [tree], 0
    while open_:
        each = open_.pop()
        met += 1
        if met > MOST_VALUES:
            raise BadInput(f"{source}: more than {MOST_VALUES} values in one document, with its aliases unfolded")
        open_.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())


def _objects(tree: object, source: str) -> Iterator[Document]:
    if not isinstance(tree, dict) or not isinstance(tree.get("kind"), str) or "apiVersion" not in tree:
        raise BadInput(f"{source}: not a Kubernetes object: apiVersion and kind are required")
    if tree["kind"] != "List":
        if not isinstance(tree.get("metadata"), dict):
            raise BadInput(f"{source}: {tree['kind']}: metadata is required, with a name")
        yield Document.of(source, tree)
        return
    for item in tree.get("items") or []:
        yield from _objects(item, source)
