"""Manifests: objects as a person wrote them, identified by kind and name."""

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.view import Tree

FROM_FILE = "from-file:"
"""The prefix of the uid of an object without one from an API server: its kind and name identify it too."""


class Manifest(msgspec.Struct, frozen=True):
    """One object with apiVersion, kind and metadata. `source` is its place, as file:number of the document."""

    source: str
    tree: Tree

    @property
    def group(self) -> str:
        """Return the API group: "" for core kinds."""
        return str(self.tree["apiVersion"]).rpartition("/")[0]

    @property
    def kind(self) -> str:
        return str(self.tree["kind"])

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def metadata(self) -> Tree:
        found: Tree = self.tree["metadata"]
        return found

    @property
    def namespace(self) -> str:
        """Return the namespace, "default" if the manifest leaves it to kubectl."""
        return str(self.metadata.get("namespace") or "default")

    @property
    def name(self) -> str:
        """Return the name, or the generateName that it starts with."""
        return str(self.metadata.get("name") or f"{self.metadata.get('generateName', '')}*")

    @property
    def uid(self) -> str:
        """Return the uid; without one from an API server, one that no object of another file has."""
        own = f"{self.source}/{self.group}/{self.kind}/{self.namespace}/{self.name}"
        return str(self.metadata.get("uid") or f"{FROM_FILE}{own}")

    @property
    def identified(self) -> Tree:
        """Return the object with its uid in it, because two files may have objects of one name."""
        return {**self.tree, "metadata": {**self.metadata, "uid": self.uid}}
