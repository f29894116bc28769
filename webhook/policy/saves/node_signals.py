"""Finds the signs that a node will end, so that its trainings can save before their pods are deleted.

The table has what autoscalers, clouds, NVSentinel and administrators write on nodes; the policy adds rows, changes them
and switches them off.
"""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec
from msgspec import structs

from webhook.objects.data_files import data_file
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.values.tier_policy import NodeSignal, Urgency

BUILT_IN = msgspec.convert(data_file(__name__, "node_signals.yaml"), tuple[NodeSignal, ...])
_RANKS = {urgency: rank for rank, urgency in enumerate(get_args(Urgency))}


def signals_with(entries: Iterable[Mapping[str, Any]]) -> tuple[NodeSignal, ...]:
    """Return the table with the policy's `entries`. An entry with a known id replaces only the fields that it has.

    `ignore` takes a row out. Rows with an entry come first, so that one of them counts before another row that is as
    urgent and has the same notice.
    """
    rows, own = {row.id: row for row in BUILT_IN}, dict[str, NodeSignal]()
    for entry in entries:
        fields = {**entry}
        ignored, known = fields.pop("ignore", False), rows.pop(str(fields["id"]), None)
        whole = (structs.asdict(known) if known else {}) | fields
        if not ignored:
            own[str(fields["id"])] = NodeSignal(**whole)
    return (*own.values(), *rows.values())


def signal_of(node: SchedulableNode, table: Iterable[NodeSignal]) -> NodeSignal | None:
    """Return the most urgent signal on a node, and of these the one with the shortest notice; None without any."""
    found = (row for row in table if _is_on(node, row))
    return min(found, key=lambda row: (_RANKS[row.urgency], row.notice is None, row.notice or 0), default=None)


def _is_on(node: SchedulableNode, row: NodeSignal) -> bool:
    match row.where:
        case "Taint":
            return any(each.key == row.key and row.value in ("", each.value) for each in node.spec.taints)
        case "Condition":
            wanted = row.key, row.value or "True"
            return any((each.type, each.status) == wanted for each in node.status.conditions)
        case "Label":
            there = node.metadata.labels.get(row.key)
            return there is not None and row.value in ("", there)
        case "Unschedulable":
            return node.spec.unschedulable
