"""Reads the manifests that a user names on the command line, and reports other files next to them."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Self

import msgspec
import yaml

from webhook.config.errors import unreadable
from webhook.config.yaml_text import NotYaml, Twice, items_of, placed_trees
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import AdmissionWarning
from webhook.objects.view import Tree

CHART = "describes a Helm chart; review what it makes with --helm"
KUSTOMIZATION = "a kustomization; review what it makes with --kustomize"
TEMPLATE = 'a template, by its "{{"; review what it makes (of a Helm chart with --helm)'
BY_NAME: Mapping[str, str] = {
    "Chart.yaml": CHART,
    "values.yaml": "values of a Helm chart",
    "kustomization.yaml": KUSTOMIZATION,
    "kustomization.yml": KUSTOMIZATION,
}
"""Why a file with a well-known name is left out."""

_GZIP = b"\x1f\x8b"
_KUSTOMIZE = "kustomize.config.k8s.io/"
_OBJECT = tuple(re.compile(rf"""\b{field}["']?\s*:""") for field in ("apiVersion", "kind"))


class LeftOut(msgspec.Struct, frozen=True):
    """A file, or a document at a line of it, that is not reviewed, and why. `broken`: it was meant to be an object."""

    file: str
    reason: str
    line: int = 0
    broken: bool = False

    @property
    def what(self) -> str:
        return "broken" if self.broken else "left out"

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.reason}"


def why_no_object(file: str, tree: Any) -> str:
    """Return why a document is not an object of a cluster; "" if it is one."""
    if not isinstance(tree, dict) or not isinstance(tree.get("kind"), str) or "apiVersion" not in tree:
        is_schema = isinstance(tree, dict) and "$schema" in tree
        other = "a JSON schema" if is_schema else "not a Kubernetes object: apiVersion and kind are required"
        return BY_NAME.get(PurePath(file).name, other)
    if str(tree["apiVersion"]).startswith(_KUSTOMIZE):
        return KUSTOMIZATION
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        return f"{tree['kind']}: metadata is required, with a name"
    return TEMPLATE if "{{" in f"{metadata.get('name')}{metadata.get('namespace')}" else ""


def is_mistake(tree: Any) -> bool:
    """Tell whether a document is an object that lacks metadata. A configuration file of a program has no spec."""
    if not isinstance(tree, dict) or isinstance(tree.get("metadata"), dict):
        return False
    return isinstance(tree.get("kind"), str) and "apiVersion" in tree and isinstance(tree.get("spec"), dict)


CONFIGURATION = "config.gpu-tiers.dev/"
"""The API group of the policy file, which is not a kind of the API server."""
STDIN = "standard input"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
"""The suffixes of files in a folder that are read."""

MOST_VALUES = 1_000_000
"""The most values in one document; an object of the 3 MiB that an API server accepts has fewer."""
MOST_NAMED = 5
"""Other files that are listed for a folder without objects."""


class BadInput(Exception):  # noqa: N818 - answered with exit code 2 and the sentence
    """A file or document that can't be read; the text names it and says why."""


class Document(Manifest, frozen=True):
    """A manifest of the command line. It begins at `line` of `file`, 0 if unknown.

    `placeholders` are the variables that its tree has replaced by numbers. `twice` are duplicate keys.
    `written_version` is the author's apiVersion if it does not have this kind; its tree has the right one.
    """

    placeholders: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    twice: tuple[Twice, ...] = ()
    written_version: str = ""

    @property
    def warnings(self) -> Iterator[AdmissionWarning]:
        return (AdmissionWarning("written-twice", key=again.key, line=again.line) for again in self.twice)

    @classmethod
    def of(cls, file: str, tree: Tree, line: int = 0, twice: tuple[Twice, ...] = ()) -> Self:
        made, placeholders = filled(tree)
        return cls(f"{file}:{line}" if line else file, made, placeholders, file, line, twice)


def documents(where: str, left_out: list[LeftOut] | None = None, *, past_broken: bool = False) -> Iterator[Document]:
    """Yield the objects of a file, of the YAML and JSON files below a folder, or of standard input ("-").

    Other documents of a folder are added to `left_out`, broken objects too if `past_broken`. A named file may contain
    only objects. Raises BadInput, also if there is no object, because a mistyped folder must not look like a good one.
    """
    folder = Path(where).is_dir()
    reader, none_found = _Reader(strict=not folder, past_broken=folder and past_broken), True
    for document in (document for file in _files(where) for document in reader.objects(file)):
        none_found = False
        yield document
    if none_found:
        others = list(map(str, reader.left_out[:MOST_NAMED]))
        if len(reader.left_out) > MOST_NAMED:
            others.append(f"and {len(reader.left_out) - MOST_NAMED} more")
        raise BadInput("\n  ".join((f"{called(where)}: holds no Kubernetes object", *others)))
    if left_out is not None:
        left_out.extend(reader.left_out)


def documents_in(file: str, text: str) -> list[Document]:
    """Return all objects of a text. Raises BadInput if it has anything else, or no object."""
    found = list(_Reader(strict=True).parsed(file, text))
    if not found:
        raise BadInput(f"{file}: holds no Kubernetes object")
    return found


def called(where: str) -> str:
    return STDIN if where == "-" else where


def _files(where: str) -> list[str]:
    path = Path(where)
    if where != "-" and not path.exists():
        raise BadInput(f"{where}: there is no such file or folder")
    if where == "-" or not path.is_dir():
        return [where]
    return [str(each) for each in sorted(path.rglob("*")) if each.suffix in SUFFIXES and not each.is_dir()]


class _Reader(msgspec.Struct, frozen=True):
    """Reads files. If it is `strict`, all documents have to be objects; otherwise others are left out.

    If it is to read `past_broken` objects, these are left out too. Otherwise the first raises BadInput.
    """

    strict: bool
    past_broken: bool = False
    left_out: list[LeftOut] = msgspec.field(default_factory=list)

    def objects(self, file: str) -> Iterator[Document]:
        name = called(file)
        if file == "-" and sys.stdin is None:
            raise BadInput(f"{STDIN}: is closed")
        try:
            content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._leave_out(LeftOut(name, "gzip, no text" if content.startswith(_GZIP) else "not UTF-8 text"))
        except OSError as error:
            self._leave_out(LeftOut(name, unreadable(error), broken=True))
        else:
            yield from self.parsed(name, text)

    def parsed(self, file: str, text: str) -> Iterator[Document]:
        twice: list[Twice] = []
        try:
            found = placed_trees(text, twice)
        except NotYaml as error:
            # Report the syntax error only if the text was meant to be an object.
            broken = self.strict or ("{{" not in text and all(each.search(text) for each in _OBJECT))
            is_template, is_markup = "{{" in text or "{%" in text, text.lstrip().startswith("<")
            other = TEMPLATE if is_template else "HTML or XML" if is_markup else str(error)
            reason = str(error) if broken else BY_NAME.get(PurePath(file).name, other)
            self._leave_out(LeftOut(file, reason, broken=broken))
            return
        for tree, node in found:
            version = tree.get("apiVersion") if isinstance(tree, dict) else None
            # gpu-tiers' own configuration is next to manifests, but is not an object of a cluster.
            if tree is None or (isinstance(version, str) and version.startswith(CONFIGURATION)):
                continue
            if _has_too_many_values(tree):
                reason = f"more than {MOST_VALUES} values in one document, with its aliases unfolded"
                self._leave_out(LeftOut(file, reason, broken=True))
            else:
                yield from self._objects(tree, node, file, twice)

    def _objects(self, tree: Any, node: yaml.Node, file: str, twice: Sequence[Twice]) -> Iterator[Document]:
        items = _items(tree)
        if items is not None:
            for item, its_node in zip(items, items_of(node), strict=True):
                yield from self._objects(item, its_node, file, twice)
            return
        line, end = node.start_mark.line + 1, node.end_mark.line + 1
        reason = why_no_object(file, tree)
        if not reason:
            yield Document.of(file, tree, line, tuple(each for each in twice if line <= each.line <= end))
        else:
            self._leave_out(LeftOut(file, reason, line, broken=is_mistake(tree)))

    def _leave_out(self, what: LeftOut) -> None:
        if self.strict or (what.broken and not self.past_broken):
            raise BadInput(str(what))
        self.left_out.append(what)


def _items(tree: Any) -> list[Any] | None:
    """Return the objects of a list, as kubectl (List) or the API server (PodList) writes it; None if it is no list."""
    if not isinstance(tree, dict) or not str(tree.get("kind")).endswith("List"):
        return None
    items, of_kind = tree.get("items"), str(tree["kind"]).removesuffix("List")
    if not of_kind:
        return items if isinstance(items, list) else []
    inherited = {"apiVersion": tree.get("apiVersion"), "kind": of_kind}
    its = items if isinstance(items, list) and all(isinstance(each, dict) for each in items) else None
    return None if its is None else [{**inherited, **each} for each in its]


def _has_too_many_values(tree: object) -> bool:
    """Tell whether a document has more than MOST_VALUES values, counting each use of an alias."""
    open_, met = [tree], 0
    while open_:
        each = open_.pop()
        met += 1
        if met > MOST_VALUES:
            return True
        open_.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
    return False


_PLACEHOLDER = re.compile(r"\${1,2}\w+|\$\{\w+(?::?-[^{}]*)?\}|<[^<>]{1,60}>|_{0,2}[A-Z][A-Z0-9_]{2,63}")
_DEFAULT = re.compile(r":-(\d{1,9})\}$")
_QUANTITIES = frozenset({"limits", "requests"})
_NUMBER = re.compile(r"(?i)\w*(?:replicas|parallelism|completions|instances|nodes|hosts|size|port|seconds)")
"""The fields that are always a whole number."""


def filled(tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """Return the object with numbers in place of variables, such as `nvidia.com/gpu: $GPU_PER_NODE`, and the variables.

    Only fields that are always a number are filled: with the variable's default, or 1.
    """
    met: dict[str, None] = {}
    made = _filled(tree, met)
    return (made, tuple(met)) if met else (tree, ())


def _filled(node: Any, met: dict[str, None], *, quantities: bool = False) -> Any:
    if isinstance(node, list):
        return [_filled(item, met) for item in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for name, value in node.items():
        if isinstance(value, str) and (quantities or _NUMBER.fullmatch(str(name))) and _PLACEHOLDER.fullmatch(value):
            met[value] = None
            default = _DEFAULT.search(value)
            made[name] = int(default.group(1)) if default else 1
        else:
            made[name] = _filled(value, met, quantities=name in _QUANTITIES)
    return made
