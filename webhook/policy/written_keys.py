"""The labels and annotations that gpu-tiers writes on pods, groups and workloads: one list, and one rule.

A key that is there stays as it is, whoever wrote it: a selector may need it, or its author. Our own marks alone are
written again. They are annotations, which no selector names, and they tell of the very object that bears them. Another
text there is forged, or was copied from another object with the rest of its manifest.
"""

from collections.abc import Mapping

from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.kueue import PRIORITY_CLASS, QUEUE_CLASS
from webhook.policy.assignment.request import GANG, TIER_LABEL
from webhook.policy.checkpoint.listen import ANNOTATIONS
from webhook.policy.placement.schedulers import KAI_PREEMPTIBILITY, KAI_QUEUE, VOLCANO_QUEUE
from webhook.policy.quota.claimed import CLAIMED
from webhook.policy.workloads.templates import TEMPLATE_CLASS

EVICTABLE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
"""Volumes that don't keep Cluster Autoscaler from removing the node, with commas and no spaces between them.

Ours is added to the author's list, whose entries stay (admission/patch.py).
"""
LABELS = (TIER_LABEL, PRIORITY_CLASS, KAI_QUEUE, KAI_PREEMPTIBILITY)
MARKS = frozenset({ASSIGNED_BY, CLAIMED, GANG, QUEUE_CLASS, TEMPLATE_CLASS, *ANNOTATIONS.values()})
"""Annotations that people don't write. The listener's text is one: an old one would speak an old protocol."""
WRITTEN = frozenset({*LABELS, VOLCANO_QUEUE, EVICTABLE_VOLUMES, *MARKS})
"""All of them. What controllers/eviction_costs.py writes beside reviews stands there."""

_OURS = MARKS | {PRIORITY_CLASS, EVICTABLE_VOLUMES}
"""Kueue's label is only wanted where nobody else wrote it, as the mark QUEUE_CLASS tells (assignment/kueue.py)."""


def due(there: Mapping[str, str], wanted: Mapping[str, str], selects: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the entries to write in a map of labels or annotations: those that are absent, and what is our own.

    None of them is a label by which the controller of the pod selects: it may want that the pod has none. Raises
    LookupError for a key that the list above lacks, which is our own mistake.
    """
    if not wanted.keys() <= WRITTEN:
        raise LookupError(f"not in the list of written keys: {', '.join(wanted.keys() - WRITTEN)}")
    free = ((key, value) for key, value in wanted.items() if key not in selects)
    return {key: value for key, value in free if key not in there or key in _OURS}
