"""Objects as they stand in files, found by kind and name."""

from collections.abc import Iterable, Sequence

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.manifests import FROM_FILE
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Missing
from webhook.objects.view import Tree


class ManifestStore:
    """All objects that somebody gave us. One that names no namespace is in every one."""

    def __init__(self, objects: Iterable[Tree]) -> None:
        self._of_kind: dict[GroupKind, list[Tree]] = {}
        self._of_name: dict[tuple[GroupKind, str], list[Tree]] = {}
        for tree in objects:
            kind = _kind(tree)
            self._of_kind.setdefault(kind, []).append(tree)
            self._of_name.setdefault((kind, _name(tree)), []).append(tree)

    def of(self, group: str, kind: str) -> Sequence[Tree]:
        return self._of_kind.get(GroupKind(group, kind), ())

    def one(self, kind: GroupKind, namespace: str, name: str, uid: str = "") -> Tree:
        """The object of that name, of several the one with that uid. Raises Missing where there is none."""
        tree = self._find(kind, namespace, name, uid)
        if tree is None:
            raise Missing(f"{kind}/{name[:63]} is not among the objects given")
        return tree

    def with_uid(self, namespace: str, reference: OwnerReference) -> OwnerReference:
        """The reference with a uid, so that the objects of a chain can be told apart: files often have none."""
        if reference.uid:
            return reference
        kind = GroupKind(reference.group, reference.kind)
        tree = self._find(kind, namespace, reference.name)
        own = f"{FROM_FILE}{'/'.join((*kind, namespace, reference.name))}"
        return msgspec.structs.replace(reference, uid=(tree and uid_of(tree)) or own)

    def _find(self, kind: GroupKind, namespace: str, name: str, uid: str = "") -> Tree | None:
        alike = [
            tree
            for tree in self._of_name.get((kind, name), ())
            if (_metadata(tree).get("namespace") or namespace) == namespace
        ]
        exact = (tree for tree in alike if uid and _metadata(tree).get("uid") == uid)
        return next(exact, alike[0] if alike else None)


def uid_of(tree: Tree) -> str:
    uid = str(_metadata(tree).get("uid") or "")
    return "" if uid.startswith(FROM_FILE) else uid


def _kind(tree: Tree) -> GroupKind:
    return GroupKind(str(tree.get("apiVersion", "")).rpartition("/")[0], str(tree.get("kind", "")))


def _metadata(tree: Tree) -> Tree:
    metadata = tree.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _name(tree: Tree) -> str:
    metadata = _metadata(tree)
    return str(metadata.get("name") or f"{metadata.get('generateName') or ''}*")
