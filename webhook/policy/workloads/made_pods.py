"""The pods that an operator or controller makes of a workload, as they would reach the API server."""

import copy
from typing import Any

from webhook.objects.manifests import Manifest
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.templates import pod_templates

Tree = dict[str, Any]


def pods_of(manifest: Manifest, row: KindRow) -> list[tuple[str, int, Tree]]:
    """One pod for each template of a workload: the template's path, how many such pods there are, and the pod.

    Raises Refused where a template is none.
    """
    made = pod_templates(manifest.tree, row)
    return [(each.path, each.count, pod_of(manifest, each.pod, row)) for each in made if each.count > 0]


def pod_of(manifest: Manifest, template: object, row: KindRow) -> Tree:
    """A controller's pod: the template's metadata and spec, an owner reference, and the operator's labels.

    Raises Refused where the template is none.
    """
    view(template, Pod)  # refuses what is no pod
    made: Tree = copy.deepcopy(template) if isinstance(template, dict) else {}
    metadata = made.get("metadata") or {}
    operators = {label: value or manifest.name for label, value in row.labels.items()}
    labels = operators | (metadata.get("labels") or {})
    owner = {
        "apiVersion": manifest.tree["apiVersion"],
        "kind": manifest.kind,
        "name": manifest.name,
        "uid": manifest.uid,
        "controller": True,
    }
    metadata |= {"generateName": f"{manifest.name}-", "namespace": manifest.namespace, "ownerReferences": [owner]}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made.get("spec") or {}}
