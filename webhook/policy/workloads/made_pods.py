"""The pods that an operator or controller makes of a workload, as they would reach the API server."""

import copy
from collections.abc import Iterator
from typing import Any

from webhook.objects.group_kind import POD
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.templates import objects_in, own_templates

Tree = dict[str, Any]


def pods_of(manifest: Manifest, row: KindRow) -> list[tuple[str, int, Tree]]:
    """One pod for each template of a workload: the template's path, how many such pods there are, and the pod.

    Raises Refused where a template is none.
    """
    made = own_templates(manifest.tree, row)
    pods = [(each.path, each.count, pod_of(manifest, each.pod, row)) for each in made if each.count > 0]
    for place, inner, inner_row in created_by(manifest, row):
        if inner_row.group_kind == POD:
            pods.append((place, 1, pod_of(manifest, inner.tree, row)))
        else:
            inside = pods_of(inner, inner_row)
            pods += [(".".join(filter(None, (place, path))), count, pod) for path, count, pod in inside]
    return pods


def created_by(manifest: Manifest, row: KindRow) -> Iterator[tuple[str, Manifest, KindRow]]:
    """The whole objects that a workload creates, as they would reach the API server, each with its place and row.

    One whose metadata is no object is none: the workload is refused for it.
    """
    for taken, tree, inner_row in objects_in(manifest.tree, row):
        written = tree.get("metadata") or {}
        if isinstance(written, dict):
            home = {"namespace": manifest.namespace, "name": manifest.name}
            metadata = home | written | {"ownerReferences": [_reference(manifest)]}
            yield ".".join(taken), Manifest(manifest.source, {**tree, "metadata": metadata}), inner_row


def pod_of(manifest: Manifest, template: object, row: KindRow) -> Tree:
    """A controller's pod: the template's metadata and spec, an owner reference, and the operator's labels.

    Raises Refused where the template is none.
    """
    view(template, Pod)  # refuses what is no pod
    made: Tree = copy.deepcopy(template) if isinstance(template, dict) else {}
    metadata = made.get("metadata") or {}
    operators = {label: value or manifest.name for label, value in row.labels.items()}
    labels = operators | (metadata.get("labels") or {})
    owners = [_reference(manifest)]
    metadata |= {"generateName": f"{manifest.name}-", "namespace": manifest.namespace, "ownerReferences": owners}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made.get("spec") or {}}


def _reference(manifest: Manifest) -> Tree:
    kind = {"apiVersion": manifest.tree["apiVersion"], "kind": manifest.kind}
    return {**kind, "name": manifest.name, "uid": manifest.uid, "controller": True}
