"""What lies beside manifests in a repository and is no object of a cluster, and what to do about it."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

CHART = "describes a Helm chart; review what it makes with --helm"
KUSTOMIZATION = "a kustomization; review what it makes with --kustomize"
TEMPLATE = 'a template, by its "{{"; review what it makes (of a Helm chart with --helm)'
BY_NAME: Mapping[str, str] = {
    "Chart.yaml": CHART,
    "values.yaml": "values of a Helm chart",
    "kustomization.yaml": KUSTOMIZATION,
    "kustomization.yml": KUSTOMIZATION,
}
"""Files that are called the same in every repository."""

_GZIP = b"\x1f\x8b"
_KUSTOMIZE = "kustomize.config.k8s.io/"
_OBJECT = tuple(re.compile(rf"""\b{field}["']?\s*:""") for field in ("apiVersion", "kind"))


class LeftOut(msgspec.Struct, frozen=True):
    """A file, or a document at a line of it, that is not reviewed, and why. `broken`: it was to be an object."""

    file: str
    reason: str
    line: int = 0
    broken: bool = False

    @property
    def what(self) -> str:
        return "broken" if self.broken else "left out"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def seems_object(text: str) -> bool:
    """Whether a text that can't be read was to be an object: its mistake is not passed over."""
    return "{{" not in text and all(each.search(text) for each in _OBJECT)


def why_no_text(content: bytes) -> str:
    return "gzip, no text" if content.startswith(_GZIP) else "not UTF-8 text"


def why_no_yaml(file: str, text: str, problem: str) -> str:
    if PurePath(file).name in BY_NAME:
        return BY_NAME[PurePath(file).name]
    if "{{" in text or "{%" in text:
        return TEMPLATE
    return "HTML or XML" if text.lstrip().startswith("<") else problem


def why_no_object(file: str, tree: Any) -> str:
    """Why a document is no object of a cluster; "" where it is one."""
    if not isinstance(tree, dict) or not isinstance(tree.get("kind"), str) or "apiVersion" not in tree:
        name = PurePath(file).name
        if name in BY_NAME:
            return BY_NAME[name]
        schema = isinstance(tree, dict) and "$schema" in tree
        return "a JSON schema" if schema else "not a Kubernetes object: apiVersion and kind are required"
    if str(tree["apiVersion"]).startswith(_KUSTOMIZE):
        return KUSTOMIZATION
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        return f"{tree['kind']}: metadata is required, with a name"
    return TEMPLATE if "{{" in f"{metadata.get('name')}{metadata.get('namespace')}" else ""


def is_mistake(tree: Any) -> bool:
    """Whether a document was to be an object and lacks its metadata; a program's configuration has no spec."""
    if not isinstance(tree, dict) or isinstance(tree.get("metadata"), dict):
        return False
    return isinstance(tree.get("kind"), str) and "apiVersion" in tree and isinstance(tree.get("spec"), dict)
