"""The pods that an operator or controller makes of a workload, as they would reach the API server; judges nothing."""

import copy
from typing import Any

from webhook.cli.documents import Document
from webhook.policy.facts import Kind
from webhook.policy.kinds import ROW_OF
from webhook.policy.templates import members

Tree = dict[str, Any]


def uid_of(document: Document) -> str:
    """A uid for an object that no API server has given one."""
    return f"{document.group}/{document.kind}/{document.namespace}/{document.name}"


def pods_of(document: Document) -> list[tuple[str, int, Tree]]:
    """One pod for each template of a workload: the template's path, how many such pods there are, and the pod."""
    kind = Kind(document.group, document.kind)
    return [
        (member.path, member.count, _pod(document, _at(document.tree, member.path)))
        for member in members(document.tree, kind)
        if member.count > 0
    ]


def _pod(document: Document, template: Tree) -> Tree:
    """A controller's pod: the template's metadata and spec, an owner reference, and the operator's labels."""
    bare = "spec" not in template
    metadata = {} if bare else copy.deepcopy(template.get("metadata") or {})
    row = ROW_OF[Kind(document.group, document.kind)]
    labels = dict.fromkeys(row.labels, document.name) | (metadata.get("labels") or {})
    owner = {
        "apiVersion": document.tree["apiVersion"],
        "kind": document.kind,
        "name": document.name,
        "uid": uid_of(document),
        "controller": True,
    }
    metadata |= {"generateName": f"{document.name}-", "namespace": document.namespace, "ownerReferences": [owner]}
    if labels:
        metadata["labels"] = labels
    spec = copy.deepcopy(template if bare else template["spec"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _at(tree: Any, path: str) -> Tree:
    for step in path.split("."):
        tree = tree[int(step)] if isinstance(tree, list) else tree[step]
    found: Tree = tree
    return found
