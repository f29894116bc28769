"""Completes a workload with the runtime that it names, so that its templates are those of its pods."""

from collections.abc import Awaitable, Callable
from typing import Any

from webhook.objects.field_paths import at
from webhook.objects.refusal import Refused, Unreadable
from webhook.policy.workloads.kinds.row import KindRow, RuntimeKinds

Tree = dict[str, Any]

ReadRuntime = Callable[[RuntimeKinds, str, str], Awaitable[Tree]]
"""Reads a runtime by its kind and name. Raises Unreadable."""


async def complete_workload(tree: Tree, row: KindRow, read: ReadRuntime) -> tuple[Tree, str]:
    """The workload with the runtime that it names; alone with that name where it can't be read.

    Raises Refused with the path of a field of either that is no count.
    """
    named = at(tree, f"{row.runtime.reference}.name") if row.runtime else None
    if row.runtime is None or not isinstance(named, str) or not named:
        return tree, ""
    kind = str(at(tree, f"{row.runtime.reference}.kind") or next(iter(row.runtime.plurals)))
    group = at(tree, f"{row.runtime.reference}.apiGroup") or row.runtime.group
    if kind not in row.runtime.plurals or group != row.runtime.group:
        return tree, f"{kind}/{named}"
    try:
        return row.runtime.merged(tree, await read(row.runtime, kind, named)), ""
    except Unreadable:
        return tree, f"{kind}/{named}"


async def completed_owner(completed: Awaitable[tuple[Tree, str]], tree: Tree) -> Tree:
    """An owner, completed; as it stands where a count in it is none, for the review of the workload refuses that."""
    try:
        whole, _ = await completed
    except Refused:
        return tree
    return whole
