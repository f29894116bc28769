"""A pod as its author wrote it: without what gpu-tiers, the API server and the scheduler wrote on it."""

from typing import Any

from webhook.policy.assignment.request import ASSIGNED_BY, GANG, TIER_LABEL

Tree = dict[str, Any]

_DEMOTED = "; demoted from "
_BY_LABEL = "label: the label on the pod says "
_BY_CLASS = "class: priorityClassName "
_OF_THE_AUTHOR = ("namespace", "labels", "annotations", "ownerReferences")
_BORN_WITH = ("priority", "preemptionPolicy", "nodeName")


def anew(pod: Tree) -> Tree:
    """The pod as a controller would create it again, under another name.

    The annotation that gpu-tiers left on it tells which of label and class were its author's.
    """
    metadata, spec = pod.get("metadata") or {}, {**(pod.get("spec") or {})}
    kept = {key: metadata[key] for key in _OF_THE_AUTHOR if key in metadata}
    labels, annotations = {**(kept.get("labels") or {})}, {**(kept.get("annotations") or {})}
    annotations.pop(GANG, None)
    if ASSIGNED_BY in annotations:
        _unmark(labels, spec, annotations.pop(ASSIGNED_BY))
    spec = {key: value for key, value in spec.items() if key not in _BORN_WITH}
    kept |= {"generateName": f"{metadata.get('name', '')}-", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def _unmark(labels: dict[str, str], spec: Tree, assigned_by: str) -> None:
    line, _, demoted_from = assigned_by.partition(_DEMOTED)
    if not line.startswith(_BY_LABEL):
        labels.pop(TIER_LABEL, None)
    elif demoted_from:
        labels[TIER_LABEL] = demoted_from
    if not line.startswith(_BY_CLASS):
        spec.pop("priorityClassName", None)
    elif demoted_from:
        spec["priorityClassName"] = demoted_from
