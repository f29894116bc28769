"""A pod as its author wrote it: without what gpu-tiers, the API server and the scheduler wrote on it."""

from webhook.objects.view import Tree
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, AssignedBy, read_assigned_by
from webhook.policy.assignment.request import GANG, TIER_LABEL

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
        _unmark(labels, spec, read_assigned_by(annotations))
        del annotations[ASSIGNED_BY]
    spec = {key: value for key, value in spec.items() if key not in _BORN_WITH}
    kept |= {"generateName": f"{metadata.get('name', '')}-", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def _unmark(labels: dict[str, str], spec: Tree, written: AssignedBy | None) -> None:
    higher = written.demoted_from if written else ""
    if written is None or not written.names_own_label:
        labels.pop(TIER_LABEL, None)
    elif higher:
        labels[TIER_LABEL] = higher
    if written is None or not written.names_own_class:
        spec.pop("priorityClassName", None)
    elif higher:
        spec["priorityClassName"] = higher
