"""Walks from a pod to what made it, by controllerRef. The object must have the UID that the reference names.

The API server does not check owner references, so anybody may name a real Job's UID beside another name.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named, OwnerReference
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.workload import Workload, workload

log = structlog.get_logger(__name__)

LONGEST = 8
"""Owners of one pod. The longest chain of the table, Pod <- Job <- JobSet <- TrainJob, has three."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An object that owns, and the controller that it has itself."""

    workload: Workload
    controller: OwnerReference | None


FetchOwner = Callable[[OwnerReference, KindRow], Awaitable[Owner | None]]
"""Reads the object that a reference names; None where no such API is served. Raises Unreadable where it can't."""


async def walk(first: OwnerReference, kinds: KindTable, fetch: FetchOwner) -> tuple[Workload, ...]:
    """The owners upwards from `first`, up to a kind that the table or the API server has not. Raises Unreadable."""
    return tuple(owner for _, owner in await links(first, kinds, fetch))


async def links(
    first: OwnerReference, kinds: KindTable, fetch: FetchOwner
) -> tuple[tuple[OwnerReference, Workload], ...]:
    """The same chain, each owner with the reference that names it."""
    found: dict[str, tuple[OwnerReference, Workload]] = {}
    reference: OwnerReference | None = first
    while reference is not None and (row := kinds.by_kind.get(GroupKind(reference.group, reference.kind))) is not None:
        shown = f"owner {reference.kind}/{reference.name[:63]}"
        if reference.uid in found:
            raise Unreadable(f"{shown} is among its own owners")
        if len(found) == LONGEST:
            raise Unreadable(f"{shown} is number {LONGEST + 1} in a chain of owners; {LONGEST} are read at most")
        owner = await fetch(reference, row)
        if owner is None:
            break
        if owner.workload.uid != reference.uid:
            raise Unreadable(f"{shown} has another UID than the reference to it: it was created again, or forged")
        found[reference.uid] = (reference, owner.workload)
        reference = owner.controller
    return tuple(found.values())


def owner_of(tree: dict[str, Any], row: KindRow) -> Owner:
    """An object as an owner.

    An owner with a broken template has no members: its labels and its kind still count, and the review of the
    workload itself refuses the template.
    """
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    try:
        found = workload(tree, row)
    except Refused as refused:
        log.info("owner without members", owner=f"{row.kind}/{metadata.name}", reason=refused.sentence)
        found = Workload(row, metadata.name, metadata.uid, metadata.labels, metadata.annotations)
    return Owner(found, metadata.controller)
